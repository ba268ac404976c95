"""Algebraic loops with discrete variables, in Initialization Mode and in Event Mode: loops.md, section 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nan
from typing import Any

import pytest
from python_fmu import Bench, Connections, PythonFmu

from fmimaster.base.errors import LoopError
from fmimaster.fmu.instance import UpdateAnswer
from fmimaster.loops.discrete import MOST_SWEEPS
from fmimaster.plan.policy import EventUse
from fmimaster.program.instructions.steps import Save
from fmimaster.results.results import Results
from fmimaster.system.model import DataType, Variability

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

RING = ["a.y -> b.u", "b.y -> a.u"]

BOOLEAN = {"type": DataType.BOOLEAN}


class Mode:
    """Where a loop is: then its units have these dependencies and capabilities."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: dict[str, Any] = {}
        if name == "Event Mode":
            self.options = {"initial_depends": {"y": []}, "has_event_mode": True}

    @property
    def use(self) -> EventUse:
        """How the run uses events."""
        return EventUse(event_mode=self.name == "Event Mode")

    def unit(self, f: Callable[..., Any], kinds: str = "bb", **inputs: Any) -> PythonFmu:
        """y = f(u, …) with other inputs that nothing feeds; ``kinds`` of u and y: b for Boolean, f for Float64."""
        attributes: dict[str, Any] = dict.fromkeys(inputs, BOOLEAN)
        attributes |= {n: BOOLEAN for n, kind in zip("uy", kinds, strict=True) if kind == "b"}
        return PythonFmu(
            inputs={"u": kinds[0] == "f" and 0.0, **inputs},
            outputs={"y": lambda v: f(v.u, **{n: getattr(v, n) for n in inputs})},
            depends={"y": ["u", *inputs]},
            attributes=attributes,
            **self.options,
        )


INITIALIZATION, EVENTS = Mode("Initialization Mode"), Mode("Event Mode")


@pytest.fixture(params=[INITIALIZATION, EVENTS], ids=lambda mode: mode.name)
def mode(request: pytest.FixtureRequest) -> Mode:
    found: Mode = request.param
    return found


def same(u: Any) -> Any:
    return u


def solved(
    units: Mapping[str, PythonFmu],
    start: Mapping[str, Any] | None = None,
    mode: Mode = INITIALIZATION,
    connections: Connections = RING,
) -> Bench:
    bench = Bench(units, connections, start, use=mode.use)
    assert bench.initialize().stopped is None
    return bench


def failure(
    units: Mapping[str, PythonFmu],
    start: Mapping[str, Any] | None = None,
    mode: Mode = INITIALIZATION,
) -> LoopError:
    with pytest.raises(LoopError) as caught:
        Bench(units, RING, start, use=mode.use).initialize()
    return caught.value


# The cases ------------------------------------------------------------------------------------------------------------


def test_a_ring_of_a_negation_oscillates_with_period_two(mode: Mode) -> None:
    """loops.md 7.2, B1."""
    error = failure({"a": mode.unit(lambda u: not u), "b": mode.unit(same)}, mode=mode)
    assert "discrete loop oscillates, period 2" in str(error)
    assert error.reason == "discrete loop oscillates, period 2"
    assert "a.y = false; a.y = true" in str(error) or "a.y = true; a.y = false" in str(error)
    assert error.loop == ("a.u", "a.y", "b.u", "b.y")
    assert error.sweeps == 2


@pytest.mark.parametrize("started", ["a.u", "b.u"])
@pytest.mark.parametrize(
    ("s", "r", "start", "q"),
    [(0, 0, 1, 1), (0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 0)],
)
def test_of_two_solutions_of_a_latch_the_start_value_decides(
    s: int, r: int, start: int, q: int, started: str
) -> None:
    """loops.md 7.2, B2."""
    unit = INITIALIZATION.unit
    latch = unit(lambda u, s, r: bool(s or (u and not r)), s=bool(s), r=bool(r))
    bench = solved({"a": latch, "b": unit(same)}, {started: bool(start)})
    assert bench.value("a.y") == bool(q)
    assert bench.value("b.y") == bool(q)


