"""One system with all kinds of time: continuous plants, clocks, a shared event, and a schedule.

A plant (Model Exchange, FMI 2.0) has a periodic controller. Two blocks (Co-Simulation, FMI 3.0) collide, which is a shared
event. A logger writes a line whenever the upper one falls below a level. Model partitions (Scheduled Execution) are
activated by their own clocks and by the samples of the controller.
"""

from fmimaster import Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial
from fmimaster.system import Direction, LevelCrossing

system = SystemBuilder("everything")

# x' = -x + u; u = 1 - 2 x, sampled each 1/4 s
system.add("plant", reference_path("fmi2/Dahlquist.fmu"), interface="ModelExchange")
law = {"gain": -2, "offset": 1, "interval.counter": 1, "interval.resolution": 4}
system.add("controller", reference_path("fmi3/Sampler.fmu"), law)
system.connect("plant.x", "controller.u")
system.connect("controller.held", "plant.u")

system.add("upper", reference_path("fmi3/TwoMassUpper.fmu"))
system.add("lower", reference_path("fmi3/TwoMassLower.fmu"))
for quantity in "xva":
    system.connect(f"upper.{quantity}", f"lower.u_{quantity}")
    system.connect(f"lower.{quantity}", f"upper.u_{quantity}")
system.share_event("collision", "upper.collision", "lower.collision")

system.add("level", LevelCrossing(-3.0, Direction.FALLING))
system.add("logger", reference_path("fmi3/Logger.fmu"))
system.connect("upper.x", "level.u")
system.connect("level.tick", "logger.write")
system.connect("upper.v", "logger.u")

system.add("tasks", reference_path("fmi3/Partitions.fmu"), {"amount": 1})
system.connect("controller.sampled", "tasks.request")

values = ["plant.x", "controller.y", "upper.v", "lower.v", "logger.line", "tasks.total"]
clocks = ["controller.tick", "level.tick", "tasks.fast", "tasks.request", "tasks.later"]
simulation = Simulation(
    system.build(),
    stop_time=4,
    step_size=0.1,
    algorithm=Jacobi(Polynomial(2, 2)),
    event_clock=Predictive(),
    output_variables=[*values, *clocks],
)
results = simulation.run()
for event in results.events:
    print(f"{event.time:.5f} s  {event.name}")
print(results["logger.line"][-1])
figure = results.plot(title="One system with all kinds of time")
figure.savefig("everything.svg")
