"""Which algorithm is most accurate? The error of a pair of FMUs whose solution is known."""

from math import cos, exp, hypot, sin

from matplotlib.figure import Figure

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.inputs import LINEAR, QUADRATIC

system = SystemBuilder("pair")
system.add("a", reference_path("fmi3/Dahlquist.fmu"), {"k": 1.0})
system.add("b", reference_path("fmi3/Dahlquist.fmu"), {"k": 3.0})
system.connect("b.x", "a.u", factor=2.0)
system.connect("a.x", "b.u", factor=-1.0)
exact = exp(-2) * (cos(1) + 3 * sin(1)), exp(-2) * (cos(1) - 2 * sin(1))  # a.x and b.x at 1 s

algorithms = {
    "Jacobi": Jacobi(),
    "Gauss-Seidel": GaussSeidel(),
    "Jacobi, linear inputs": Jacobi(LINEAR),
    "Jacobi, quadratic inputs": Jacobi(QUADRATIC),
}
figure = Figure(figsize=(6.0, 3.6), layout="constrained")
axes = figure.subplots()
for name, algorithm in algorithms.items():
    steps = [0.1, 0.05, 0.025, 0.0125]
    errors = []
    for step in steps:
        end = simulate(system, stop_time=1, step_size=step, algorithm=algorithm)
        errors.append(hypot(end["a.x"][-1] - exact[0], end["b.x"][-1] - exact[1]))
    axes.loglog(steps, errors, "o-", label=name)
    print(f"{name:25} error {errors[-1]:.1e} with steps of {steps[-1]} s")
axes.set(xlabel="step size in s", ylabel="error at 1 s")
axes.legend()
axes.grid(alpha=0.3)
figure.savefig("errors_over_step.svg")
