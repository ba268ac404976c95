"""Outputs that depend directly on held inputs are brought to the inputs at the end of the step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu, plan_of

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.base.errors import AccuracyWarning
from fmimaster.events.event_clock import EarlyReturn
from fmimaster.events.predictive import Predictive
from fmimaster.inputs.polynomial import ADAPTIVE, FIRST_ORDER, HOLD, Polynomial
from fmimaster.plan.corrections import Means, passes
from fmimaster.program.hook import EVERYTHING, NOTHING, WHAT_VARIES, Hook, Partials
from fmimaster.program.store import ValueStore
from fmimaster.results.results import Results
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import Causality, DataType, DependencyKind, Model
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

H = 0.25


def square() -> PythonFmu:
    """y = t**2, with its derivatives."""
    return PythonFmu(
        outputs={"y": lambda v: v.t**2, "dy": lambda v: 2 * v.t, "ddy": lambda v: 2.0},
        attributes={"dy": {"derivative_of": "y"}, "ddy": {"derivative_of": "dy"}},
    )


def target(**options: Any) -> PythonFmu:
    """z = 3 u - t depends directly on u; half of it, which is fed by z, too."""
    return PythonFmu(
        inputs={"u": 0.0},
        outputs={"z": lambda v: 3 * v.u - v.t},
        depends={"z": ["u"]},
        **options,
    )


def linear(**options: Any) -> PythonFmu:
    """The same without directional derivatives, and said to be linear."""
    return target(dependency_kinds={"z": {"u": DependencyKind.FIXED}}, **options)


def last() -> PythonFmu:
    """Takes z of the target, so that z is used."""
    return PythonFmu(
        inputs={"z": 0.0},
        outputs={"w": lambda v: 10 * v.z},
        depends={"w": ["z"]},
        partials={"w": {"z": 10.0}},
    )


def units(t: PythonFmu) -> dict[str, PythonFmu]:
    return {"s": square(), "t": t, "last": last(), "end": PythonFmu(inputs={"w": 0.0})}


CONNECTIONS = ["s.y -> t.u", "t.z -> last.z", "last.w -> end.w"]


def run(simulate: Simulate, t: PythonFmu, algorithm: Algorithm) -> Results:
    return simulate(units(t), CONNECTIONS, algorithm=algorithm, stop_time=1, step_size=H)


EXACT = [3 * (k * H) ** 2 - k * H for k in range(5)]


@pytest.mark.parametrize(
    "unit",
    [target(partials={"z": {"u": 3.0}}), linear()],
    ids=["directional derivatives", "differences"],
)
@pytest.mark.parametrize("algorithm", [Jacobi(ADAPTIVE), GaussSeidel(Polynomial(1, 1))])
def test_an_output_is_that_of_the_input_at_the_end_of_the_step(
    simulate: Simulate, unit: PythonFmu, algorithm: Algorithm
) -> None:
    results = run(simulate, unit, algorithm)
    assert results["t.z"] == approx(EXACT, abs=1e-14)


def test_outputs_that_depend_on_corrected_outputs_are_corrected_after_them(
    simulate: Simulate,
) -> None:
    results = run(simulate, target(partials={"z": {"u": 3.0}}), Jacobi(ADAPTIVE))
    assert results["last.w"] == approx([10 * z for z in EXACT], abs=1e-13)


def test_a_partial_derivative_may_depend_on_the_state(simulate: Simulate) -> None:
    unit = PythonFmu(
        inputs={"u": 0.0},
        outputs={"z": lambda v: v.t * v.u},
        depends={"z": ["u"]},
        partials={"z": {"u": lambda v: v.t}},
    )
    results = run(simulate, unit, Jacobi(ADAPTIVE))
    assert results["t.z"] == approx([(k * H) ** 3 for k in range(5)], abs=1e-14)


def test_without_partial_derivatives_an_output_is_as_the_fmu_says(simulate: Simulate) -> None:
    results = run(simulate, target(), Jacobi(FIRST_ORDER))
    means = [(k * H) ** 2 + k * H * H for k in range(4)]
    assert results["t.z"][1:] == approx([3 * u - (k + 1) * H for k, u in enumerate(means)])


def test_nothing_is_corrected_if_the_value_is_held(simulate: Simulate) -> None:
    unit = target(partials={"z": {"u": 3.0}})
    run(simulate, unit, Jacobi(HOLD))
    assert not unit.instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)


def test_with_inputs_as_they_were_no_derivative_is_computed(simulate: Simulate) -> None:
    unit = target(partials={"z": {"u": 3.0}})
    constant = PythonFmu(
        outputs={"y": lambda v: 1.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    chain = units(unit) | {"s": constant}
    simulate(chain, CONNECTIONS, algorithm=Jacobi(ADAPTIVE), stop_time=1, step_size=H)
    assert not unit.instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)


def test_after_differences_all_inputs_are_as_before(simulate: Simulate) -> None:
    unit = linear(states={"x": 1.0})
    run(simulate, unit, Jacobi(ADAPTIVE))
    log = unit.instances[0].log
    last_in_initialization = next(
        k for k, (call, _) in enumerate(log) if call is FmiCall.EXIT_INITIALIZATION_MODE
    )
    given = [what["u"] for call, what in log[:last_in_initialization] if call is FmiCall.SET_INPUT]
    assert len(set(given)) > 1
    assert given[-1] == 0.0


def test_a_shift_stays_within_the_limits_of_the_input(simulate: Simulate) -> None:
    unit = linear(attributes={"u": {"min": -0.25, "max": 0.125, "nominal": 1e3}})
    results = run(simulate, unit, Jacobi(ADAPTIVE))
    assert min(unit.instances[0].was_set("u")[:4]) == -0.25
    assert results["t.z"] == approx(EXACT, abs=1e-13)


def test_correct_adds_the_change_of_inputs_times_the_partial_derivatives() -> None:
    unit = target(partials={"z": {"u": 3.0}})
    b = Bench(units(unit), CONNECTIONS)
    b.initialize()
    b.run(
        "MOVE t continuous\nSET t continuous\nSTEP t 1.0\nSTEP s 1.0\nGET t outputs\nGET s outputs\nCORRECT t",
        0.0,
        2.0,
    )
    assert b.value("t.z") == 3 * 4 - 2
    b.run("CORRECT t", 2.0)
    assert b.value("t.z") == 3 * 4 - 2
    assert unit.instances[0].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE) == [{"u": 4.0}]


@pytest.mark.parametrize(
    ("options", "had"),
    [({"provides_intermediate_update": True}, 9.0), ({"max_input_derivative_order": 1}, 8.0)],
    ids=["whole polynomial", "first derivative"],
)
def test_correct_knows_the_input_that_a_polynomial_has_led_to(
    options: dict[str, Any], had: float
) -> None:
    """The parabola t**2 leads from 4 to 9; an FMU that takes first derivatives only has followed its tangent to 8."""
    unit = target(partials={"z": {"u": 3.0}}, **options)
    b = Bench(units(unit), CONNECTIONS, n_buffers=1, history=2)
    b.initialize()
    for begin in (0.0, 1.0):
        b.run("STEP s 1.0\nGET s outputs", begin, begin + 1.0)
        b.run("REMEMBER", begin + 1.0)
    b.run("FIT t 0 2 1 () true\nSET t continuous\nSTEP t 1.0\nGET t outputs", 2.0, 3.0)
    z = b.value("t.z")
    b.executor.store.values[DataType.FLOAT64][0] = 10.0  # s.y
    b.run("CORRECT t\nCORRECT t", 3.0)
    assert b.value("t.z") == approx(z + 3 * (10.0 - had))


def test_passes_end_where_no_corrected_output_feeds_another_one() -> None:
    plan = plan_of(units(target(partials={})), CONNECTIONS)
    assert passes(plan.corrections, range(4), plan.links) == ((1, 2), (2,))


def test_in_a_ring_passes_end_too() -> None:
    a, b = (
        PythonFmu(
            inputs={"u": 0.0}, outputs={"y": lambda v: v.u / 2}, depends={"y": ["u"]}, partials={}
        )
        for _ in "ab"
    )
    plan = plan_of({"a": a, "b": b}, ["a.y -> b.u", "b.y -> a.u"])
    assert passes(plan.corrections, (0, 1), plan.links) == ((0, 1),) * 3


@pytest.mark.parametrize(
    ("unit", "means"),
    [
        (target(partials={}), Means.DIRECTIONAL_DERIVATIVES),
        (linear(), Means.DIFFERENCES),
        (linear(attributes={"z": {"get_in_initialization": False}}), None),
        (target(), None),
    ],
    ids=["directional derivatives", "linear", "not readable at the start", "neither"],
)
def test_the_means_are_the_best_that_the_fmu_has(unit: PythonFmu, means: Means | None) -> None:
    assert plan_of(units(unit), CONNECTIONS).corrections[1].means is means


def test_outputs_that_nothing_uses_are_left_alone() -> None:
    plan = plan_of({"s": square(), "t": target(partials={})}, ["s.y -> t.u"])
    assert plan.corrections == {}


# Indicators ------------------------------------------------------------------------------------------------------------


def approaching(*, is_readable: bool = True, **options: Any) -> dict[str, PythonFmu]:
    """A wall that moves as 1.2 - t, and a body at 0 that sees it at distance u and has a trigger. When it has been hit, its
    indicator is 1.

    Parameters
    ----------
    is_readable
        Whether its outputs can be read in Initialization Mode.
    """
    wall = PythonFmu(
        outputs={"y": lambda v: 1.2 - v.t, "dy": lambda v: -1.0},
        attributes={"dy": {"derivative_of": "y"}},
    )

    def step(v: Any, h: float) -> None:
        v.said = v.hit

    contact = EventDeclaration(
        "contact",
        Scope.PRIVATE,
        (Indicator("z", "dz"),),
        trigger="hit",
        right_limits_without_step=True,
    )
    body = PythonFmu(
        inputs={"u": 5.0, "hit": 0},
        states={"said": 0},
        outputs={
            "z": lambda v: v.u if v.hit == 0 else 1.0,
            "dz": lambda v: -1.0 if v.hit == 0 else 0.0,
        },
        depends={"z": ["u", "hit"], "dz": ["hit"]},
        attributes={
            "hit": {"type": DataType.INT32},
            "said": {"type": DataType.INT32},
            "z": {"get_in_initialization": is_readable},
        },
        events=[contact],
        step=step,
        **options,
    )
    return {"wall": wall, "body": body}


def contact(simulate: Simulate, **options: Any) -> Results:
    stop_time = options.pop("stop_time", 2)
    system = approaching(**options), ["wall.y -> body.u"]
    return simulate(*system, event_clock=Predictive(), step_size=0.5, stop_time=stop_time)


@pytest.mark.parametrize(
    "options",
    [
        {"partials": {"z": {"u": 1.0}}},
        {"dependency_kinds": {"z": {"u": DependencyKind.CONSTANT}}},
        {},
    ],
    ids=["directional derivatives", "differences", "differences of what is not said to be linear"],
)
def test_an_event_that_is_seen_by_a_held_input_is_met_at_its_time(
    simulate: Simulate, options: dict[str, Any]
) -> None:
    results = contact(simulate, **options, stop_time=1.2)
    assert [e.time for e in results.events] == approx([1.2], abs=1e-8)
    assert not results.statistics.warnings


@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")
def test_partial_derivatives_of_another_mode_are_dropped_before_they_change_anything(
    simulate: Simulate,
) -> None:
    """From the event on the indicator does not depend on the input any more. It is 1 in each row."""
    results = contact(simulate)
    assert [e.time for e in results.events] == approx([1.2], abs=1e-8)
    assert set(results["body.z"][results.time > 1.3].tolist()) == {1.0}
    (warning,) = results.statistics.warnings
    assert "'body.z' does not depend on held inputs as it did in Initialization Mode" in warning
    assert "outputs of 'body' belong to inputs that are held over a step" in warning


def test_what_is_not_said_to_be_linear_is_corrected_for_event_clocks_only() -> None:
    assert plan_of(units(target()), CONNECTIONS).corrections[1].means is None


def curved(exponent: float) -> dict[str, PythonFmu]:
    """A body that sees a wall of position 4 - t - t**2 by a power of it, with the slope of that."""
    wall = PythonFmu(
        outputs={"y": lambda v: 4 - v.t - v.t**2, "dy": lambda v: -1 - 2 * v.t},
        attributes={"dy": {"derivative_of": "y"}},
    )
    body = PythonFmu(
        inputs={"u": 4.0, "w": 0.0},
        outputs={
            "z": lambda v: v.u**exponent - 1.0,
            "dz": lambda v: exponent * v.u ** (exponent - 1) * v.w,
        },
        depends={"z": ["u"], "dz": ["u", "w"]},
        events=[EventDeclaration("end", Scope.PRIVATE, (Indicator("z", "dz"),))],
    )
    return {"wall": wall, "body": body}


@pytest.mark.parametrize(("exponent", "is_kept"), [(1.0, True), (3.0, False)])
@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")
def test_a_curve_contradicts_its_tangent(
    simulate: Simulate, exponent: float, *, is_kept: bool
) -> None:
    results = simulate(
        curved(exponent),
        ["wall.y -> body.u", "wall.dy -> body.w"],
        algorithm=Jacobi(Polynomial(1, 1)),
        event_clock=Predictive(),
        step_size=0.1,
        stop_time=1.2,
    )
    told = [text for text in results.statistics.warnings if "does not depend" in text]
    assert bool(told) != is_kept


def test_where_partial_derivatives_cannot_be_had_a_warning_says_how_late_events_may_be(
    simulate: Simulate, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        pytest.warns(AccuracyWarning) as warned,
        caplog.at_level(logging.WARNING, "fmimaster"),
    ):
        results = contact(simulate, is_readable=False)
    (event,) = results.events
    (warning, *_) = results.statistics.warnings
    assert tuple(str(w.message) for w in warned) == results.statistics.warnings
    assert [r.getMessage() for r in caplog.records].count(warning) == 1
    assert "'body.z' of the event 'body.contact' depends directly on inputs" in warning
    assert "up to 0.25 s early or late" in warning
    assert 1e-3 < abs(event.time - 1.2) <= 0.25


def test_who_stops_at_an_event_by_a_held_input_is_warned_of_also_where_indicators_are_corrected(
    simulate: Simulate,
) -> None:
    """The FMU does not see what is corrected."""
    system = approaching(
        partials={"z": {"u": 1.0}}, has_event_mode=True, might_return_early_from_do_step=True
    )
    with pytest.warns(AccuracyWarning, match="by these inputs"):
        results = simulate(
            system, ["wall.y -> body.u"], event_clock=EarlyReturn(), step_size=0.5, stop_time=1
        )
    (warning, *_) = results.statistics.warnings
    assert "The FMU stops at its events by these inputs" in warning
    assert "Use the event clock Predictive" in warning


# DERIVE ---------------------------------------------------------------------------------------------------------------


class Asking(Hook):
    """Has asked for partial derivatives of one instance."""

    name = "asks for partial derivatives"

    def __init__(self, model: Model, wanted: int) -> None:
        outputs, inputs = (
            tuple(model.with_causality(kind)) for kind in (Causality.OUTPUT, Causality.INPUT)
        )
        self.found = Partials(outputs, inputs, np.array([True, False]))
        self.found.wanted[0] = wanted

    def __call__(self, store: ValueStore) -> bool:
        return False

    def partials(self, instance: int) -> Partials | None:
        return self.found


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (EVERYTHING, [[2.0, 3.0], [5.0, 0.0]]),
        (WHAT_VARIES, [[2.0, 0.0], [5.0, 0.0]]),
        (NOTHING, [[0.0, 0.0], [0.0, 0.0]]),
    ],
)
def test_derive_computes_the_partial_derivatives_that_are_wanted(
    wanted: int, expected: list[list[float]]
) -> None:
    unit = PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: 2 * v.u + 3 * v.w, "z": lambda v: v.u**2},
        depends={"y": ["u", "w"], "z": ["u"]},
        partials={"y": {"u": 2.0, "w": 3.0}, "z": {"u": 5.0}},
    )
    hook = Asking(unit.model, wanted)
    bench = Bench({"a": unit}, hooks=[hook])
    bench.initialize()
    bench.run("DERIVE a 0")
    assert hook.found.values.tolist() == expected
    assert hook.found.wanted[0] == NOTHING


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_derive_asks_no_fmu_whose_outputs_are_not_finite(value: float) -> None:
    """Many return an error there, which would end the run in place of the attempt to solve the loop."""
    unit = PythonFmu(
        inputs={"u": value, "w": 0.0},
        outputs={"y": lambda v: v.u, "z": lambda v: v.w},
        depends={"y": ["u"], "z": ["w"]},
        partials={"y": {"u": 1.0}, "z": {"w": 1.0}},
    )
    hook = Asking(unit.model, EVERYTHING)
    bench = Bench({"a": unit}, hooks=[hook])
    bench.initialize()
    bench.run("DERIVE a 0")
    assert np.isnan(hook.found.values).all()
    assert hook.found.wanted[0] == NOTHING
    assert not bench.instances["a"].called(FmiCall.GET_DIRECTIONAL_DERIVATIVE)
