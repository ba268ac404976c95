"""Step-size control by energy (ECCO): steps are short while the coupling creates energy."""

from matplotlib.figure import Figure

from fmimaster import reference_path, simulate
from fmimaster.steps import PID

car = reference_path("systems/quarter-car-a-fmi3.ssp")
runs = {
    "constant steps": simulate(car, step_size=0.001, stop_time=2),
    "by energy (ECCO)": simulate(
        car, step_size=PID.ecco(0.01, smallest=1e-4), bond_tolerance=2e-5, stop_time=2
    ),
}
figure = Figure(figsize=(7.0, 4.2), layout="constrained")
steps, energy = figure.subplots(2, sharex=True)
for name, results in runs.items():
    (bond,) = results.power_bonds
    print(f"{name}: {bond.residual_energy:.2f} J in {results.statistics.steps} steps")
    sizes = results.time[1:] - results.time[:-1]
    label = f"{name}: {len(sizes)} steps"
    steps.stairs(1e3 * sizes, results.time, baseline=None, label=label)
    energy.plot(results.time, results["suspension.residual_energy"])
steps.set(ylabel="step size in ms", yscale="log")
steps.legend()
energy.set(xlabel="time in s", ylabel="energy that the\ncoupling creates, in J")
figure.savefig("energy_control.svg")
