"""A study of a parameter: the quarter car with four dampers, in one axes of matplotlib."""

from matplotlib.figure import Figure

from fmimaster import Simulation, reference_path

car = reference_path("systems/quarter-car-a-fmi3.ssp")
figure = Figure(figsize=(7.0, 3.4), layout="constrained")
axes = figure.subplots()
for damping in (250.0, 500.0, 1000.0, 2000.0):
    results = Simulation(car, step_size=0.001, start_values={"wheel.dc": damping}).run()
    axes.plot(results.time, results["chassis.velocity"], label=f"{damping:g} N.s/m")
    print(f"{damping:6g} N.s/m: at most {results['chassis.velocity'].max():.4f} m/s")
axes.set(xlabel="time in s", ylabel="velocity of the chassis in m/s")
axes.legend(title="damping")
figure.savefig("parameter_study.svg")
