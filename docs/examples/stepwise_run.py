"""A stepwise run: a loop in Python reads outputs and sets inputs between the steps of a room."""

from fmimaster import Simulation, reference_path

room = Simulation(
    reference_path("fmi3/ThermostatRoom.fmu"),
    stop_time=20,
    step_size=0.1,
    output_variables=["x", "q"],
)
switched = 0
with room.start() as run:
    while not run.is_finished:
        heat = run["x"] < (21.0 if run["q"] else 19.5)
        switched += heat != run["q"]
        run["q"] = heat
        run.advance(0.5)
print(
    f"switched {switched} times, {run.results['x'].min():.1f} to {run.results['x'].max():.1f} degC"
)
run.results.plot(title="A thermostat as a loop").savefig("stepwise_run.svg")
