"""The modes of Gauss-Seidel, its levels, and connections that are stale on purpose, with FMUs written in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from python_fmu import PythonFmu, plan_of

from fmimaster.algorithms import (
    AlongLine,
    AtEnd,
    AtMiddle,
    Corrected,
    GaussSeidel,
    InputMode,
    Jacobi,
    Subsequence,
    Waveform,
)
from fmimaster.algorithms.assemble import ProgramsRequest, assemble
from fmimaster.base.errors import OptionError
from fmimaster.configure import named, reading
from fmimaster.inputs.polynomial import ADAPTIVE, FIRST_ORDER, Polynomial
from fmimaster.plan.step_groups import Loops
from fmimaster.results.results import Results
from fmimaster.sequences.levels import level_sets
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

MODES = {name: reading.mode(name) for name in named.MODES}

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

TAKES_LINES: dict[str, Any] = {"max_input_derivative_order": 1}
DIVISIBLE: dict[str, Any] = {"can_handle_variable_communication_step_size": True}
INDIVISIBLE: dict[str, Any] = {"can_handle_variable_communication_step_size": False}


def clock() -> PythonFmu:
    """Its output is the time at which it stands: a straight line."""
    return PythonFmu("clock", outputs={"y": lambda v: v.t})


def echo(**options: Any) -> PythonFmu:
    """Its output is its input, plus ten times the integral of it: both are those of a straight line, if it is given one."""

    def step(v: Any, h: float) -> None:
        v.x += h * (v.course("u", v.t) + v.course("u", v.t + h)) / 2
        v.u = v.course("u", v.t + h)

    return PythonFmu(
        "echo",
        inputs={"u": 0.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.u + 10 * v.x},
        depends={"y": ["u"]},
        step=step,
        **options,
    )


ONE_STEP: dict[str, Any] = {"stop_time": 1, "step_size": 1}
FED = ["source.y -> echo.u", "echo.y -> sink.u"]


def chain(source: PythonFmu, echo: PythonFmu) -> dict[str, PythonFmu]:
    """A source feeds the echo; something uses the output of the echo."""
    return {"source": source, "echo": echo, "sink": PythonFmu(inputs={"u": 0.0})}


def follow(simulate: Simulate, mode: InputMode, **options: Any) -> tuple[Results, PythonFmu]:
    """An echo of a clock that steps before it, one step of 1 s."""
    unit = echo(**options)
    algorithm = GaussSeidel(mode=mode)
    return simulate(chain(clock(), unit), FED, algorithm=algorithm, **ONE_STEP), unit


EXACT = 1.0 + 10 * 0.5
"""Of the echo after 1 s."""


def test_in_the_mode_end_the_value_at_the_end_is_held(simulate: Simulate) -> None:
    results, _ = follow(simulate, AtEnd(), **TAKES_LINES)
    assert results["echo.y"][-1] == 1.0 + 10 * 1.0


def test_in_the_mode_mid_the_mean_of_start_and_end_is_held(simulate: Simulate) -> None:
    results, _ = follow(simulate, AtMiddle(), **TAKES_LINES)
    assert results["echo.y"][-1] == 0.5 + 10 * 0.5


def test_in_the_mode_lin_an_fmu_that_takes_polynomials_follows_the_line(simulate: Simulate) -> None:
    results, unit = follow(simulate, AlongLine(), **TAKES_LINES)
    assert results["echo.y"][-1] == EXACT
    assert len(unit.instances[0].called(FmiCall.DO_STEP)) == 1


@pytest.mark.parametrize("mode", [AlongLine(), Corrected()])
def test_an_fmu_that_takes_none_is_given_the_mean_and_corrected(
    simulate: Simulate, mode: InputMode
) -> None:
    """sequence.md 6.3: outputs can be re-evaluated with new inputs."""
    results, unit = follow(simulate, mode, partials={"y": {"u": 1.0}})
    assert results["echo.y"][-1] == EXACT
    assert len(unit.instances[0].called(FmiCall.DO_STEP)) == 1


def test_the_mode_held_gives_no_polynomial_also_to_an_fmu_that_takes_them(
    simulate: Simulate,
) -> None:
    results, unit = follow(simulate, Corrected(), partials={"y": {"u": 1.0}}, **TAKES_LINES)
    assert results["echo.y"][-1] == EXACT
    assert unit.instances[0].told == []


@pytest.mark.parametrize("sub_steps", [2, 5])
def test_an_fmu_that_cannot_be_corrected_steps_in_parts(simulate: Simulate, sub_steps: int) -> None:
    """sequence.md 6.3: neither, but variable step allowed."""
    results, unit = follow(simulate, AlongLine(sub_steps), **DIVISIBLE)
    assert len(unit.instances[0].called(FmiCall.DO_STEP)) == sub_steps
    last = 1.0 - 0.5 / sub_steps
    assert results["echo.y"][-1] == pytest.approx(last + 10 * 0.5, rel=1e-14)


def test_outputs_of_the_last_part_alone_are_read(simulate: Simulate) -> None:
    """sequence.md 6.3: publish outputs of the last sub-step only."""
    _, unit = follow(simulate, AlongLine(), **DIVISIBLE)
    calls = [call for call, _ in unit.instances[0].log]
    last = len(calls) - 1 - calls[::-1].index(FmiCall.DO_STEP)
    first = calls.index(FmiCall.DO_STEP)
    assert FmiCall.GET not in calls[first:last]
    assert FmiCall.GET in calls[last:]


@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")
def test_an_fmu_that_can_do_none_of_these_is_given_the_end_and_a_warning_tells_it(
    simulation: Callable[..., Any],
) -> None:
    """sequence.md 6.3: none of these: mode end; say so."""
    made = simulation(
        chain(clock(), echo(**INDIVISIBLE)),
        FED,
        algorithm=GaussSeidel(mode=AlongLine()),
        **ONE_STEP,
    )
    [warning] = [w for w in made.prepare().accuracy_warnings if "echo" in w]
    assert "instead of being interpolated" in warning
    assert made.run()["echo.y"][-1] == 11.0


def test_continuous_inputs_of_another_type_are_never_interpolated_and_a_warning_tells_it() -> None:
    single = {"u": {"type": DataType.FLOAT32}}
    units = {"clock": clock(), "echo": PythonFmu(inputs={"u": 0.0}, attributes=single)}
    plan = replace(plan_of(units, ["clock.y -> echo.u"]), trigger_sequence=(0, 1))
    [warning] = GaussSeidel(mode=AlongLine()).accuracy_warnings(plan)
    assert warning.startswith("'echo.u': held at the value at the end")
    assert GaussSeidel().accuracy_warnings(plan) == ()
    assert (
        GaussSeidel(mode=AlongLine()).accuracy_warnings(replace(plan, trigger_sequence=(1, 0)))
        == ()
    )


# Subsequences ---------------------------------------------------------------------------------------------------------


def parabola(**options: Any) -> PythonFmu:
    """Its output is the square of the time."""
    return PythonFmu("parabola", outputs={"y": lambda v: v.t * v.t}, **options)


@pytest.mark.parametrize(("options", "parts"), [(TAKES_LINES, 4), (DIVISIBLE, 4)])
def test_in_the_mode_sub_inputs_follow_the_points_of_the_source_inside_the_step(
    simulate: Simulate, options: dict[str, Any], parts: int
) -> None:
    unit = echo(**options, partials={"y": {"u": 1.0}})
    results = simulate(
        chain(parabola(), unit), FED, algorithm=GaussSeidel(mode=Subsequence(parts)), **ONE_STEP
    )
    trapezoids = sum(((k / parts) ** 2 + ((k + 1) / parts) ** 2) / 2 / parts for k in range(parts))
    assert results["echo.y"][-1] == pytest.approx(1.0 + 10 * trapezoids, rel=1e-14)


def test_in_the_mode_sub_a_source_that_cannot_be_divided_is_a_line(simulate: Simulate) -> None:
    results = simulate(
        chain(parabola(**INDIVISIBLE), echo(**TAKES_LINES)),
        FED,
        algorithm=GaussSeidel(mode=Subsequence()),
        **ONE_STEP,
    )
    assert results["echo.y"][-1] == pytest.approx(EXACT, rel=1e-14)


# Stale connections, levels --------------------------------------------------------------------------------------------


def unit(gain: float, inputs: int, *, direct: int = 1, **options: Any) -> PythonFmu:
    """A decay that is driven by its inputs, with a direct part from the first ones."""
    names = [f"u{k}" for k in range(inputs)]

    def driven(v: Any, time: float) -> float:
        return sum((k + 1) * float(v.course(name, time)) for k, name in enumerate(names))

    def step(v: Any, h: float) -> None:
        v.x += h * (gain * driven(v, v.t + h / 2) - v.x)
        for name in names:
            setattr(v, name, v.course(name, v.t + h))

    return PythonFmu(
        inputs=dict.fromkeys(names, 0.0),
        states={"x": gain},
        outputs={"y": lambda v: v.x + 0.1 * gain * sum(getattr(v, n) for n in names[:direct]), "z": lambda v: -v.x},
        depends={"y": names[:direct]},
        step=step,
        **options,
    )  # fmt: skip


LINKS = ["a.y -> b.u0", "c.z -> b.u1", "b.z -> a.u0", "b.y -> d.u0", "d.z -> c.u0", "a.z -> d.u1"]


def net() -> dict[str, PythonFmu]:
    """Four units with a ring and a shortcut."""
    inputs = {"a": 1, "b": 2, "d": 2, "c": 1}
    attributes = {"b": TAKES_LINES, "d": {"partials": {"y": {"u0": -0.07}}}}
    return {
        name: unit(g, inputs[name], **attributes.get(name, {}))
        for name, g in zip(inputs, (1.0, 0.5, -0.7, 0.3), strict=True)
    }


OLDER = ["a", "b", "c", "d"]
"""In this sequence c steps after b, and is on a lower level."""


def run_net(simulate: Simulate, algorithm: Any, **settings: Any) -> Results:
    settings = {"stop_time": 1, "step_size": 0.1, **settings}
    return simulate(net(), LINKS, algorithm=algorithm, **settings)


@pytest.mark.parametrize("inputs", [Polynomial(), FIRST_ORDER, Polynomial(2, 0)])
def test_with_all_connections_stale_it_is_jacobi_bit_for_bit(
    simulate: Simulate, inputs: Polynomial
) -> None:
    every = {(link[0], link.split(" -> ")[1][0]) for link in LINKS}
    expected = run_net(simulate, Jacobi(inputs))
    for levels in (False, True):
        found = run_net(simulate, GaussSeidel(inputs, stale=frozenset(every), levels=levels))
        assert all(np.array_equal(found[n], expected[n]) for n in expected.names)


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_levels_change_no_bit(simulate: Simulate, mode: InputMode) -> None:
    """sequence.md 7, 5: equal when levels run at the same time."""
    expected = run_net(simulate, GaussSeidel(mode=mode), sequence=OLDER)
    found = run_net(simulate, GaussSeidel(mode=mode, levels=True), sequence=OLDER, threads=2)
    assert all(np.array_equal(found[n], expected[n]) for n in expected.names)
    other = run_net(simulate, GaussSeidel(mode=mode), sequence=["a", "c", "b", "d"])
    assert not np.array_equal(found["b.y"], other["b.y"])


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_a_stale_connection_is_as_if_its_target_had_stepped_first(
    simulate: Simulate, mode: InputMode
) -> None:
    units = {"a": unit(1.0, 0), "b": unit(0.5, 1)}
    settings: dict[str, Any] = {"stop_time": 1, "step_size": 0.1}
    algorithm = GaussSeidel(mode=mode, stale=frozenset({("a", "b")}))
    found = simulate(units, ["a.z -> b.u0"], algorithm=algorithm, **settings)
    expected = simulate(units, ["a.z -> b.u0"], algorithm=Jacobi(), **settings)
    # "sub" integrates in ten parts
    assert (mode == Subsequence()) != np.array_equal(found["b.y"], expected["b.y"])
    fresh = simulate(units, ["a.z -> b.u0"], algorithm=GaussSeidel(mode=mode), **settings)
    assert not np.array_equal(found["b.y"], fresh["b.y"])


def test_an_instance_on_a_lower_level_that_steps_later_in_the_sequence_gives_its_older_outputs() -> (
    None
):
    plan = replace(plan_of(net(), LINKS), trigger_sequence=(0, 1, 3, 2))
    names = [instance.name for instance in plan.instances]
    assert [names[i] for i in plan.trigger_sequence] == OLDER
    attempt = assemble(plan, GaussSeidel(levels=True)).attempt
    text = [str(i) for i in attempt.instructions]
    assert text[:1] == ["KEEP 0"]
    b, c = names.index("b"), names.index("c")
    assert text.index(f"STEP {c} 1.0") < text.index(f"REVERT {c} 0")
    assert text.index(f"REVERT {c} 0") < text.index(f"MOVE {b} continuous")
    assert text.index(f"REVERT {c} 1") < text.index(f"STEP {b} 1.0")


def corrected(**options: Any) -> PythonFmu:
    """A unit that takes no polynomials: its output is corrected."""
    partials = {"y": {f"u{k}": 0.05 for k in range(3)}}
    return unit(0.5, 3, direct=3, partials=partials, **options)


@pytest.mark.parametrize("mode", [AlongLine(), Subsequence()])
@pytest.mark.parametrize(
    ("b", "c"), [(DIVISIBLE, DIVISIBLE), (DIVISIBLE, INDIVISIBLE), (INDIVISIBLE, DIVISIBLE)]
)
def test_an_instance_is_given_nothing_new_of_those_on_its_own_level(
    simulate: Simulate, mode: InputMode, b: dict[str, Any], c: dict[str, Any]
) -> None:
    """sequence.md 7, 5: b is corrected, and c, which feeds it, steps after it but on the same level."""
    units = {"a": unit(1.0, 1), "b": corrected(**b), "c": unit(-0.7, 1, **c, **TAKES_LINES)}
    links = ["c.z -> b.u0", "a.z -> b.u1", "a.z -> c.u0", "b.y -> a.u0"]
    settings: dict[str, Any] = {"sequence": ["a", "b", "c"], "stop_time": 1, "step_size": 0.1}
    expected = simulate(units, links, algorithm=GaussSeidel(mode=mode), **settings)
    found = simulate(units, links, algorithm=GaussSeidel(mode=mode, levels=True), **settings)
    assert all(np.array_equal(found[n], expected[n]) for n in expected.names)


@pytest.mark.parametrize("mode", [AlongLine(), Subsequence()])
@pytest.mark.parametrize("b", [DIVISIBLE, INDIVISIBLE])
def test_connections_inside_a_bounded_level_are_stale(
    simulate: Simulate, mode: InputMode, b: dict[str, Any]
) -> None:
    units = {"a": unit(1.0, 1), "b": corrected(**b), "c": corrected(**DIVISIBLE)}
    links = ["c.y -> b.u0", "a.z -> b.u1", "a.z -> b.u2", "b.z -> c.u0", "a.z -> c.u1", "a.z -> c.u2"]  # fmt: skip
    links += ["b.y -> a.u0"]
    settings: dict[str, Any] = {"stop_time": 1, "step_size": 0.1}
    found = simulate(units, links, algorithm=GaussSeidel(mode=mode, most_levels=2), **settings)
    one_by_one = GaussSeidel(mode=mode, stale=frozenset({("b", "c"), ("c", "b")}))
    settings["sequence"] = ["a", "b", "c"]
    expected = simulate(units, links, algorithm=one_by_one, **settings)
    assert all(np.array_equal(found[n], expected[n]) for n in expected.names)


def test_a_bound_on_levels_chooses_the_sequence(simulate: Simulate) -> None:
    with pytest.raises(OptionError, match="the user has given a sequence"):
        run_net(simulate, GaussSeidel(most_levels=2), sequence=list(net()))
    found = run_net(simulate, GaussSeidel(most_levels=1))
    expected = run_net(simulate, Jacobi())
    assert all(np.array_equal(found[n], expected[n]) for n in expected.names)


def test_levels_are_the_longest_paths_of_fresh_connections() -> None:
    """sequence.md 3: the table of levels of the four units."""
    arcs = {(4, 1), (1, 2), (2, 3), (4, 3), (1, 4), (3, 4)}
    assert level_sets((1, 3, 2, 4), arcs) == ((1, 3), (2, 4))
    assert level_sets((4, 2, 3, 1), arcs) == ((4, 2), (3, 1))
    assert level_sets((4, 3, 2, 1), arcs) == ((4, 2), (3, 1))
    assert level_sets((4, 3, 1, 2), arcs) == ((4,), (3, 1), (2,))
    assert level_sets((3, 4, 2, 1), arcs) == ((3, 2), (4,), (1,))
    assert len(level_sets((4, 1, 2, 3), arcs)) == 4
    assert len(level_sets((3, 4, 1, 2), arcs)) == 4
    assert level_sets((1, 2, 3, 4), arcs, stale=arcs) == ((1, 2, 3, 4),)


# In other algorithms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [AlongLine(), Corrected(), AtMiddle()], ids=lambda m: m.name)
def test_in_sweeps_all_inputs_are_interpolated_whatever_the_sequence(
    simulate: Simulate, mode: InputMode
) -> None:
    """After the first sweep no output is older than another one."""
    algorithm = Waveform(GaussSeidel(mode=mode), sweeps=30, restart_sweeps=30)
    found = [
        run_net(simulate, algorithm, sequence=order, stop_time=0.2)
        for order in (OLDER, OLDER[::-1])
    ]
    for n in found[0].names:
        assert found[0][n] == pytest.approx(found[1][n], rel=1e-12), n


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_the_mode_is_that_of_the_components_outside_of_loops_that_are_solved(
    simulate: Simulate, mode: InputMode
) -> None:
    """x = 0.5 y + u and y = x with u = t: the loop's x = 2 t is a line, which the echo behind it is given."""
    first = PythonFmu(
        inputs={"u": 0.0, "y": 0.0},
        outputs={"x": lambda v: v.u + 0.5 * v.y},
        depends={"x": ["u", "y"]},
    )
    second = PythonFmu(inputs={"x": 0.0}, outputs={"y": lambda v: v.x}, depends={"y": ["x"]})
    last = echo(**(TAKES_LINES if mode != Corrected() else {"partials": {"y": {"u": 1.0}}}))
    units = {**chain(clock(), last), "first": first, "second": second}
    links = ["source.y -> first.u", "first.x -> second.x", "second.y -> first.y"]
    links += ["first.x -> echo.u", "echo.y -> sink.u"]
    results = simulate(units, links, algorithm=GaussSeidel(mode=mode), **ONE_STEP)
    assert results["first.x"][-1] == pytest.approx(2.0, rel=1e-9)
    expected = {"end": 2.0 + 10 * 2.0, "mid": 1.0 + 10 * 1.0}.get(mode.name, 2.0 + 10 * 1.0)
    assert results["echo.y"][-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("sequence", "warned"), [("echo first second", 0), ("first second echo", 1)]
)
def test_what_an_fmu_cannot_do_counts_only_if_the_loop_that_feeds_it_steps_before(
    sequence: str, warned: int
) -> None:
    first = PythonFmu(inputs={"y": 0.0}, outputs={"x": lambda v: v.y}, depends={"x": ["y"]})
    second = PythonFmu(inputs={"x": 0.0}, outputs={"y": lambda v: v.x}, depends={"y": ["x"]})
    units = {"echo": echo(**INDIVISIBLE), "first": first, "second": second}
    plan = plan_of(units, ["first.x -> second.x", "second.y -> first.y", "first.x -> echo.u"])
    order = tuple(list(units).index(name) for name in sequence.split())
    plan = replace(plan, trigger_sequence=order, step_groups=((1, 2),))
    warnings = assemble(
        plan, GaussSeidel(mode=AlongLine()), ProgramsRequest(loops=Loops.ALL)
    ).accuracy_warnings
    assert len([w for w in warnings if w.startswith("'echo'")]) == warned