@pytest.mark.parametrize(("s", "r", "q"), [(0, 0, 1), (1, 0, 1), (0, 1, 0)])
def test_a_latch_is_solved_in_event_mode_from_what_it_was_before(s: int, r: int, q: int) -> None:
    """loops.md 7.2, B2."""
    unit = EVENTS.unit
    latch = unit(lambda u, s, r: bool(s or (u and not r)), s=bool(s), r=bool(r))
    bench = solved({"a": latch, "b": unit(same)}, {"a.u": True, "b.u": True}, EVENTS)
    assert bench.value("a.y") == bool(q)


@pytest.mark.parametrize(("start", "y1", "y2"), [(0.4, 0, 0.4), (0.6, 1, 0.6)])
def test_of_two_solutions_of_a_mixed_loop_the_start_value_decides(
    start: float, y1: int, y2: float, mode: Mode
) -> None:
    """loops.md 7.2, B3."""
    units = {
        "a": mode.unit(lambda u: u > 0.5, "fb"),
        "b": mode.unit(lambda u: 0.4 + 0.2 * u, "bf"),
    }
    # in Event Mode it is solved from what the initialization has left, where it is no loop
    bench = solved(units, {"a.u": start} | ({"b.u": y1} if mode is EVENTS else {}), mode)
    assert (bench.value("a.y"), bench.value("b.y")) == (y1, pytest.approx(y2, rel=1e-15))


@pytest.mark.parametrize("start", [0.4, 0.6])
def test_a_mixed_loop_without_solution_oscillates(start: float, mode: Mode) -> None:
    """loops.md 7.2, B4."""
    units = {
        "a": mode.unit(lambda u: u <= 0.5, "fb"),
        "b": mode.unit(lambda u: 0.4 + 0.2 * u, "bf"),
    }
    assert failure(units, {"a.u": start}, mode).reason == "discrete loop oscillates, period 2"


@pytest.mark.parametrize("order", ["abc", "bca", "cba"])
def test_the_order_of_listing_changes_nothing(order: str, mode: Mode) -> None:
    """loops.md 7.4, for discrete loops: the same solution of two, and the same states in a message."""
    units = {"a": mode.unit(lambda u: not u), "b": mode.unit(same), "c": mode.unit(same)}
    connections = ["a.y -> b.u", "b.y -> c.u", "c.y -> a.u"]
    with pytest.raises(LoopError) as caught:
        Bench({n: units[n] for n in order}, connections, use=mode.use).initialize()
    assert "States: a.y = " in str(caught.value)
    units["a"] = mode.unit(same)
    start = dict.fromkeys(["a.u", "b.u", "c.u"], True)
    bench = Bench({n: units[n] for n in order}, connections, start, use=mode.use)
    assert bench.initialize().stopped is None
    assert [bench.value(f"{n}.y") for n in "abc"] == [True] * 3


# What is between -------------------------------------------------------------------------------------------------------


def test_a_continuous_loop_is_solved_with_the_discrete_values_frozen(mode: Mode) -> None:
    """loops.md 5: y = 2 - 3 y + s with s = y > 0.6: from s = 0, y = 0.5; from s = 1, y = 0.75."""
    continuous = PythonFmu(
        inputs={"u": 0.0, "s": False},
        outputs={"y": lambda v: 2 - 3 * v.u + v.s},
        depends={"y": ["u", "s"]},
        attributes={"s": BOOLEAN},
        **mode.options,
    )
    units = {"a": continuous, "b": mode.unit(same, "ff"), "c": mode.unit(lambda u: u > 0.6, "fb")}
    connections = ["a.y -> b.u", "b.y -> a.u", "b.y -> c.u", "c.y -> a.s"]
    for s, y in ((False, 0.5), (True, 0.75)):
        start = {"a.s": s, "c.u": y}
        of_all = dict.fromkeys(["a.u", "b.u"], start["c.u"]) if mode is EVENTS else {}
        bench = solved(units, start | of_all, mode, connections)
        assert (bench.value("c.y"), bench.value("a.y")) == (s, pytest.approx(y, rel=1e-8))


