"""A controller in Python: a PI controller with a limit holds an FMU at a set point."""

from fmimaster import PythonComponent, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import GaussSeidel


class Controller(PythonComponent):
    """PI controller; the integral stops while the output is at its limit."""

    inputs = {"measured": 0.0}
    outputs = {"command": 0.0}
    parameters = {"target": 1.0, "gain": 4.0, "reset_time": 0.5, "limit": 3.0}
    states = {"integral": 0.0}

    def step(self, t: float, h: float) -> None:
        error = self.target - self.measured
        command = self.gain * (error + self.integral / self.reset_time)
        self.command = max(-self.limit, min(self.limit, command))
        if command == self.command:
            self.integral += error * h


system = SystemBuilder("controlled")
system.add("plant", reference_path("fmi3/Dahlquist.fmu"), {"k": 2.0, "x": 0.0})
system.add("controller", Controller(), {"target": 1.2})
system.connect("plant.x", "controller.measured")
system.connect("controller.command", "plant.u")

results = simulate(system, stop_time=4, step_size=0.02, algorithm=GaussSeidel())
print(f"x = {results['plant.x'][-1]:.4f} at the end")
results.plot(["plant.x", "controller.command"]).savefig("python_controller.svg")
