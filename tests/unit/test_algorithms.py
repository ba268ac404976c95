"""What holds for every co-simulation algorithm: which row belongs to which time, and which calls are made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.inputs.polynomial import FIRST_ORDER, Polynomial
from fmimaster.results.results import Results
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

EVERY: list[Any] = [
    pytest.param(kind(*inputs), id=f"{kind.__name__}{list(inputs) or ''}")
    for kind in (Jacobi, GaussSeidel)
    for inputs in ((), (FIRST_ORDER,), (Polynomial(2, 0),), (Polynomial(2, 1),))
]
every_algorithm = pytest.mark.parametrize("algorithm", EVERY)

INTERPOLATES: dict[str, Any] = {"max_input_derivative_order": 1}


def clock() -> PythonFmu:
    """Tells the time at which it stands."""
    return PythonFmu(
        outputs={"t": lambda v: v.t, "one": lambda v: 1.0},
        attributes={"one": {"derivative_of": "t"}},
    )


def echo(**options: Any) -> PythonFmu:
    """Tells its input, directly, and the integral of it as it was at the begin of each step."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.u

    return PythonFmu(
        inputs={"u": -1.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.u, "integral": lambda v: v.x},
        depends={"y": ["u"]},
        step=step,
        **options,
    )


def pair(**options: Any) -> tuple[dict[str, PythonFmu], list[str]]:
    return {"clock": clock(), "echo": echo(**options)}, ["clock.t -> echo.u"]


def ring() -> tuple[dict[str, PythonFmu], list[str]]:
    """Two integrators and a direct gain in a ring, with and without polynomials."""
    units = {"a": echo(**INTERPOLATES), "b": echo(), "g": echo(**INTERPOLATES)}
    return units, ["a.integral -> b.u", "b.integral -> g.u", "g.y -> a.u"]


# Rows -----------------------------------------------------------------------------------------------------------------


@every_algorithm
@pytest.mark.parametrize("start", [0, 0.3])
def test_row_k_belongs_to_time_k(simulate: Simulate, algorithm: Algorithm, start: float) -> None:
    r = simulate(*pair(), algorithm=algorithm, start_time=start, stop_time=2.3, step_size=0.1)
    assert r["clock.t"].tolist() == r.time.tolist()
    assert r.time.tolist() == [k / 10 for k in range(round(10 * start), 24)]


@every_algorithm
def test_the_first_row_is_at_the_start_after_the_complete_exchange(
    simulate: Simulate, algorithm: Algorithm
) -> None:
    r = simulate(*pair(), algorithm=algorithm, start_time=5, stop_time=6, step_size=0.5)
    assert (r.time[0], r["echo.y"][0], r["echo.integral"][0]) == (5.0, 5.0, 0.0)


@every_algorithm
def test_no_row_is_recorded_twice(simulate: Simulate, algorithm: Algorithm) -> None:
    r = simulate(*pair(), algorithm=algorithm, stop_time=1, step_size=0.3)
    assert r.time.tolist() == [0.0, 0.3, 0.6, 0.9, 1.0]
    assert r.index.tolist() == [0] * 5


def test_under_jacobi_each_connection_is_late_by_one_step(simulate: Simulate) -> None:
    r = simulate(*pair(), algorithm=Jacobi(), stop_time=1, step_size=0.1)
    assert r["echo.y"].tolist() == [0.0, *r.time[:-1]]


def test_under_gauss_seidel_a_connection_that_leads_forward_is_not_late(simulate: Simulate) -> None:
    r = simulate(*pair(), algorithm=GaussSeidel(), stop_time=1, step_size=0.1)
    assert r["echo.y"].tolist() == r.time.tolist()


@pytest.mark.parametrize("names", [["clock", "echo"], ["echo", "clock"]])
@every_algorithm
def test_the_order_of_listing_changes_no_value(
    simulate: Simulate, algorithm: Algorithm, names: list[str]
) -> None:
    settings = {"algorithm": algorithm, "stop_time": 1, "step_size": 0.1}
    expected = simulate(*pair(), **settings)
    units, connections = pair()
    found = simulate({name: units[name] for name in names}, connections, **settings)
    assert all(np.array_equal(found[n], expected[n]) for n in expected.names)


