"""How values become inputs: moved one by one with conversions, or as polynomials over the step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu

from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.base.errors import SimulationError
from fmimaster.fmu.intermediate import inputs_in_steps
from fmimaster.inputs.polynomial import ADAPTIVE, FIRST_ORDER, HOLD, Polynomial
from fmimaster.results.results import Results
from fmimaster.steps.ramp import Ramp
from fmimaster.system.model import DataType, Unit
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Simulate = Callable[..., Results]

# MOVE -----------------------------------------------------------------------------------------------------------------


def moved(
    value: Any,
    source: dict[str, Any],
    target: dict[str, Any],
    *,
    lossy: bool = False,
    **transformation: float,
) -> Any:
    """What an input with these attributes is given if the output with its attributes says this value."""
    units = {
        "s": PythonFmu(outputs={"y": lambda v: value}, attributes={"y": source}),
        "t": PythonFmu(inputs={"u": 0}, attributes={"u": target}),
    }
    connection = ("s.y -> t.u", transformation)
    bench = Bench(units, [connection], allow_lossy_conversions=lossy)
    bench.initialize()
    (given,) = bench.instances["t"].was_set("u")
    return given


def kind(name: str, **attributes: Any) -> dict[str, Any]:
    return {"type": DataType[name.upper()], **attributes}


@pytest.mark.parametrize(
    ("value", "source", "target", "given"),
    [
        (7, kind("int32"), kind("float64"), 7.0),
        (True, kind("boolean"), kind("int32"), 1),
        (True, kind("boolean"), kind("float64"), 1.0),
        (200, kind("uint8"), kind("int64"), 200),
        (2**63 - 1, kind("int64"), kind("int64"), 2**63 - 1),
        (0.1, kind("float64"), kind("float32"), float(np.float32(0.1))),
        (0.5, kind("float32"), kind("float64"), 0.5),
        ("wide open", kind("string"), kind("string"), "wide open"),
        (b"\x00\xff", kind("binary"), kind("binary"), b"\x00\xff"),
        (False, kind("boolean"), kind("boolean"), False),
    ],
)
def test_a_value_keeps_its_meaning_in_another_type(
    value: Any, source: dict[str, Any], target: dict[str, Any], given: Any
) -> None:
    found = moved(value, source, target)
    assert found == given
    assert type(found) is type(given)


@pytest.mark.parametrize(
    ("value", "source", "target", "given"),
    [
        (2.9, kind("float64"), kind("int32"), 2),
        (-2.9, kind("float64"), kind("int32"), -2),
        (2, kind("int32"), kind("boolean"), True),
        (0.0, kind("float64"), kind("boolean"), False),
        (2**53 + 1, kind("int64"), kind("float64"), 2.0**53),
    ],
)
def test_a_lossy_conversion_truncates_as_python_does(
    value: Any, source: dict[str, Any], target: dict[str, Any], given: Any
) -> None:
    assert moved(value, source, target, lossy=True) == given


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (300, "int32", "int8"),
        (-1, "int32", "uint32"),
        (3e9, "float64", "int32"),
        (float("nan"), "float64", "int32"),
        (float("-inf"), "float64", "int64"),
        (2.0**63, "float64", "int64"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_that_names_the_connection(
    value: Any, source: str, target: str
) -> None:
    with pytest.raises(SimulationError, match=r"'s\.y -> t\.u': .* does not fit into U?Int"):
        moved(value, kind(source), kind(target), lossy=True)


def test_a_float_beyond_single_precision_becomes_infinite() -> None:
    assert moved(1e300, kind("float64"), kind("float32")) == float("inf")


def test_a_transformation_is_applied() -> None:
    assert moved(3.0, {}, {}, factor=2.0, offset=-1.0) == 5.0


def test_an_integer_can_be_transformed_into_a_float() -> None:
    assert moved(3, kind("int32"), kind("float64"), factor=0.5, offset=1.0) == 2.5


def test_units_are_converted() -> None:
    kelvin, celsius = (
        Unit(n, (0, 0, 0, 0, 1, 0, 0, 0), 1.0, o) for n, o in (("K", 0.0), ("degC", 273.15))
    )
    assert moved(300.0, {"unit": kelvin}, {"unit": celsius}) == approx(26.85, abs=1e-13)


def test_arrays_are_moved_element_by_element_in_row_major_order() -> None:
    matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    given = moved(matrix, {"shape": (2, 3)}, {"shape": (2, 3)}, factor=10.0)
    assert given.tolist() == [[10, 20, 30], [40, 50, 60]]


def test_arrays_of_texts_are_moved() -> None:
    attributes = kind("string", shape=(2,))
    assert moved(["on", "off"], attributes, attributes).tolist() == ["on", "off"]


# FIT: exact for signals of the degree -----------------------------------------------------------------------------------

H = 0.25


def signal(*coefficients: float) -> PythonFmu:
    """Outputs y = sum of c[k] t**k, and its derivatives dy and ddy."""
    p = np.polynomial.Polynomial(coefficients)
    return PythonFmu(
        outputs={
            "y": lambda v: float(p(v.t)),
            "dy": lambda v: float(p.deriv()(v.t)),
            "ddy": lambda v: float(p.deriv(2)(v.t)),
        },
        attributes={"dy": {"derivative_of": "y"}, "ddy": {"derivative_of": "dy"}},
    )


class Probe:
    """A unit that takes polynomials, and notes its input at five points of each step."""

    def __init__(self, **capabilities: Any) -> None:
        self.courses: list[list[tuple[float, float]]] = []
        capabilities = capabilities or {"provides_intermediate_update": True}
        self.fmu = PythonFmu(inputs={"u": 0.0}, step=self._step, **capabilities)

    def _step(self, v: Any, h: float) -> None:
        times = [v.t + h * k / 4 for k in range(5)]
        self.courses.append([(t, v.course("u", t)) for t in times])


def errors(probe: Probe, *coefficients: float) -> list[float]:
    """Largest difference from the signal in each step."""
    p = np.polynomial.Polynomial(coefficients)
    return [max(abs(u - p(t)) for t, u in course) for course in probe.courses]


def run(
    simulate: Simulate, coefficients: Iterable[float], algorithm: Any, **capabilities: Any
) -> list[float]:
    """Errors of the input of a probe that is fed by a signal, in eight steps; the probe comes first."""
    coefficients = list(coefficients)
    probe = Probe(**capabilities)
    units = {"probe": probe.fmu, "s": signal(*coefficients)}
    simulate(units, ["s.y -> probe.u"], algorithm=algorithm, start_time=1, stop_time=3, step_size=H)
    return errors(probe, *coefficients)


CUBIC = (1.0, -2.0, 0.5, 0.25)

# values are of magnitude 10, node distances 1/4: divided differences of order 3 have errors of 10 * 1e-16 * 4**3
ROUNDING = 1e-12


@pytest.mark.parametrize(
    ("polynomial", "degree", "steps_before"),
    [
        (HOLD, 0, 0),
        (FIRST_ORDER, 1, 0),
        (Polynomial(1, 2), 2, 0),
        (Polynomial(2, 0), 1, 1),
        (Polynomial(3, 0), 2, 2),
        (Polynomial(4, 0), 3, 3),
        (Polynomial(2, 1), 3, 1),
    ],
    ids=str,
)
def test_an_input_follows_a_signal_of_its_degree_as_soon_as_there_are_enough_points(
    simulate: Simulate, polynomial: Polynomial, degree: int, steps_before: int
) -> None:
    found = run(simulate, CUBIC[: degree + 1], Jacobi(polynomial))
    assert len(found) == 8
    assert max(found[steps_before:]) <= ROUNDING
    assert all(error > 0.01 for error in found[:steps_before])


@pytest.mark.parametrize(
    "polynomial", [HOLD, FIRST_ORDER, Polynomial(1, 2), Polynomial(2, 0), Polynomial(3, 0)], ids=str
)
def test_a_signal_of_higher_degree_is_not_met(simulate: Simulate, polynomial: Polynomial) -> None:
    signal_of_next_degree = CUBIC[: polynomial.degree + 2]
    assert min(run(simulate, signal_of_next_degree, Jacobi(polynomial))) > 1e-4


def constant(simulate: Simulate, polynomial: Polynomial, **capabilities: Any) -> list[float]:
    """What a probe is given in each step, fed by t**2 in steps of H from 1 s on; the value must not change in a step."""
    probe = Probe(**capabilities)
    units = {"probe": probe.fmu, "s": signal(0.0, 0.0, 1.0)}
    algorithm = Jacobi(polynomial)
    simulate(units, ["s.y -> probe.u"], algorithm=algorithm, start_time=1, stop_time=2, step_size=H)
    (values,) = zip(*[{u for _, u in course} for course in probe.courses], strict=True)
    return list(values)


def mean_of_square(a: float, b: float) -> float:
    return (b**3 - a**3) / 3 / (b - a)


def test_without_the_capability_the_mean_is_held(simulate: Simulate) -> None:
    found = constant(simulate, Polynomial(1, 2), provides_intermediate_update=False)
    assert found == approx([mean_of_square(1 + k * H, 1 + (k + 1) * H) for k in range(4)])


def test_without_the_capability_the_mean_is_that_of_few_points(simulate: Simulate) -> None:
    """Of a quintic only what is at the newest point is taken, of values the line through two points."""
    quintic, values = (
        constant(simulate, polynomial, provides_intermediate_update=False)
        for polynomial in (Polynomial(2, 2), Polynomial(3, 0))
    )
    assert quintic == constant(simulate, Polynomial(1, 2, mean=True))
    assert values == constant(simulate, Polynomial(2, 0, mean=True))


def test_a_mean_can_be_asked_for_and_then_no_polynomial_is_given(simulate: Simulate) -> None:
    found = constant(simulate, Polynomial(1, 1, mean=True))
    slope_times_half_a_step = [2 * (1 + k * H) * H / 2 for k in range(4)]
    assert found == approx(
        [(1 + k * H) ** 2 + s for k, s in enumerate(slope_times_half_a_step)], rel=1e-15
    )


def test_of_derivatives_those_are_taken_that_the_source_publishes(simulate: Simulate) -> None:
    found = run(simulate, CUBIC, Jacobi(Polynomial(1, 5)))
    assert found == run(simulate, CUBIC, Jacobi(Polynomial(1, 2)))


def test_under_gauss_seidel_an_input_goes_through_the_end_of_the_step(simulate: Simulate) -> None:
    # the source has stepped: the line goes through both ends of the step, and is exact from the first step on
    probe = Probe()
    units = {"s": signal(*CUBIC[:2]), "probe": probe.fmu}
    algorithm = GaussSeidel(Polynomial(2, 0))
    simulate(units, ["s.y -> probe.u"], algorithm=algorithm, stop_time=1, step_size=H)
    assert max(errors(probe, *CUBIC[:2])) <= ROUNDING


def test_a_transformation_applies_to_the_whole_polynomial(simulate: Simulate) -> None:
    probe = Probe()
    connection = ("s.y -> probe.u", {"factor": -2.0, "offset": 10.0})
    units = {"s": signal(1.0, 3.0), "probe": probe.fmu}
    simulate(units, [connection], algorithm=Jacobi(FIRST_ORDER), stop_time=1, step_size=H)
    assert max(errors(probe, 8.0, -6.0)) <= ROUNDING


def test_inputs_from_several_sources_each_have_their_own_polynomial(simulate: Simulate) -> None:
    notes: list[float] = []

    def step(v: Any, h: float) -> None:
        notes.append(v.course("a", v.t + h) - (1 + (v.t + h)))
        notes.append(v.course("b", v.t + h) - (5 - 2 * (v.t + h)))

    target = PythonFmu(inputs={"a": 0.0, "b": 0.0}, step=step, provides_intermediate_update=True)
    units = {"t": target, "p": signal(1.0, 1.0), "q": signal(5.0, -2.0)}
    connections = ["p.y -> t.a", "q.y -> t.b"]
    simulate(units, connections, algorithm=Jacobi(FIRST_ORDER), stop_time=1, step_size=H)
    assert len(notes) == 8
    assert max(map(abs, notes)) <= ROUNDING


def test_the_value_that_is_set_is_that_of_the_polynomial_where_the_step_begins(
    simulate: Simulate,
) -> None:
    probe = Probe()
    units = {"s": signal(1.0, 3.0), "probe": probe.fmu}
    simulate(units, ["s.y -> probe.u"], algorithm=Jacobi(FIRST_ORDER), stop_time=1, step_size=H)
    assert probe.fmu.instances[0].was_set("u")[-4:] == [1 + 3 * k * H for k in range(4)]


# FIT: the degree by measured error -----------------------------------------------------------------------------------


def oscillation(rate: float) -> PythonFmu:
    """y = cos(rate t) with its derivatives: the higher, the worse a polynomial of high degree predicts it."""
    return PythonFmu(
        outputs={
            "y": lambda v: math.cos(rate * v.t),
            "dy": lambda v: -rate * math.sin(rate * v.t),
            "ddy": lambda v: -(rate**2) * math.cos(rate * v.t),
        },
        attributes={"dy": {"derivative_of": "y"}, "ddy": {"derivative_of": "dy"}},
    )


def courses(simulate: Simulate, polynomial: Polynomial, rate: float, **options: Any) -> Any:
    """What a probe is given in 16 steps of H, fed by an oscillation."""
    probe = Probe()
    units = {"probe": probe.fmu, "s": oscillation(rate)}
    settings = {"stop_time": 4, "step_size": H} | options
    simulate(units, ["s.y -> probe.u"], algorithm=Jacobi(polynomial), **settings)
    return probe.courses


@pytest.mark.parametrize(("rate", "best"), [(1.0, (2, 2)), (20.0, (1, 1))])
def test_an_adaptive_polynomial_is_the_one_that_predicts_best(
    simulate: Simulate, rate: float, best: tuple[int, int]
) -> None:
    found = courses(simulate, ADAPTIVE, rate)
    # the quintic is measured when there are three points
    assert found[3:] == courses(simulate, Polynomial(*best), rate)[3:]
    assert found[:2] == courses(simulate, Polynomial(2, 2), rate)[:2]


def test_steps_of_other_sizes_take_the_largest_polynomial(simulate: Simulate) -> None:
    growing = Ramp(H, first=1 / 64)
    found, quintic = (
        courses(simulate, polynomial, 12.0, step_size=growing)
        for polynomial in (ADAPTIVE, Polynomial(2, 2))
    )
    assert found[:4] == quintic[:4]
    assert found[8:] != quintic[8:]


def test_a_source_without_derivatives_is_held_or_goes_on_along_a_line(simulate: Simulate) -> None:
    """Whichever is better: steps of a staircase and a line."""
    probe = Probe()
    values = PythonFmu(outputs={"y": lambda v: v.t if v.t < 2 else 2.0})
    units = {"probe": probe.fmu, "s": values}
    simulate(units, ["s.y -> probe.u"], algorithm=Jacobi(ADAPTIVE), stop_time=6, step_size=H)
    on_the_line, at_rest = errors(probe, 0.0, 1.0)[1:8], [u for _, u in probe.courses[-1]]
    assert max(on_the_line) <= ROUNDING
    assert at_rest == [2.0] * 5


def test_the_measured_errors_are_among_what_is_saved() -> None:
    probe = Probe()
    bench = Bench({"s": oscillation(12.0), "probe": probe.fmu}, ["s.y -> probe.u"], history=4)
    bench.initialize()
    bench.run("REMEMBER")
    program = JACOBI.replace("2 0 () true", "2 2 () true none none true")
    for k in range(5):
        bench.run(program, k * H, (k + 1) * H)
    store = bench.executor.store
    copy, errors_now = store.copy(), store.courses.errors[1].copy()
    assert np.isfinite(errors_now).all()
    bench.run("FORGET")
    bench.run(program, 5 * H, 6 * H)
    assert np.isnan(store.courses.errors[1]).all()
    store.restore(copy)
    assert store.courses.errors[1].tolist() == errors_now.tolist()


def test_an_attempt_that_is_repeated_measures_once() -> None:
    probe = Probe()
    bench = Bench({"s": oscillation(3.0), "probe": probe.fmu}, ["s.y -> probe.u"], history=4)
    bench.initialize()
    bench.run("REMEMBER")
    program = JACOBI.replace("2 0 () true", "2 2 () true none none true")
    for k in range(5):
        bench.run(program, k * H, (k + 1) * H)
    fit = program.strip().splitlines()[0]
    bench.run(fit, 5 * H, 6 * H)
    once = bench.executor.store.courses.errors[1].tolist()
    bench.run(fit, 5 * H, 5.5 * H)
    assert bench.executor.store.courses.errors[1].tolist() == once


# FIT: which points ------------------------------------------------------------------------------------------------------

LINE = (1.0, 2.0)


@pytest.fixture
def bench() -> tuple[Bench, Probe]:
    """A probe fed by a line, initialized at t = 0, with a history of two points of which one is taken."""
    probe = Probe()
    bench = Bench(
        {"s": signal(*LINE), "probe": probe.fmu}, ["s.y -> probe.u"], n_buffers=3, history=2
    )
    bench.initialize()
    bench.run("REMEMBER")
    return bench, probe


JACOBI = """
    FIT probe 0.0 2 0 () true
    SET probe continuous
    STEP s 1.0
    STEP probe 1.0
    GET s outputs
    REMEMBER
