"""Inputs from Python: a function of time, and arrays with a jump: two rows with the same time."""

from math import sin

from fmimaster import SystemBuilder, reference_path, simulate

fmu = reference_path("fmi3/Dahlquist.fmu")
system = SystemBuilder("two inputs")
for name in ("smooth", "jump"):
    system.add(name, fmu, {"x": 0.0})

times = [0.0, 2.0, 2.0, 6.0]
signals = {"time": times, "jump.u": [0.0, 0.0, 1.0, 1.0], "smooth.u": lambda t: sin(2.0 * t)}
results = simulate(
    system, input=signals, output_variables=["*.u", "*.x"], stop_time=6, step_size=0.05
)
print(f"largest answer to the sine: {results['smooth.x'].max():.3f}")
results.plot(["smooth.*", "jump.*"]).savefig("inputs_in_python.svg")