@pytest.mark.parametrize(("sweeps", "warned"), [(1, 0), (2, 1)])
def test_what_an_fmu_cannot_do_counts_in_sweeps_whatever_the_sequence(
    sweeps: int, warned: int
) -> None:
    units = {"echo": echo(**INDIVISIBLE), "source": clock()}
    plan = replace(plan_of(units, ["source.y -> echo.u"]), trigger_sequence=(0, 1))
    algorithm = Waveform(GaussSeidel(mode=AlongLine()), sweeps=sweeps)
    assert len(assemble(plan, algorithm).accuracy_warnings) == warned


def test_a_subsequence_cannot_be_repeated_or_undone(simulate: Simulate) -> None:
    algorithm = GaussSeidel(mode=Subsequence())
    with pytest.raises(OptionError, match="Sweeps cannot be done"):
        run_net(simulate, Waveform(algorithm))
    with pytest.raises(OptionError, match="A step may have to be undone"):
        assemble(plan_of(net(), LINKS), algorithm, ProgramsRequest(undoes=True))


# Messages -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("a", "bb"), "there is no component 'bb'. Did you mean 'b'?"),
        (("b", "c"), "no output of 'b' is connected to 'c'"),
    ],
)
def test_a_stale_connection_that_does_not_exist_is_refused(
    simulate: Simulate, pair: tuple[str, str], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        run_net(simulate, GaussSeidel(stale=frozenset({pair})))


def test_settings_that_mean_nothing_are_refused_when_they_are_made() -> None:
    for make in (AlongLine, Subsequence):
        with pytest.raises(OptionError, match="=0: expected at least 1"):
            make(0)
    with pytest.raises(OptionError, match="not adaptive"):
        GaussSeidel(ADAPTIVE, mode=AlongLine())
    with pytest.raises(OptionError, match="expected inputs=HOLD"):
        GaussSeidel(FIRST_ORDER, mode=Subsequence())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "lin"}, "expected an InputMode"),
        ({"stale": "a"}, "expected a sequence"),
        ({"stale": {"a", "b"}}, "expected a sequence"),
        ({"stale": {("a", "b", "c")}}, "expected pairs of component names"),
    ],
)
def test_names_in_place_of_objects_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        GaussSeidel(**settings)
