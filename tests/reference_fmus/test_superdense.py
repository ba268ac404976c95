"""Superdense: the tests SD1 to SD5 and SD13 of superdense time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fmpy.fmi1 import FMICallException
from reference_instance import Instance, Instantiate

EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}


def run(
    fmu: Instance, names: Sequence[str], stop: float, grid: float = 0.1
) -> list[tuple[float, int, str, Any]]:
    """(time, index, name, value) of held outputs at events: index 0 before, k after iteration k.

    Clocked outputs have the index of the iteration in which they are present, from 0.
    """
    rows, t, k = [], 0.0, 0
    while True:
        # Event Mode: of the initialization, or of an event
        index, again = 0, True
        while again:
            for name in names:
                clock = f"{name}.tick"
                if clock not in fmu.variables or fmu.active(clock):
                    rows.append((t, index, name, fmu[name]))
            update = fmu.update()
            again = update.again
            index += 1
        rows += [(t, index, n, fmu[n]) for n in names if f"{n}.tick" not in fmu.variables]
        fmu.fmu.enterStepMode()
        event = False
        while not event:
            if t >= stop:
                return rows
            end = (k + 1) * grid
            if update.next_time_defined:
                end = min(end, update.next_time)
            event, _, _, t = fmu.fmu.doStep(t, end - t)
            k += t >= (k + 1) * grid
        fmu.fmu.enterEventMode()


@pytest.fixture
def superdense(instantiate: Instantiate) -> Callable[[int], Instance]:
    return lambda test: instantiate("Superdense", "fmi3", **EVENTS).initialize(test=test)


def test_sd1_a_step(superdense: Callable[[int], Instance]) -> None:
    assert run(superdense(1), ["y"], 2.0)[2:] == [(1.0, 0, "y", 0.0), (1.0, 1, "y", 1.0)]


def test_sd2_delays_of_an_event_iteration(superdense: Callable[[int], Instance]) -> None:
    rows = run(superdense(2), ["d0", "d1", "d2", "d3"], 2.0)
    assert rows == [(1.0, k, f"d{k}", 7.0) for k in range(4)]


def test_sd3_a_counter_in_zero_time(superdense: Callable[[int], Instance]) -> None:
    rows = run(superdense(3), ["c"], 3.0)
    assert rows[2:] == [(2.0, k, "c", k) for k in range(6)]


@pytest.mark.parametrize("grid", [0.1, 0.3, 5.0])
def test_sd4_a_sawtooth(superdense: Callable[[int], Instance], grid: float) -> None:
    rows = run(superdense(4), ["x"], 3.5, grid)
    found = [row for row in rows if 0 < row[0] <= 3]
    assert found == [(t, k, "x", 1.0 - k) for t in (1.0, 2.0, 3.0) for k in (0, 1)]


def test_sd5_transient_modes(superdense: Callable[[int], Instance]) -> None:
    rows = run(superdense(5), ["mode"], 3.5)
    assert rows[2:] == [(3.0, k, "mode", k + 1) for k in range(4)]


def test_sd13_a_unit_that_ends_the_simulation(superdense: Callable[[int], Instance]) -> None:
    fmu = superdense(6)
    assert fmu.update()[4:] == (True, 1.5)
    fmu.fmu.enterStepMode()
    assert fmu.step(1.5) == (True, False, False, 1.5)
    fmu.fmu.enterEventMode()
    update = fmu.update()
    assert update.terminate
    assert not update.again


def test_an_importer_that_forgets_the_next_event_time_is_stopped(
    superdense: Callable[[int], Instance],
) -> None:
    fmu = superdense(1)
    fmu.update()
    fmu.fmu.enterStepMode()
    assert fmu.step(1.5) == (True, False, True, 1.0)


def test_without_early_return_a_step_over_an_event_is_an_error(instantiate: Instantiate) -> None:
    fmu = instantiate("Superdense", "fmi3", eventModeUsed=True).initialize(test=3)
    assert fmu.update()[4:] == (True, 2.0)
    fmu.fmu.enterStepMode()
    with pytest.raises(FMICallException, match="error"):
        fmu.step(2.5)
    assert "goes over the event at 2 s, and early return is not allowed." in fmu.log[-1]


def test_without_event_mode_all_is_done_in_the_step(instantiate: Instantiate) -> None:
    values = {}
    for test, name in enumerate(["y", "d3", "c", "x"], start=1):
        fmu = instantiate("Superdense", "fmi3").initialize(test=test)
        fmu.step(2.5)
        values[name] = fmu[name]
    assert values == {"y": 1.0, "d3": 7.0, "c": 5, "x": 0.5}


def test_a_state_between_two_iterations(
    superdense: Callable[[int], Instance], instantiate: Instantiate
) -> None:
    fmu = superdense(2)
    fmu.update()
    fmu.fmu.enterStepMode()
    fmu.step(1.0)
    fmu.fmu.enterEventMode()
    assert fmu.active("d0.tick")
    fmu.update()
    state = fmu.fmu.getFMUState()
    for _ in range(2):
        assert [fmu.active(f"d{k}.tick") for k in range(4)] == [False, True, False, False]
        assert fmu.update().again
        assert fmu.update().again
        assert not fmu.update().again
        fmu.fmu.setFMUState(state)
    fmu.fmu.freeFMUState(state)