def test_a_loop_through_texts_and_integers_is_compared_exactly() -> None:
    units = {
        "a": PythonFmu(
            inputs={"u": ""},
            outputs={"y": lambda v: len(v.u)},
            depends={"y": ["u"]},
            attributes={"u": {"type": DataType.STRING}, "y": {"type": DataType.INT32}},
        ),
        "b": PythonFmu(
            inputs={"u": 0},
            outputs={"y": lambda v: "x" * min(v.u + 1, 4)},
            depends={"y": ["u"]},
            attributes={"u": {"type": DataType.INT32}, "y": {"type": DataType.STRING}},
        ),
    }
    bench = solved(units)
    assert (bench.value("a.y"), bench.value("b.y")) == (4, "xxxx")


def counter(top: int) -> dict[str, PythonFmu]:
    """A loop that counts from 0 to the top."""
    integer = {name: {"type": DataType.INT32} for name in "uy"}
    units = {}
    for name, f in {"a": lambda v: min(v.u + 1, top), "b": lambda v: v.u}.items():
        units[name] = PythonFmu(
            inputs={"u": 0}, outputs={"y": f}, depends={"y": ["u"]}, attributes=integer
        )
    return units


def test_a_loop_is_given_up_after_a_hundred_sweeps() -> None:
    assert solved(counter(MOST_SWEEPS - 1)).value("b.y") == MOST_SWEEPS - 1
    error = failure(counter(10 * MOST_SWEEPS))
    assert error.reason == "discrete loop not solved"
    assert error.sweeps <= MOST_SWEEPS + 1
    assert f"a.y = {MOST_SWEEPS}" in str(error)


# At an event in a run -------------------------------------------------------------------------------------------------


def setter(at: float) -> PythonFmu:
    """Its output becomes true at a time event."""

    def update(v: Any) -> UpdateAnswer:
        if v.t >= at:
            v.q = True
        return UpdateAnswer(next_event_time=inf if v.q else at)

    return PythonFmu(
        states={"q": False},
        outputs={"y": lambda v: v.q},
        update=update,
        attributes={"q": BOOLEAN, "y": BOOLEAN},
        has_event_mode=True,
    )


def test_a_latch_that_is_set_at_an_event_keeps_its_value(simulate: Simulate) -> None:
    """loops.md 7.2, B2, in Event Mode during a run."""
    unit = EVENTS.unit
    latch = unit(lambda u, s: bool(s or u), s=False)
    units = {"a": latch, "b": unit(same), "c": setter(0.5)}
    rows = simulate(units, [*RING, "c.y -> a.s"], event_mode=True, stop_time=1, step_size=0.25)
    assert rows["b.y"].tolist() == [False, False, False, True, True, True][: rows.rows]


def test_a_loop_that_oscillates_at_an_event_names_its_time(simulate: Simulate) -> None:
    """loops.md 7.2, B1, in Event Mode during a run."""
    unit = EVENTS.unit
    units = {"a": unit(lambda u, s: s and not u, s=False), "b": unit(same), "c": setter(0.5)}
    with pytest.raises(LoopError, match=r"at t = 0\.5 s: discrete loop oscillates, period 2") as e:
        simulate(units, [*RING, "c.y -> a.s"], event_mode=True, stop_time=1, step_size=0.25)
    assert e.value.results is not None
    assert e.value.results["time"][-1] >= 0.25


# Step Mode ------------------------------------------------------------------------------------------------------------


def clock() -> PythonFmu:
    """Its output is true from 0.5 s on."""
    return PythonFmu(outputs={"y": lambda v: v.t > 0.4}, attributes={"y": BOOLEAN})