def test_results_and_connections_carry_what_was_read_right_after_the_step(
    simulate: Simulate,
) -> None:
    # 'read, then set': the direct output of echo is that of the input which its last step had, here and downstream
    units = {"clock": clock(), "first": echo(), "second": echo()}
    connections = ["clock.t -> first.u", "first.y -> second.u"]
    r = simulate(units, connections, algorithm=Jacobi(), stop_time=1, step_size=0.25)
    assert r["first.y"].tolist() == [0, 0, 0.25, 0.5, 0.75]
    assert r["second.y"].tolist() == [0, 0, 0, 0.25, 0.5]
    assert units["second"].instances[0].was_set("u")[-4:] == [0, 0, 0.25, 0.5]


@every_algorithm
def test_rows_do_not_depend_on_how_they_are_cut_into_blocks(
    simulate: Simulate, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.run.rows.MOST_ROWS", 100)
    r = simulate(*pair(), algorithm=algorithm, stop_time=0.25, step_size="1/1000")
    assert r.time.tolist() == [k / 1000 for k in range(251)]
    assert r["clock.t"].tolist() == r.time.tolist()
    assert (r.statistics.steps, r.statistics.rejections) == (250, 0)


# Calls ----------------------------------------------------------------------------------------------------------------


@every_algorithm
def test_all_calls_are_allowed_and_the_last_one_is_terminate(
    simulate: Simulate, algorithm: Algorithm
) -> None:
    """A guard around each Python FMU refuses calls that are not allowed."""
    units, connections = ring()
    simulate(units, connections, {"a.x": 1.0}, algorithm=algorithm, stop_time=1, step_size=0.3)
    for unit in units.values():
        assert unit.instances[0].log[-1].call is FmiCall.TERMINATE


@every_algorithm
def test_in_step_mode_nothing_is_read_between_setting_and_stepping(
    simulate: Simulate, algorithm: Algorithm
) -> None:
    units, connections = ring()
    simulate(units, connections, algorithm=algorithm, stop_time=1, step_size=0.25)
    for unit in units.values():
        calls = [call for call, _ in unit.instances[0].log]
        in_step_mode = calls[calls.index(FmiCall.EXIT_INITIALIZATION_MODE) + 1 :]
        # read once, then set, step, read, four times
        assert in_step_mode == [
            FmiCall.GET,
            *[FmiCall.SET_INPUT, FmiCall.DO_STEP, FmiCall.GET] * 4,
            FmiCall.TERMINATE,
        ]


@every_algorithm
@pytest.mark.parametrize("step", [0.1, "1/60", 0.3])
def test_each_step_begins_where_the_last_one_ended_bit_by_bit(
    simulate: Simulate, algorithm: Algorithm, step: float | str
) -> None:
    units, connections = ring()
    simulate(units, connections, algorithm=algorithm, start_time=0.2, stop_time=2, step_size=step)
    for unit in units.values():
        steps = unit.instances[0].called(FmiCall.DO_STEP)
        assert steps[0][0] == 0.2
        assert all(t + h == following for (t, h), (following, _) in pairwise(steps))
        assert sum(steps[-1]) == 2.0
        assert all(h > 0 for _, h in steps)


@every_algorithm
def test_instances_are_freed_exactly_once(simulate: Simulate, algorithm: Algorithm) -> None:
    units, connections = ring()
    simulate(units, connections, algorithm=algorithm, stop_time=1, step_size=0.5)
    assert [i.frees for unit in units.values() for i in unit.instances] == [1, 1, 1]


@every_algorithm
def test_nothing_but_the_plan_is_needed_to_write_the_programs(algorithm: Algorithm) -> None:
    assert algorithm == type(algorithm)(inputs=algorithm.inputs)  # type: ignore[attr-defined, call-arg]
    assert algorithm.order == 1
