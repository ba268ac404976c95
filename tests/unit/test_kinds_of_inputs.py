"""Kinds of inputs over a step, each by its formula, for all connections and for single ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu, plan_of

from fmimaster.algorithms import AlongLine, GaussSeidel, Jacobi, SubSteps, Waveform
from fmimaster.base.errors import OptionError
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.given_inputs import extrapolation_degree
from fmimaster.inputs.polynomial import (
    FIRST_ORDER,
    HERMITE,
    HOLD,
    INTERPOLATED,
    LINEAR,
    MIDPOINT,
    NEPCE,
    QUADRATIC,
    Polynomial,
)
from fmimaster.program.delays import course, delays
from fmimaster.results.results import Results
from fmimaster.steps.ramp import Ramp
from fmimaster.system.model import DataType

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]
Course = Callable[[float], float]

H = 0.1
ENDS = (0.0, 1e-9, 0.5, 1.0 - 1e-9)
"""Where an input is looked at, as parts of the step."""


class Sink:
    """A unit that notes start and length of its steps, and its inputs at start, middle and end of them."""

    def __init__(self, *inputs: str, takes: bool = True, **options: Any) -> None:
        self.steps: list[tuple[float, float]] = []
        self.noted: dict[str, list[list[float]]] = {name: [] for name in inputs}
        starts = dict.fromkeys(inputs, 0.0)
        self.fmu = PythonFmu(
            inputs=starts,
            step=self._step,
            attributes={name: {"intermediate_update": takes} for name in inputs},
            provides_intermediate_update=takes,
            **options,
        )

    def _step(self, v: Any, h: float) -> None:
        self.steps.append((v.t, h))
        for name, noted in self.noted.items():
            noted.append([v.course(name, v.t + part * h) for part in (0.0, 0.5, 1.0)])

    def values(self, name: str = "u") -> list[float]:
        """What an input that is held is given in each step."""
        (values,) = zip(*[{*noted} for noted in self.noted[name]], strict=True)
        return list(values)

    def courses(self, name: str = "u") -> list[Course]:
        """How the input goes on over each step; parabolas at most."""
        pairs = zip(self.steps, self.noted[name], strict=True)
        return [parabola(*step, noted) for step, noted in pairs]


def parabola(t: float, h: float, values: Sequence[float]) -> Course:
    """The parabola through three values, at the start, in the middle and at the end of a step."""
    a, b, c = values

    def course(time: float) -> float:
        s = (time - t) / h
        return a * (1 - s) * (1 - 2 * s) + 4 * b * s * (1 - s) + c * s * (2 * s - 1)

    return course


def source(of: Course) -> PythonFmu:
    """A unit whose output y is a function of time."""
    return PythonFmu(outputs={"y": lambda v: of(v.t)})


def run(simulate: Simulate, polynomial: Polynomial, of: Course = math.sin, **settings: Any) -> Sink:
    sink = Sink("u", takes=settings.pop("takes", True))
    options = {"algorithm": Jacobi(polynomial), "stop_time": 2, "step_size": H} | settings
    simulate({"s": source(of), "t": sink.fmu}, ["s.y -> t.u"], **options)
    return sink


# The formulas ---------------------------------------------------------------------------------------------------------


def test_a_midpoint_hold_is_the_line_in_the_middle_of_the_step(simulate: Simulate) -> None:
    """energy.md 5: u(i) + (u(i) - u(i-1)) / h(i-1) * h(i) / 2, with steps that grow."""
    sink = run(simulate, MIDPOINT, step_size=Ramp(H, first=0.02))
    (t0, h0), *others = sink.steps
    expected, before = [math.sin(t0)], (t0, h0)
    for t, h in others:
        slope = (math.sin(t) - math.sin(before[0])) / before[1]
        expected.append(math.sin(t) + slope * h / 2)
        before = t, h
    assert sink.values() == approx(expected, rel=1e-12)
    assert len({round(h, 9) for _, h in sink.steps}) > 3


def nepce(of: Course, steps: Sequence[tuple[float, float]], damping: float) -> list[float]:
    """energy.md 5: u(i) + c(i), c(i+1) = a ((u(i) + u(i+1)) / 2 - (u(i) + c(i))) h(i) / h(i+1)."""
    given = [of(steps[0][0])]
    for (t, h), (later, next_h) in itertools.pairwise(steps):
        lacked = (of(t) + of(later)) / 2 - given[-1]
        given.append(of(later) + damping * lacked * h / next_h)
    return given


@pytest.mark.parametrize("damping", [0.5, 1.0])
def test_nepce_gives_what_the_last_interval_lacked(simulate: Simulate, damping: float) -> None:
    """energy.md 5, NEPCE damped and as published, with steps that grow."""
    polynomial = Polynomial(1, 0, compensation=damping)
    sink = run(simulate, polynomial, step_size=Ramp(H, first=0.02))
    assert sink.values() == approx(nepce(math.sin, sink.steps, damping), rel=1e-12)


def test_a_compensation_is_that_of_the_transformed_output(simulate: Simulate) -> None:
    sink = Sink("u")
    connection = ("s.y -> t.u", {"factor": -2.0, "offset": 3.0})
    units = {"s": source(math.sin), "t": sink.fmu}
    simulate(units, [connection], algorithm=Jacobi(NEPCE), stop_time=1, step_size=H)
    expected = nepce(lambda t: 3.0 - 2.0 * math.sin(t), sink.steps, 0.5)
    assert sink.values() == approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("polynomial", "largest_error", "largest_jump"),
    [(HOLD, 0.09995, 0.09995), (LINEAR, 0.00999, 0.00999), (INTERPOLATED, 0.09995, 0.0)],
    ids=["hold", "linear", "interpolated"],
)
def test_extrapolated_interpolation_has_no_jumps_and_the_error_of_held_inputs(
    simulate: Simulate, polynomial: Polynomial, largest_error: float, largest_jump: float
) -> None:
    """energy.md 8.4: sin t, H = 0.1, 0 to 10 s. The first step of a line is held, as there is one point only."""
    sink = run(simulate, polynomial, stop_time=10)
    courses = list(zip(sink.steps, sink.courses(), strict=True))[polynomial.points - 1 :]
    errors = [abs(c(t + p * h) - math.sin(t + p * h)) for (t, h), c in courses for p in ENDS]
    jumps = [
        abs(after(t) - before(t)) for (_, before), ((t, _), after) in itertools.pairwise(courses)
    ]
    assert max(errors) == approx(largest_error, abs=5e-6)
    assert max(jumps) == approx(largest_jump, abs=5e-6 if largest_jump else 1e-15)


def test_extrapolated_interpolation_ends_at_the_newest_value_in_steps_of_any_length(
    simulate: Simulate,
) -> None:
    """energy.md 8.4: it divides by the present step."""
    sink = run(simulate, INTERPOLATED, step_size=Ramp(H, first=0.001))
    before = 0.0
    for (t, _), noted in list(zip(sink.steps, sink.noted["u"], strict=True))[1:]:
        assert (noted[0], noted[2]) == approx((before, math.sin(t)), abs=1e-14)
        before = math.sin(t)


# FMUs that take no polynomials ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("polynomial", [MIDPOINT, NEPCE, HOLD], ids=["midpoint", "nepce", "hold"])
def test_what_is_held_needs_no_capability(simulate: Simulate, polynomial: Polynomial) -> None:
    able, unable = (run(simulate, polynomial, takes=takes) for takes in (True, False))
    assert able.values() == unable.values()


def test_without_the_capability_an_input_without_jumps_is_held_at_its_mean(
    simulate: Simulate,
) -> None:
    sink = run(simulate, INTERPOLATED, takes=False)
    times = [t for t, _ in sink.steps]
    means = [(math.sin(a) + math.sin(b)) / 2 for a, b in itertools.pairwise(times)]
    assert sink.values()[1:] == approx(means, rel=1e-12)


def test_with_sub_steps_each_is_given_the_mean_over_it(simulate: Simulate) -> None:
    """A line through sin(t) at the last two points, in four steps of H / 4."""
    sink = run(simulate, replace(LINEAR, sub_steps=4), takes=False, stop_time=0.5)
    assert [t for t, _ in sink.steps] == approx([H * k / 4 for k in range(20)], abs=1e-14)
    expected = [0.0] * 4
    for k in range(1, 5):
        slope = (math.sin(k * H) - math.sin((k - 1) * H)) / H
        expected += [math.sin(k * H) + slope * H * (part + 0.5) / 4 for part in range(4)]
    assert sink.values() == approx(expected, rel=1e-12)


def test_in_a_second_sweep_sub_steps_are_given_means_between_both_ends(simulate: Simulate) -> None:
    """Of a straight line they are its values in the middle of each sub-step, from the first step on."""
    algorithm = Waveform(Jacobi(replace(LINEAR, sub_steps=4)), sweeps=2)
    sink = run(simulate, LINEAR, lambda t: 1.0 + t, takes=False, algorithm=algorithm, stop_time=0.5)
    last = dict(zip([t for t, _ in sink.steps], sink.values(), strict=True))
    assert len(last) == 20
    assert list(last.values()) == approx([1.0 + t + H / 8 for t in last], rel=1e-12)


def test_an_fmu_that_takes_polynomials_does_no_sub_steps(simulate: Simulate) -> None:
    sink = run(simulate, replace(LINEAR, sub_steps=4))
    assert sink.noted == run(simulate, LINEAR).noted


@pytest.mark.parametrize("algorithm", [Jacobi, GaussSeidel])
def test_sub_steps_are_told_in_the_plan(
    simulation: Callable[..., Simulation], algorithm: Any
) -> None:
    units = {"t": Sink("u", takes=False).fmu, "s": source(math.sin)}
    prepared = simulation(
        units,
        ["s.y -> t.u"],
        algorithm=algorithm(replace(LINEAR, sub_steps=3)),
        stop_time=1,
        step_size=H,
        sequence=["t", "s"],
    ).prepare()
    (delay,) = delays(prepared.programs.attempt, prepared.plan)
    assert course(delay) == (
        "held at the mean of the polynomial of degree 1 through 2 points over each of 3 sub-steps"
    )


def test_both_halves_of_a_step_have_the_mean_and_the_moment_of_the_polynomial() -> None:
    """Of a cubic with its slope, through the last two points: exactly, in steps of different lengths."""
    sink = Sink("u", takes=False)

    def of(t: float) -> float:
        return 1.0 + t * (2.0 + t * (-3.0 + 4.0 * t))

    slopes = PythonFmu(
        outputs={"y": lambda v: of(v.t), "dy": lambda v: 2.0 + v.t * (-6.0 + 12.0 * v.t)},
        attributes={"dy": {"derivative_of": "y"}},
    )
    bench = Bench({"s": slopes, "t": sink.fmu}, ["s.y -> t.u"], history=3)
    bench.initialize()
    bench.run("REMEMBER")
    times = [0.0, H, 3 * H, 4 * H, 4.5 * H]
    for begin, end in itertools.pairwise(times):
        first, second = (
            f"FIT t {at} 2 1 () true none {at + 0.5} true 0 none {half}\nSET t continuous\n"
            f"STEP t {at + 0.5}\n"
            for half, at in ((1, 0.0), (2, 0.5))
        )
        bench.run(f"{first}{second}STEP s 1.0\nGET s outputs\nREMEMBER", begin, end)
    values = iter(sink.values())
    for k, (begin, end) in enumerate(itertools.pairwise(times)):
        h, one, two = end - begin, next(values), next(values)
        if k:  # in the first step there is one point only
            mean = sum(of(begin + h * s) * w for s, w in ((0, 1 / 6), (0.5, 4 / 6), (1, 1 / 6)))
            nodes = [0.5 - math.sqrt(3 / 5) / 2, 0.5, 0.5 + math.sqrt(3 / 5) / 2]
            moment = sum(
                s * of(begin + h * s) * w
                for s, w in zip(nodes, (5 / 18, 8 / 18, 5 / 18), strict=True)
            )
            assert (one + two) / 2 == approx(mean, rel=1e-12)
            assert (one * 1 / 8 + two * 3 / 8) == approx(moment, rel=1e-12)


# Discontinuous and discrete signals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("polynomial", [LINEAR, QUADRATIC, MIDPOINT, NEPCE, INTERPOLATED], ids=str)
@pytest.mark.parametrize(
    "algorithm", [Jacobi, lambda p: GaussSeidel(mode=AlongLine())], ids=["jac", "gs"]
)
def test_an_output_that_is_discrete_is_never_extrapolated(
    simulate: Simulate, polynomial: Polynomial, algorithm: Any
) -> None:
    """A stair of integers, which feeds a continuous input."""
    stair = PythonFmu(
        outputs={"y": lambda v: round(v.t / H) // 4}, attributes={"y": {"type": DataType.INT32}}
    )
    sink = Sink("u")
    units = {"s": stair, "t": sink.fmu}
    simulate(units, ["s.y -> t.u"], algorithm=algorithm(polynomial), stop_time=2, step_size=H)
    assert all(value == int(value) for value in sink.values())


@pytest.mark.parametrize("kind", ["nepce", "interpolated"])
def test_after_an_event_nothing_of_before_is_taken(kind: str) -> None:
    """FORGET, which is in the program of each event."""
    sink = Sink("u")
    bench = Bench({"s": source(lambda t: 1.0 + t), "t": sink.fmu}, ["s.y -> t.u"], history=3)
    bench.initialize()
    bench.run("REMEMBER")
    operands = {
        "nepce": "1 0 () true none 1.0 false 0.5",
        "interpolated": "2 0 () true none none false 0.0 1.0",
    }
    step = f"FIT t 0.0 {operands[kind]}\nSET t continuous\nSTEP s 1.0\nSTEP t 1.0\nGET s outputs\nREMEMBER"
    bench.run(step, 0.0, H)
    bench.run("FORGET\nREMEMBER")
    bench.run(step, H, 2 * H)
    assert sink.values() == [1.0, 1.0 + H]


# Steps that are undone ------------------------------------------------------------------------------------------------


def test_nepce_after_steps_that_were_undone_gives_the_same_bits() -> None:
    """However often a step was tried in two halves and undone: nothing is left of it."""
    given = []
    for tries in ((), (1.0,), (4.0, 1.0, 2.0, 0.5, 0.7)):
        sink = Sink("u")
        bench = Bench(
            {"s": source(math.sin), "t": sink.fmu}, ["s.y -> t.u"], n_buffers=1, history=3
        )
        bench.initialize()
        bench.run("REMEMBER")
        fit = "FIT t 0.0 1 0 () true none 1.0 false 0.5\nSET t continuous\n"
        step = "STEP s 1.0\nSTEP t 1.0\nGET s outputs\n"
        for k in range(6):
            begin, end = k * H, (k + 1) * H
            for part in tries:
                middle, last = begin + part * H / 2, begin + part * H
                bench.run("KEEP 0\nSAVE s 0\nSAVE t 1\n" + fit + step, begin, middle)
                bench.run(fit + step, middle, last)
                bench.run("RESTORE s 0\nRESTORE t 1\nRECALL 0", last)
                del sink.noted["u"][-2:]
            bench.run(fit + step + "REMEMBER", begin, end)
        given.append(sink.values())
    assert given[0] == given[1] == given[2]


# Parts of a step ------------------------------------------------------------------------------------------------------


def test_nepce_counts_each_sub_step_of_fast_components(simulate: Simulate) -> None:
    sink = Sink("u")
    algorithm = SubSteps(GaussSeidel(NEPCE), {"s": 4, "t": 4})
    simulate(
        {"s": source(math.sin), "t": sink.fmu},
        ["s.y -> t.u"],
        algorithm=algorithm,
        sequence=["t", "s"],
        stop_time=1,
        step_size=H,
    )
    assert len(sink.steps) == 40
    assert sink.values() == approx(nepce(math.sin, sink.steps, 0.5), rel=1e-12)


def test_nepce_gives_a_step_that_is_divided_what_it_lacks_once(simulate: Simulate) -> None:
    """Mode lin, in which an FMU whose outputs cannot be corrected divides its step, because another input is ahead."""
    sink = Sink("a", "b", takes=False, outputs={"y": lambda v: v.a}, depends={"y": ["a"]})
    units = {"p": source(math.sin), "q": source(math.cos), "t": sink.fmu}
    simulate(
        units,
        ["p.y -> t.a", "q.y -> t.b"],
        algorithm=GaussSeidel(NEPCE, mode=AlongLine(sub_steps=4)),
        sequence=["p", "t", "q"],
        stop_time=1,
        step_size=H,
    )
    assert len(sink.steps) == 40
    whole = [(k * H, H) for k in range(10)]
    expected = [value for value in nepce(math.cos, whole, 0.5) for _ in range(4)]
    assert sink.values("b") == approx(expected, rel=1e-12)


# Single connections ---------------------------------------------------------------------------------------------------


def both(simulate: Simulate, takes: bool = True, **settings: Any) -> Sink:
    """A unit with the inputs a and b, fed by sin and cos."""
    sink = Sink("a", "b", takes=takes)
    units = {"p": source(math.sin), "q": source(math.cos), "t": sink.fmu}
    options = {"algorithm": Jacobi(), "stop_time": 1, "step_size": H} | settings
    simulate(units, ["p.y -> t.a", "q.y -> t.b"], **options)
    return sink


def test_an_input_that_is_not_for_intermediate_updates_is_given_the_mean(
    simulate: Simulate,
) -> None:
    """FMI 3.0 allows an update of inputs with the attribute intermediateUpdate only."""
    sink = Sink("a", "b")
    variables = [replace(v, intermediate_update=v.name == "a") for v in sink.fmu.model.variables]
    sink.fmu.model = replace(sink.fmu.model, variables=tuple(variables))
    units = {"p": source(math.sin), "q": source(math.cos), "t": sink.fmu}
    options: dict[str, Any] = {"algorithm": Jacobi(LINEAR), "stop_time": 1, "step_size": H}
    simulate(units, ["p.y -> t.a", "q.y -> t.b"], **options)
    assert sink.noted["a"] == both(simulate, True, algorithm=Jacobi(LINEAR)).noted["a"]
    assert sink.noted["b"] == both(simulate, False, algorithm=Jacobi(LINEAR)).noted["b"]


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize(
    "pair", [(LINEAR, HOLD), (NEPCE, MIDPOINT), (HERMITE, INTERPOLATED), (HOLD, NEPCE)], ids=str
)
def test_each_connection_goes_on_as_it_would_if_all_did(
    simulate: Simulate, pair: tuple[Polynomial, Polynomial], takes: bool
) -> None:
    mixed = both(simulate, takes, inputs={"t.a": pair[0], "t.b": pair[1]})
    for name, polynomial in zip("ab", pair, strict=True):
        alone = both(simulate, takes, algorithm=Jacobi(polynomial))
        assert mixed.noted[name] == alone.noted[name]


def test_inputs_that_are_not_named_are_those_of_the_algorithm(simulate: Simulate) -> None:
    mixed = both(simulate, algorithm=Jacobi(LINEAR), inputs={"t.b": HOLD})
    assert mixed.noted["a"] == both(simulate, algorithm=Jacobi(LINEAR)).noted["a"]
    assert mixed.noted["b"] == both(simulate).noted["b"]


def test_a_name_counts_before_a_glob(simulate: Simulate) -> None:
    mixed = both(simulate, inputs={"t.a": HOLD, "t.*": LINEAR})
    assert mixed.noted["a"] == both(simulate).noted["a"]
    assert mixed.noted["b"] == both(simulate, algorithm=Jacobi(LINEAR)).noted["b"]


def test_under_gauss_seidel_it_is_for_inputs_whose_source_has_not_stepped(
    simulate: Simulate,
) -> None:
    """t steps between p and q: its input a is interpolated, b is extrapolated along the line that is given."""
    algorithm = GaussSeidel(mode=AlongLine())
    sink = both(simulate, algorithm=algorithm, sequence=["p", "t", "q"], inputs={"t.b": LINEAR})
    plain = both(simulate, algorithm=algorithm, sequence=["p", "t", "q"])
    assert sink.noted["a"] == plain.noted["a"]
    assert sink.noted["b"] == both(simulate, algorithm=Jacobi(LINEAR)).noted["b"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"t.c": LINEAR}, "'t.c' fits no connected continuous input. Did you mean"),
        ({"x.*": LINEAR}, r"'x.\*' fits no connected continuous input"),
        ({"t.n": LINEAR}, "fits 't.n', which is held in any case, because it is discrete"),
        (
            {"t.*": LINEAR, "*.a": HOLD},
            r"'\*.a' and 't.\*' both fit 't.a', with different polynomials",
        ),
        ({"t.a": 3}, "3 for 't.a' is not a polynomial"),
        ({"t.a": "linaer"}, "Did you mean 'linear'"),
        (LINEAR, "expected a mapping of inputs"),
        ({"t.a": Polynomial(2, 0, history=False)}, "has history=False"),
    ],
)
def test_inputs_that_mean_nothing_are_refused(
    simulation: Callable[..., Simulation], inputs: Any, message: str
) -> None:
    attributes = {"n": {"type": DataType.INT32}}
    target = PythonFmu(inputs={"a": 0.0, "n": 0}, attributes=attributes)
    number = PythonFmu(outputs={"y": lambda v: 1}, attributes={"y": {"type": DataType.INT32}})
    units = {"p": source(math.sin), "q": number, "t": target}
    with pytest.raises(OptionError, match=message):
        simulation(
            units, ["p.y -> t.a", "q.y -> t.n"], inputs=inputs, stop_time=1, step_size=H
        ).prepare()


@pytest.mark.parametrize(
    ("otherwise", "inputs", "takes", "degree"),
    [
        (LINEAR, {}, True, 1),
        (LINEAR, {}, False, 0),
        (QUADRATIC, {"t.a": LINEAR}, True, 1),
        (HOLD, {"t.*": QUADRATIC}, True, 2),
        (LINEAR, {"t.b": MIDPOINT}, True, 0),
        (INTERPOLATED, {}, True, 0),
        (FIRST_ORDER, {}, True, 0),
    ],
    ids=str,
)
def test_the_degree_of_extrapolation_is_the_lowest_of_all_connections(
    otherwise: Polynomial, inputs: Mapping[str, Polynomial], takes: bool, degree: int
) -> None:
    """Step-size control relies on it. The sources publish no derivatives; one of them is discrete, and does not count."""
    number = {"y": {"type": DataType.INT32}}
    units = {
        "p": source(math.sin),
        "q": source(math.cos),
        "n": PythonFmu(outputs={"y": lambda v: 1}, attributes=number),
        "t": Sink("a", "b", "c", takes=takes).fmu,
    }
    plan = plan_of(units, ["p.y -> t.a", "q.y -> t.b", "n.y -> t.c"])
    assert extrapolation_degree(plan, otherwise, inputs) == degree


def test_a_polynomial_without_effect_is_told(simulation: Callable[..., Simulation]) -> None:
    units = {"p": source(math.sin), "t": Sink("u").fmu}
    prepared = simulation(
        units,
        ["p.y -> t.u"],
        algorithm=GaussSeidel(mode=AlongLine()),
        inputs={"t.u": QUADRATIC},
        stop_time=1,
        step_size=H,
    ).prepare()
    (warning,) = prepared.accuracy_warnings
    assert warning.startswith("The polynomials given for 't.u' have no effect")


# Polynomials that mean nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compensation": 1.5}, "compensation=1.5: expected 0 to 1"),
        ({"points": 2, "compensation": 0.5}, "expected an input that is held"),
        ({"points": 3, "late": True}, r"expected Polynomial\(2, 0, late=True\)"),
        ({"points": 2, "held": 0.5, "late": True}, "neither held nor adaptive"),
        ({"points": 2, "sub_steps": 0}, "sub_steps=0.: expected at least 1"),
        ({"sub_steps": 2}, "neither held nor late"),
    ],
)
def test_a_polynomial_that_means_nothing_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Polynomial(**settings)


def test_inputs_of_single_connections_have_an_effect_without_an_algorithm() -> None:
    car = reference_path("systems/quarter-car-a-fmi2.ssp")
    settings: dict[str, Any] = {"step_size": "1/100", "stop_time": 0.1}
    usual = Simulation(car, **settings).run()
    held = Simulation(car, inputs={"wheel.velocity": HOLD, "chassis.force": HOLD}, **settings).run()
    plain = Simulation(car, algorithm=Jacobi(), **settings).run()
    assert held["wheel.force"].tolist() == plain["wheel.force"].tolist()
    assert held["wheel.force"].tolist() != usual["wheel.force"].tolist()
