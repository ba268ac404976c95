"""Two coupled FMUs: x' = -k x + u of FMI 2.0 and of FMI 3.0, each fed by the other."""

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.algorithms import GaussSeidel

system = SystemBuilder("pair")
system.add("a", reference_path("fmi2/Dahlquist.fmu"), {"k": 1.0})
system.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 3.0})
system.connect("b.x", "a.u", factor=2.0)
system.connect("a.x", "b.u", factor=-1.0)

results = simulate(system.build(), stop_time=2, step_size=0.01, algorithm=GaussSeidel())
a, b = results["a.x"], results["b.x"]
print(f"a.x = {a[-1]:.4f}, b.x = {b[-1]:.4f} at t = {results.time[-1]:g} s")
results.plot(["a.x", "b.x"], title="Two coupled FMUs").savefig("two_fmus.svg")
