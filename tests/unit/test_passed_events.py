"""Events that FMUs execute alone are counted from rows, in a run without an event clock."""

from __future__ import annotations

import numpy as np
import pytest
from command_line import reference

from fmimaster import AccuracyWarning, Simulation
from fmimaster.results.passed_events import Indicated, PassedEvents
from fmimaster.results.results import Results
from fmimaster.run import Backend

PLAIN = {"algorithm": "Jacobi", "event_clock": "none", "step_size": 0.01, "stop_time": 5}


def plain_run(version: str, **settings: object) -> Results:
    system = reference(f"systems/two-mass-b3-{version}.ssp")
    with pytest.warns(AccuracyWarning, match="no event clock"):
        return Simulation(system, **PLAIN, **settings).run()  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.REFERENCE])
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_run_without_an_event_clock_tells_how_many_events_it_has_passed(
    version: str, backend: Backend
) -> None:
    """FMI 2.0: by the outputs that count them; FMI 3.0: by indicators. It is the same motion."""
    results = plain_run(version, backend=backend)
    counted = plain_run("fmi2")["upper.collision.out"][-1]
    assert counted > 1
    [text] = [t for t in results.statistics.warnings if "no event clock" in t]
    said = f"{counted} by 'upper.collision', {counted} by 'lower.collision'"
    assert text.endswith(f"Events passed: about {2 * counted} ({said})")


@pytest.mark.parametrize("length", [1, 7, 100])
def test_the_number_does_not_depend_on_how_rows_come(length: int) -> None:
    times = np.linspace(0.0, 9.9, 100)
    height = np.abs(np.sin(times))  # it is reflected at 0
    slope = np.cos(times) * np.sign(np.sin(times))
    block = {
        "float": np.column_stack([height, slope]),
        "int": (times // np.pi).astype(int)[:, None],
    }
    events = [Indicated("ball.floor", None, ((0, 1),)), Indicated("ball.other", ("int", 0), ())]
    passed = PassedEvents(events, "float")
    for k in range(0, len(times), length):
        other = PassedEvents(events, "float")  # as after a checkpoint
        other.remember(passed.remembered())
        other.look(times[k : k + length], {t: v[k : k + length] for t, v in block.items()})
        passed = other
    assert passed.text() == "Events passed: about 6 (3 by 'ball.floor', 3 by 'ball.other')"


def test_without_events_nothing_is_told() -> None:
    passed = PassedEvents([Indicated("ball.floor", None, ((0, -1),))], "float")
    passed.look(np.linspace(0.0, 2.0, 3), {"float": np.array([[1.0], [2.0], [1.5]])})
    assert passed.text() == ""