"""


def test_without_an_older_point_the_value_is_held(bench: tuple[Bench, Probe]) -> None:
    bench[0].run(JACOBI, 0.0, H)
    assert {u for _, u in bench[1].courses[0]} == {1.0}


def test_with_an_older_point_the_line_is_met(bench: tuple[Bench, Probe]) -> None:
    bench[0].run(JACOBI, 0.0, H)
    bench[0].run(JACOBI, H, 2 * H)
    assert errors(bench[1], *LINE)[1] <= ROUNDING


def test_after_forgetting_the_value_is_held_again(bench: tuple[Bench, Probe]) -> None:
    bench[0].run(JACOBI, 0.0, H)
    bench[0].run("FORGET")
    bench[0].run(JACOBI, H, 2 * H)
    assert {u for _, u in bench[1].courses[1]} == {1.0 + 2.0 * H}


def test_points_count_by_when_they_were_read_not_by_where_instances_stand(
    bench: tuple[Bench, Probe],
) -> None:
    # the source is restored to the begin, its outputs in the store stay those of the end: two points, at 0 and H
    bench[0].run(
        """
        SAVE s 0
        STEP s 1.0
        GET s outputs
        RESTORE s 0
        FIT probe 0.0 2 0 () true
        SET probe continuous
        STEP probe 1.0
        """,
        0.0,
        H,
    )
    assert errors(bench[1], *LINE) == [approx(0, abs=ROUNDING)]


def test_a_buffer_read_at_the_same_time_as_the_output_is_no_second_point(
    bench: tuple[Bench, Probe],
) -> None:
    bench[0].run("KEEP 2\nFIT probe 0.0 2 0 (2) true\nSET probe continuous\nSTEP probe 1.0", 0.0, H)
    assert {u for _, u in bench[1].courses[0]} == {1.0}


def test_a_polynomial_centred_in_the_interval_is_the_same_polynomial(
    bench: tuple[Bench, Probe],
) -> None:
    bench[0].run(JACOBI, 0.0, H)
    bench[0].run(JACOBI.replace("FIT probe 0.0", "FIT probe 0.5"), H, 2 * H)
    assert errors(bench[1], *LINE)[1] <= ROUNDING


def test_a_held_fraction_is_the_value_of_the_polynomial_there(bench: tuple[Bench, Probe]) -> None:
    bench[0].run(JACOBI, 0.0, H)
    bench[0].run(JACOBI.replace("() true", "() true 0.5"), H, 2 * H)
    assert {u for _, u in bench[1].courses[1]} == {1.0 + 2.0 * 1.5 * H}


def test_each_route_can_have_points_and_derivatives_of_its_own() -> None:
    """A line through two points, the same line by its derivative, and a value that is held."""
    courses = []

    def step(v: Any, h: float) -> None:
        courses.append([v.course(name, v.t + h) for name in "abc"])

    source = PythonFmu(
        outputs={"y": lambda v: 1.0 + 2.0 * v.t, "dy": lambda v: 2.0},
        attributes={"dy": {"derivative_of": "y"}},
    )
    probe = PythonFmu(
        inputs={"a": 0.0, "b": 0.0, "c": 0.0}, step=step, provides_intermediate_update=True
    )
    connections = ["s.y -> probe.a", "s.y -> probe.b", "s.y -> probe.c"]
    b = Bench({"s": source, "probe": probe}, connections, n_buffers=1, history=2)
    b.initialize()
    b.run("REMEMBER")
    program = JACOBI.replace("FIT probe 0.0 2 0 () true", "FIT probe 0.0 (2,1,1) (0,1,0) () true")
    for k in range(2):
        b.run(program, k * H, (k + 1) * H)
    end = 1.0 + 2.0 * 2 * H
    assert courses[1] == [approx(end, rel=1e-14), approx(end, rel=1e-14), 1.0 + 2.0 * H]


def test_after_a_polynomial_a_value_can_be_held_again(bench: tuple[Bench, Probe]) -> None:
    bench[0].run(JACOBI, 0.0, H)
    bench[0].run(JACOBI, H, 2 * H)
    bench[0].run(JACOBI.replace("FIT probe 0.0 2 0 () true", "MOVE probe continuous"), 2 * H, 3 * H)
    assert {u for _, u in bench[1].courses[2]} == {1.0 + 2.0 * 2 * H}


def test_a_held_value_is_set_once_per_step() -> None:
    units = {"s": signal(*LINE), "t": PythonFmu(inputs={"u": 0.0})}
    bench = Bench(units, ["s.y -> t.u"])
    bench.initialize()
    before = len(bench.instances["t"].called(FmiCall.SET_INPUT))
    bench.run(bench.programs.attempt, 0.0, 1.0)
    assert len(bench.instances["t"].called(FmiCall.SET_INPUT)) == before + 1


@pytest.mark.parametrize(("shape", "taken"), [((), (0, 1)), ((3,), ())])
def test_an_fmu_with_array_inputs_is_set_none_inside_of_steps(
    shape: tuple[int, ...], taken: tuple[int, ...]
) -> None:
    """One value was given for an array of three, and the FMU read beyond it."""
    model = PythonFmu(
        inputs={"u": 0.0, "v": 0.0},
        attributes={"v": {"shape": shape}},
        provides_intermediate_update=True,
    ).model
    assert inputs_in_steps(model) == taken
    inputs = [v for v in model.variables if v.name in ("u", "v")]
    assert [model.takes_polynomial_of(v) for v in inputs] == [bool(taken)] * 2
