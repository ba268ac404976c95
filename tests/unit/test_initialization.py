"""From instantiated FMUs to a complete exchange of values at the start time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import cos
from typing import Any

import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu

from fmimaster.program.instructions.steps import Repeat
from fmimaster.results.results import Results
from fmimaster.run.executor import InitialTimes
from fmimaster.system.model import Causality, DataType, Initial
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]


def function(f: Callable[[float], Any], **options: Any) -> PythonFmu:
    """y = f(u), directly."""
    return PythonFmu(
        inputs={"u": 0.0}, outputs={"y": lambda v: f(v.u)}, depends={"y": ["u"]}, **options
    )


def ring(first: Callable[[float], Any], second: Callable[[float], Any]) -> dict[str, PythonFmu]:
    return {"a": function(first), "b": function(second)}


RING = ["a.y -> b.u", "b.y -> a.u"]


def artificial(**options: Any) -> dict[str, PythonFmu]:
    """Case G1 of loops.md: y1 = 2 u1, y2 = u2 + 1, and B.y = 3 u between them."""
    a = PythonFmu(
        inputs={"u1": 0.0, "u2": 0.0},
        outputs={"y1": lambda v: 2 * v.u1, "y2": lambda v: v.u2 + 1},
        **({"depends": {"y1": ["u1"], "y2": ["u2"]}} | options),
    )
    return {"A": a, "B": function(lambda u: 3 * u)}


ARTIFICIAL = ["A.y1 -> B.u", "B.y -> A.u2"]


def initialized(units: Mapping[str, PythonFmu], *system: Any, **options: Any) -> Bench:
    bench = Bench(units, *system, **options)
    assert bench.initialize().stopped is None
    return bench


# The exchange ---------------------------------------------------------------------------------------------------------


def test_a_ring_of_units_without_a_loop_needs_one_sweep() -> None:  # G1
    bench = initialized(artificial(), ARTIFICIAL, {"A.u1": 1.0})
    assert [bench.value(n) for n in ("A.y1", "B.y", "A.y2")] == [2, 6, 7]
    assert not any(isinstance(i, Repeat) for i in bench.programs.initialize.instructions)


def test_undeclared_dependencies_give_the_same_values_and_a_loop_that_is_assumed() -> None:  # G3
    units = artificial(depends={}, undeclared=["y1", "y2"])
    bench = initialized(units, ARTIFICIAL, {"A.u1": 1.0})
    assert [bench.value(n) for n in ("A.y1", "B.y", "A.y2")] == [2, 6, 7]
    assert [loop.assumed for loop in bench.plan.initial_loops] == [True]


def test_a_chain_is_exchanged_from_its_begin_to_its_end_in_any_order_of_listing() -> None:
    names = ["d", "b", "e", "c", "a"]
    units = {name: function(lambda u: u + 1) for name in names}
    bench = initialized(units, [f"{s}.y -> {t}.u" for s, t in ("ab", "bc", "cd", "de")])
    assert [bench.value(f"{name}.y") for name in "abcde"] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("undeclared", [False, True])
def test_no_input_is_given_a_value_that_its_source_has_not_said_before(undeclared: bool) -> None:
    # outputs never say 0, which the value store holds before anything is read
    options: dict[str, Any] = {"depends": {}, "undeclared": ["y1", "y2"]} if undeclared else {}
    units = artificial(**options)
    said: dict[str, list[float]] = {}

    def heard(name: str, f: Callable[[Any], float]) -> Callable[[Any], float]:
        def output(v: Any) -> float:
            said.setdefault(name, []).append(100 + f(v))
            return said[name][-1]

        return output

    for n, unit in units.items():
        unit.outputs = {y: heard(f"{n}.{y}", f) for y, f in unit.outputs.items()}
    bench = initialized(units, ARTIFICIAL, {"A.u1": 1.0})
    for target, source in (("B.u", "A.y1"), ("A.u2", "B.y")):
        instance, _, name = target.partition(".")
        values = bench.instances[instance].was_set(name)
        assert values
        assert set(values) <= set(said[source])


def test_texts_and_arrays_are_exchanged_too() -> None:
    attributes: dict[str, dict[str, Any]] = {"s": {"type": DataType.STRING}, "m": {"shape": (2, 2)}}
    source = PythonFmu(
        outputs={"s": lambda v: "open", "m": lambda v: [[1, 2], [3, 4]]}, attributes=attributes
    )
    sink = PythonFmu(inputs={"s": "", "m": 0.0}, attributes=attributes)
    bench = initialized({"a": source, "b": sink}, ["a.s -> b.s", "a.m -> b.m"])
    values = bench.instances["b"].values
    assert (values.s, values.m.tolist()) == ("open", [[1, 2], [3, 4]])


# Loops: loops.md, section 4 -------------------------------------------------------------------------------------------

# the iteration stops when outputs change by less than 1e-10; the error is at most that times gain / (1 - gain) < 2.1
CLOSE = 2.1e-10


def test_a_loop_of_gain_one_fifth_converges() -> None:  # L1
    bench = initialized(ring(lambda u: 0.5 * u + 1, lambda u: 0.4 * u + 2), RING)
    assert (bench.value("a.y"), bench.value("b.y")) == (
        approx(2.5, rel=CLOSE),
        approx(3, rel=CLOSE),
    )


def test_the_cosine_converges_to_its_fixed_point() -> None:  # L3
    bench = initialized(ring(cos, lambda u: u), RING)
    assert bench.value("a.y") == approx(0.7390851332151607, rel=CLOSE)


@pytest.mark.parametrize(("start", "root"), [(0.0, 1.0), (2.0, 1.0)])
def test_of_several_solutions_the_start_values_decide(start: float, root: float) -> None:  # L7
    units = ring(lambda u: u * u / 4 + 0.75, lambda u: u)
    bench = initialized(units, RING, {"a.u": start, "b.u": start})
    assert bench.value("a.y") == approx(root, rel=CLOSE)


# What FMUs are told ---------------------------------------------------------------------------------------------------


def test_start_values_are_set_before_initialization_mode_and_again_inside_it() -> None:
    unit = PythonFmu(parameters={"k": 1.0}, inputs={"u": 0.0}, states={"x": 0.0})
    bench = initialized({"a": unit}, (), {"a.k": 2.0, "a.u": 3.0, "a.x": 4.0})
    assert [(call, what) for call, what in bench.instances["a"].log if call is not FmiCall.GET] == [
        (FmiCall.SET_START, {"k": 2.0, "u": 3.0, "x": 4.0}),
        (FmiCall.ENTER_INITIALIZATION_MODE, (0.0, 1.0, None)),
        (FmiCall.SET_START, {"k": 2.0, "u": 3.0, "x": 4.0}),
        (FmiCall.EXIT_INITIALIZATION_MODE, ()),
    ]


def calls_at_the_start(unit: PythonFmu) -> list[Any]:
    """What is read of the first instance before it leaves Initialization Mode."""
    log = unit.instances[0].log
    end = [call for call, _ in log].index(FmiCall.EXIT_INITIALIZATION_MODE)
    return [what for call, what in log[:end] if call is FmiCall.GET]


def test_outputs_that_nobody_needs_at_the_start_are_not_read_in_initialization_mode(
    simulate: Simulate,
) -> None:
    """Some FMUs advance discrete tasks at each read. The first row has them as they are after it."""
    reads = {"y": 0, "z": 0}

    def counted(name: str) -> Callable[[Any], float]:
        def output(v: Any) -> float:
            reads[name] += 1
            return float(reads[name])

        return output

    unit = PythonFmu(outputs={name: counted(name) for name in reads})
    sink = function(lambda u: u)
    rows = simulate({"a": unit, "b": sink}, ["a.y -> b.u"], stop_time=1, step_size=1)
    assert calls_at_the_start(unit) == [{"y": 1.0}]
    assert calls_at_the_start(sink) == []
    assert (rows["a.z"][0], rows["a.y"][0], rows["b.y"][0]) == (1.0, 2.0, 1.0)


def test_derivatives_of_an_output_are_read_with_it() -> None:
    unit = PythonFmu(
        outputs={"y": lambda v: 1.0, "dy": lambda v: 2.0, "z": lambda v: 3.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    initialized({"a": unit, "b": function(lambda u: u)}, ["a.y -> b.u"])
    assert calls_at_the_start(unit) == [{"y": 1.0, "dy": 2.0}]


def test_what_may_not_be_read_in_initialization_mode_is_read_from_step_mode_on(
    simulate: Simulate,
) -> None:
    """FMI 2.0: what such a variable feeds gets its start value until it can be read."""
    hidden = {"x": {"get_in_initialization": False}}
    unit = PythonFmu(states={"x": 4.0}, step=lambda v, h: setattr(v, "x", 5.0), attributes=hidden)
    sink = function(lambda u: u)
    rows = simulate(
        {"a": unit, "b": sink},
        ["a.x -> b.u"],
        stop_time=1,
        step_size=0.5,
        output_variables=["a.x", "b.y"],
    )
    assert calls_at_the_start(unit) == []
    assert sink.instances[0].was_set("u")[0] == 4.0
    assert rows["a.x"].tolist() == [4, 5, 5]
    assert any("'a.x' cannot be read in Initialization Mode" in n for n in rows.statistics.notes)


def test_an_input_without_initial_is_set_in_initialization_mode_only() -> None:
    """FMI 2.0: inputs have no initial; the start value comes before that of the source."""
    inputs: dict[str, Any] = {"inputs": {"u": 0.0, "w": 0.0}}
    unit = PythonFmu(**inputs, attributes={n: {"initial": None} for n in "uw"})
    source = PythonFmu(outputs={"y": lambda v: 5.0})
    bench = initialized({"a": source, "b": unit}, ["a.y -> b.u"], {"b.u": 3.0, "b.w": 2.0})
    log = bench.instances["b"].log
    assert log[0].call is FmiCall.ENTER_INITIALIZATION_MODE
    assert [what for _, what in log[1:3]] == [{"u": 3.0, "w": 2.0}, {"u": 5.0}]


def test_a_guess_is_set_once_only() -> None:
    unit = PythonFmu(states={"x": 0.0}, attributes={"x": {"initial": Initial.APPROX}})
    bench = initialized({"a": unit}, (), {"a.x": 4.0})
    assert bench.instances["a"].was_set("x") == [4.0]


def test_a_connected_input_takes_its_start_value_before_and_its_source_afterwards() -> None:
    units = {"a": PythonFmu(outputs={"y": lambda v: 5.0}), "b": function(lambda u: u)}
    bench = initialized(units, ["a.y -> b.u"], {"b.u": 3.0})
    assert bench.instances["b"].was_set("u") == [3.0, 5.0]


def test_what_nobody_gives_is_not_set() -> None:
    unit = PythonFmu(parameters={"k": 1.0}, inputs={"u": 0.0}, states={"x": 0.0})
    bench = initialized({"a": unit})
    assert [call for call, _ in bench.instances["a"].log] == [
        FmiCall.ENTER_INITIALIZATION_MODE,
        FmiCall.EXIT_INITIALIZATION_MODE,
    ]


def test_structural_parameters_are_set_in_configuration_mode_before_all_others() -> None:
    unit = PythonFmu(
        parameters={"n": 2, "k": 1.0},
        attributes={"n": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER}},
    )
    bench = initialized({"a": unit}, (), {"a.n": 3, "a.k": 2.0})
    assert [call for call, _ in bench.instances["a"].log][:4] == [
        FmiCall.ENTER_CONFIGURATION_MODE,
        FmiCall.SET_STRUCTURAL,
        FmiCall.EXIT_CONFIGURATION_MODE,
        FmiCall.SET_START,
    ]
    assert bench.instances["a"].was_set("n") == [3]


def test_fmus_are_told_start_stop_and_tolerance() -> None:
    unit = PythonFmu()
    initialized({"a": unit}, experiment=InitialTimes(1.0, 3.0), tolerance=1e-6)
    assert unit.instances[0].called(FmiCall.ENTER_INITIALIZATION_MODE) == [(1.0, 3.0, 1e-6)]


@pytest.mark.parametrize("tolerance", [None, 1e-5])
def test_the_stop_time_is_always_told_and_the_tolerance_if_there_is_one(
    simulate: Simulate, tolerance: float | None
) -> None:
    unit = PythonFmu()
    simulate({"a": unit}, start_time=0.5, stop_time="2", step_size=0.5, tolerance=tolerance)
    assert unit.instances[0].called(FmiCall.ENTER_INITIALIZATION_MODE) == [(0.5, 2.0, tolerance)]


def test_all_instances_get_their_start_values_before_any_is_initialized(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []

    def noted(name: str, call: Callable[[FmiCall, Any], Any]) -> Callable[[FmiCall, Any], Any]:
        def noted_call(c: FmiCall, what: Any) -> Any:
            order.append(f"{name} {c.value}")
            return call(c, what)

        return noted_call

    units = {name: PythonFmu(parameters={"k": 0.0}) for name in "ab"}
    bench = Bench(units, (), {"a.k": 1.0, "b.k": 1.0})
    for name, instance in bench.instances.items():
        monkeypatch.setattr(instance, "_call", noted(name, instance._call))
    bench.initialize()
    assert order[:3] == ["a Set (start value)", "b Set (start value)", "a EnterInitializationMode"]
