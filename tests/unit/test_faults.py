"""Instances whose process is lost: stop, restart, drop. With FMUs in Python, so without processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu

from fmimaster import AccuracyWarning, FmuLostError, OptionError, Results, Simulation
from fmimaster.algorithms import GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.fmu import Drop, Restart, Stop

pytestmark = pytest.mark.usefixtures("each_executor", "not_apart")


def losable(is_lost: Callable[[float], bool], **capabilities: Any) -> PythonFmu:
    """x' = u - x, y = x by explicit steps, which is lost in steps for which a function of their time is true."""

    def step(v: Any, h: float) -> None:
        if is_lost(v.t):
            raise FmuLostError(
                f"fmi3DoStep of 'a' has lost its process: it was ended by SIGSEGV at t = {v.t:g} s.",
                how="was ended by SIGSEGV",
                signal="SIGSEGV",
                instance="a",
                function="fmi3DoStep",
            )
        v.x += h * (v.u - v.x)

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x},
        step=step,
        **capabilities,
    )


def once(at: float) -> Callable[[float], bool]:
    """True once, at the first time that is not before this one."""
    number = count()
    return lambda t: t >= at and next(number) == 0


def pair(is_lost: Callable[[float], bool], **capabilities: Any) -> Mapping[str, PythonFmu]:
    return {
        "a": losable(is_lost, **capabilities),
        "b": losable(lambda t: False, **capabilities),
    }


RING = ("a.y -> b.u", "b.y -> a.u")
TIMES = {"stop_time": 1.0, "step_size": 0.125}


def columns(results: Results) -> dict[str, list[float]]:
    return {name: results[name].tolist() for name in ("time", "a.y", "b.y")}


@pytest.mark.parametrize(
    "algorithm", [Jacobi(), GaussSeidel(), Waveform(Jacobi(), 3), Richardson(Jacobi())]
)
def test_a_restart_gives_the_bits_of_the_undisturbed_run(
    simulate: Callable[..., Results], algorithm: Any
) -> None:
    saves = {"can_get_and_set_fmu_state": True}
    expected = simulate(pair(lambda t: False, **saves), RING, algorithm=algorithm, **TIMES)
    found = simulate(
        pair(once(0.5), **saves), RING, algorithm=algorithm, on_fault="restart", **TIMES
    )
    assert columns(found) == columns(expected)
    assert found.statistics.notes[-1] == "'a' was started again in a new process once."


def test_the_log_of_a_restart(
    simulate: Callable[..., Results], caplog: pytest.LogCaptureFixture
) -> None:
    plain = {"algorithm": "Jacobi", "event_clock": "none"}  # loops are not looked for
    simulate(pair(once(0.5)), RING, on_fault=Restart(), **TIMES, **plain)
    lines = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert lines == [
        "fmi3DoStep of 'a' has lost its process: it was ended by SIGSEGV at t = 0.5 s. It is started again (1 of 3).",
        "'a' has a new process, brought to t = 0.5 s by repeating its calls: all 7 values that were read again are equal.",
    ]


def test_restarts_are_bounded(simulate: Callable[..., Results]) -> None:
    with pytest.raises(FmuLostError, match=r"SIGSEGV.*It was started again 3 times") as caught:
        simulate(pair(lambda t: t >= 0.5), RING, on_fault="restart:tries=3", **TIMES)
    assert caught.value.results.time[-1] == 0.5


def test_a_completed_step_allows_new_restarts(simulate: Callable[..., Results]) -> None:
    tried = set[float]()

    def first_time(t: float) -> bool:
        is_first = t not in tried
        tried.add(t)
        return is_first

    found = simulate(pair(first_time), RING, on_fault="restart:tries=1", **TIMES)
    assert columns(found) == columns(simulate(pair(lambda t: False), RING, **TIMES))


def test_a_dropped_instance_holds_its_outputs_and_marks_its_rows(
    simulate: Callable[..., Results],
) -> None:
    with pytest.warns(AccuracyWarning, match="'a' was dropped at t = 0.5 s") as caught:
        found = simulate(
            pair(lambda t: t >= 0.5), RING, on_fault="drop", output_variables=["a.y"], **TIMES
        )
    assert len(caught) == 1
    undisturbed = simulate(pair(lambda t: False), RING, **TIMES)
    held = found.time > 0.5
    np.testing.assert_array_equal(found["a.dropped"], held)
    np.testing.assert_array_equal(found["a.y"][~held], undisturbed["a.y"][~held])
    assert set(found["a.y"][held]) == {undisturbed["a.y"][found.time == 0.5][0]}
    assert not found["b.dropped"].any()


@pytest.mark.parametrize("policy", ["stop", "restart"])
def test_only_a_run_that_may_drop_instances_marks_rows(
    simulate: Callable[..., Results], policy: str
) -> None:
    found = simulate(pair(lambda t: False), RING, on_fault=policy, **TIMES)
    assert [*found] == ["time", "a.y", "b.y"]


def test_what_is_lost_before_its_first_outputs_cannot_be_dropped(
    simulation: Callable[..., Simulation],
) -> None:
    def lost(v: Any) -> float:
        raise FmuLostError("lost", how="ended", instance="a", function="fmi3GetFloat64")

    unit = PythonFmu(outputs={"y": lost})
    with pytest.raises(FmuLostError):
        simulation({"a": unit}, on_fault="drop", **TIMES).run()


def test_a_run_stops_by_default(simulate: Callable[..., Results]) -> None:
    with pytest.raises(FmuLostError) as caught:
        simulate(pair(lambda t: t >= 0.5), RING, **TIMES)
    assert caught.value.signal == "SIGSEGV"
    assert caught.value.results.time[-1] == 0.5


def test_names_of_policies(simulation: Callable[..., Simulation]) -> None:
    units = pair(lambda t: False)
    given = {"stop": Stop(), "Drop": Drop(), "restart:tries=5": Restart(5)}
    for text, policy in given.items():
        assert simulation(units, RING, on_fault=text).on_fault == policy
    with pytest.raises(OptionError, match="no way to handle a fault 'retry'"):
        simulation(units, RING, on_fault="retry")
    with pytest.raises(OptionError, match="tries is 0, expected 1 or more"):
        simulation(units, RING, on_fault="restart:tries=0")