def test_a_mixed_loop_without_solution_oscillates_in_step_mode(simulate: Simulate) -> None:
    """loops.md 7.2, B4, in Step Mode by going back: it has no solution from 0.5 s on."""
    unit = INITIALIZATION.unit
    units = {
        "a": unit(lambda u, s: s and u <= 0.5, "fb", s=False),
        "b": unit(lambda u: 0.4 + 0.2 * u, "bf"),
        "c": clock(),
    }
    with pytest.raises(LoopError, match=r"at t = 0\.5 s: discrete loop oscillates, period 2"):
        simulate(units, [*RING, "c.y -> a.s"], stop_time=1, step_size=0.25)


def test_a_mixed_loop_is_solved_in_step_mode_with_its_discrete_values_frozen(
    simulate: Simulate,
) -> None:
    """loops.md 5, in Step Mode by going back: y = 2 - 3 y + s; s rises at 0.5 s, and t = y > 0.6 with it."""
    continuous = PythonFmu(
        inputs={"u": 0.0, "s": False},
        outputs={"y": lambda v: 2 - 3 * v.u + v.s},
        depends={"y": ["u", "s"]},
        attributes={"s": BOOLEAN},
    )
    unit = INITIALIZATION.unit
    units = {
        "a": continuous,
        "b": unit(same, "ff"),
        "d": unit(lambda u, s: s and u > 0.4, "fb", s=False),
        "c": clock(),
    }
    connections = ["a.y -> b.u", "b.y -> a.u", "b.y -> d.u", "d.y -> a.s", "c.y -> d.s"]
    plain = {"algorithm": "Jacobi", "event_clock": "none"}
    rows = simulate(units, connections, stop_time=1, step_size=0.25, **plain)
    assert rows["a.y"].tolist() == pytest.approx([0.5, 0.5, 0.75, 0.75, 0.75], rel=1e-8)
    assert rows["b.y"].tolist() == pytest.approx([0.5, 0.5, 0.75, 0.75, 0.75], rel=1e-8)


def test_a_loop_over_inputs_that_are_set_in_event_mode_only_is_none_in_steps() -> None:
    """The algorithm steps its members as if there were no loop, whether or not they can go back."""
    units = {name: EVENTS.unit(same) for name in "ab"}
    in_events = Bench(units, RING, use=EVENTS.use)
    assert in_events.plan.step_groups == ()
    assert not in_events.plan.exists_in_steps(in_events.plan.step_loops[0])
    assert not any(isinstance(i, Save) for i in in_events.programs.attempt.instructions)
    without = Bench(units, RING)
    assert without.plan.exists_in_steps(without.plan.step_loops[0])
    assert [set(group) for group in without.plan.step_groups] == [{0, 1}]


# Loops that are assumed -----------------------------------------------------------------------------------------------


def test_an_assumed_loop_may_take_as_many_sweeps_as_it_is_cut_at_outputs() -> None:
    """loops.md 1, as G3: a chain over 150 inputs and outputs of one unit that declares no dependencies."""
    n = MOST_SWEEPS + 50
    first = f"y{0:03}"

    def output(k: int) -> Callable[[Any], bool]:
        return lambda v: k == 0 or bool(getattr(v, f"u{k:03}"))

    names = [f"{kind}{k:03}" for kind in "uy" for k in range(n)]
    chain = PythonFmu(
        inputs={f"u{k:03}": False for k in range(n)},
        outputs={f"y{k:03}": output(k) for k in range(n)},
        undeclared=[f"y{k:03}" for k in range(n)],
        attributes=dict.fromkeys(names, BOOLEAN),
    )
    connections = [f"a.y{k:03} -> a.u{k + 1:03}" for k in range(n - 1)]
    bench = solved({"a": chain}, connections=connections)
    (loop,) = bench.plan.initial_loops
    assert loop.assumed
    assert all(bench.value(f"a.y{k:03}") for k in range(n))
    assert bench.value(f"a.{first}")


def test_the_message_of_an_assumed_loop_tells_that_it_is_one() -> None:
    unit = PythonFmu(
        inputs={"u": False},
        outputs={"y": lambda v: not v.u},
        undeclared=["y"],
        attributes=dict.fromkeys("uy", BOOLEAN),
    )
    error = failure({"a": unit, "b": INITIALIZATION.unit(same)})
    assert "It may not be a loop: an FMU does not declare" in str(error)


