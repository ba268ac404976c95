"""A step size for each component: a slow one steps every 0.4 s, a fast one every 0.05 s."""

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.steps import MultiRate

system = SystemBuilder("two rates")
system.add("slow", reference_path("fmi3/Dahlquist.fmu"), {"k": 0.5})
system.add("fast", reference_path("fmi3/Dahlquist.fmu"), {"k": 8.0, "x": 0.0})
system.connect("slow.x", "fast.u", factor=8.0)
system.connect("fast.x", "slow.u", factor=-0.5)

rates = MultiRate(components={"slow": "0.4", "fast": "0.05"})
results = simulate(system, step_size=rates, stop_time=3)
for instance in results.statistics.instances:
    print(f"{instance.name}: {instance.calls} steps")
results.plot(["slow.x", "fast.x"], communication_points=True).savefig("multi_rate.svg")
