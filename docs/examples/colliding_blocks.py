"""Events: two blocks on springs collide, and the upper one hits the ceiling.

The predictive event clock ends steps at the events, and no step is undone.
"""

from fmimaster import reference_path, simulate
from fmimaster.algorithms import Jacobi
from fmimaster.events import Predictive
from fmimaster.inputs import Polynomial

results = simulate(
    reference_path("systems/two-mass-b1-fmi3.ssp"),
    stop_time=7,
    step_size=0.1,
    algorithm=Jacobi(Polynomial(2, 2)),
    event_clock=Predictive(),
)
for event in results.events:
    print(f"{event.time:.5f} s  {event.name}")
figure = results.plot(["*.x"], communication_points=True, title="Two colliding blocks")
figure.savefig("colliding_blocks.svg")