# Numbers that are declared as discrete --------------------------------------------------------------------------------


DISCRETE = {"variability": Variability.DISCRETE}


def affine(mode: Mode, gain: float, constant: float) -> PythonFmu:
    """Some tools declare all variables as discrete."""
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: gain * v.u + constant},
        depends={"y": ["u"]},
        attributes=dict.fromkeys("uy", DISCRETE),
        **mode.options,
    )


@pytest.mark.parametrize("gain", [-3.0, 0.9, -1.0, -0.999], ids=str)
def test_numbers_that_are_declared_as_discrete_are_solved_for(gain: float, mode: Mode) -> None:
    """Plain sweeps diverge, converge slowly, oscillate for ever, oscillate slowly."""
    units = {"a": affine(mode, gain, 1.0), "b": affine(mode, 1.0, 0.0)}
    bench = solved(units, mode=mode)
    (loop,) = bench.plan.step_loops
    assert loop.discrete
    assert bench.value("a.y") == pytest.approx(1 / (1 - gain), rel=1e-7)
    assert bench.value("b.y") == pytest.approx(1 / (1 - gain), rel=1e-7)


def test_numbers_beside_a_boolean_are_solved_for_as_soon_as_it_settles(mode: Mode) -> None:
    """y = 1 - 3 y + s is 1/4 + s/4. With s = y < 0.6, s = 1 is a solution; with s = y < 0.4 there is none."""
    for threshold, y in ((0.6, 0.5), (0.4, None)):
        pair = PythonFmu(
            inputs={"u": 0.0, "s": False},
            outputs={"y": lambda v: 1 - 3 * v.u + v.s},
            depends={"y": ["u", "s"]},
            attributes={**dict.fromkeys("uy", DISCRETE), "s": BOOLEAN},
            **mode.options,
        )
        units = {
            "a": pair,
            "b": affine(mode, 1.0, 0.0),
            "c": PythonFmu(
                parameters={"at": threshold},
                inputs={"u": 0.0},
                outputs={"y": lambda v: v.u < v.at},
                depends={"y": ["u"]},
                attributes={"u": DISCRETE, "y": BOOLEAN},
                **mode.options,
            ),
        }
        connections = ["a.y -> b.u", "b.y -> a.u", "b.y -> c.u", "c.y -> a.s"]
        if y is None:
            with pytest.raises(LoopError):
                Bench(units, connections, use=mode.use).initialize()
        else:
            start = dict.fromkeys(["a.u", "b.u", "c.u"], y) | {"a.s": True}
            bench = solved(units, start, mode, connections)
            assert (bench.value("a.y"), bench.value("c.y")) == (pytest.approx(y), True)


def function(f: Callable[[float], float]) -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: f(v.u)},
        depends={"y": ["u"]},
        attributes=dict.fromkeys("uy", DISCRETE),
    )


@pytest.mark.parametrize(
    "f",
    [lambda u: u * u + 1, lambda u: 1e200 * u * u + 1, lambda u: nan if u else 1.0],
    ids=["slowly", "at once", "NaN"],
)
def test_numbers_that_become_infinite_are_no_solution(f: Callable[[float], float]) -> None:
    error = failure({"a": function(f), "b": function(same)})
    assert error.reason == "diverged"


def test_an_infinite_number_of_an_fmu_itself_is_a_value() -> None:
    """As the time of an event that never happens."""
    bench = solved({"a": function(lambda u: u if u > 1.0 else inf), "b": function(same)})
    assert bench.value("b.y") == inf


def test_a_start_value_behind_a_factor_of_zero_tells_nothing() -> None:
    """y = u + 1, u <- 0 y + 2."""
    units = {"a": function(lambda u: u + 1), "b": function(same)}
    connections: Connections = ["a.y -> b.u", ("b.y -> a.u", {"factor": 0.0, "offset": 2.0})]
    bench = solved(units, {"a.u": 1.0}, connections=connections)
    assert bench.value("b.y") == 3.0
