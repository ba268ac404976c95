"""Settings as text: names, and names with settings, in Python as on the command line."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from inspect import signature
from typing import Any

import pytest

from fmimaster import OptionError, Simulation
from fmimaster.algorithms import (
    Algorithm,
    AlongLine,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Sequential,
    Waveform,
)
from fmimaster.base.public_names import at_place
from fmimaster.base.text import in_short
from fmimaster.commands import conformance, settings
from fmimaster.commands.cli import _parser
from fmimaster.commands.simulate import REFERENCE_TOLERANCE
from fmimaster.configure import named, reading
from fmimaster.configure.named import setting_text, steps_text
from fmimaster.configure.reading import polynomial
from fmimaster.conformance.measures import ConformanceLimits
from fmimaster.conformance.run import check_conformance
from fmimaster.events import Check, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.fmu import Cvode
from fmimaster.fmu.fault_policy import FaultPolicy
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.inputs import FIRST_ORDER, LINEAR, NEPCE, Polynomial
from fmimaster.inputs.polynomial import KINDS
from fmimaster.loops import Loops
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.plan import NO_TOLERANCE
from fmimaster.results.columns import TOLERANCE
from fmimaster.run import Backend
from fmimaster.sequences.methods import METHODS
from fmimaster.steps import PID, FixedStep, FreeStep, PowerResidual, PredictorCorrector, Ramp
from fmimaster.steps.step_rule import StepRule


@pytest.mark.parametrize(
    ("text", "algorithm"),
    [
        ("Jacobi", Jacobi()),
        ("gauss-seidel", GaussSeidel()),
        ("gauss_seidel:levels=true,most-levels=3", GaussSeidel(levels=True, most_levels=3)),
        ("GaussSeidel:mode=lin", GaussSeidel(mode=AlongLine())),
        ("GaussSeidel:mode=lin:sub-steps=10", GaussSeidel(mode=AlongLine(10))),
        ("jacobi:inputs=first-order", Jacobi(FIRST_ORDER)),
        ("automatic-sequence", AutomaticSequence()),
        ("Sequential", Sequential()),
    ],
)
def test_an_algorithm_by_its_name_and_settings(text: str, algorithm: Any) -> None:
    found = Simulation("a.fmu", algorithm=text)
    assert found.algorithm == algorithm
    assert found == Simulation("a.fmu", algorithm=algorithm)


@pytest.mark.parametrize(
    ("text", "clock"),
    [
        ("look-ahead", LookAhead()),
        ("LookAhead", LookAhead()),
        ("predictive:near=1e-4", Predictive(near=1e-4)),
        ("check", Check()),
    ],
)
def test_an_event_clock_by_its_name_and_settings(text: str, clock: Any) -> None:
    assert Simulation("a.fmu", event_clock=text).event_clock == clock


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("grid:size=1/60", FixedStep("1/60")),
        ("free", FreeStep()),
        ("ramp", Ramp()),
        ("ecco:size=0.01,smallest=1e-4", replace(PID.ecco("0.01"), smallest=1e-4)),
        ("Predictor_Corrector", PID.predictor_corrector()),
    ],
)
def test_a_step_rule_by_its_name_and_settings(text: str, rule: Any) -> None:
    assert Simulation("a.fmu", step_size=text).step_size == rule


@pytest.mark.parametrize(
    ("given", "solver"),
    [
        ("cvode", Cvode()),
        ("CVode:relative=1e-8,absolute=1e-10", Cvode(relative=1e-8, absolute=1e-10)),
        ({"tank*": "cvode", "motor": Cvode(relative=1e-3)}, {"tank*": Cvode(), "motor": Cvode(relative=1e-3)}),
    ],
    ids=str,
)  # fmt: skip
def test_solvers_by_their_names_and_settings(given: Any, solver: Any) -> None:
    assert Simulation("a.fmu", solver=given).solver == solver


def test_options_give_a_solver_for_all_components_and_for_some() -> None:
    options = [
        "--solver",
        "cvode:relative=1e-8",
        "--solver",
        "motor=cvode",
        "--solver",
        "t*=cvode:relative=0.001",
    ]
    parsed = _parser().parse_args(["simulate", "a.fmu", *options])
    found = settings.simulation(parsed).solver
    assert found == {"*": Cvode(relative=1e-8), "motor": Cvode(), "t*": Cvode(relative=1e-3)}
    parsed = _parser().parse_args(["simulate", "a.fmu", *options, "--solver", "cvode"])
    with pytest.raises(OptionError, match="a solver for all components was given already"):
        settings.simulation(parsed)


@pytest.mark.parametrize("size", ["0.01", "1/60", "1e-3", ".5", 0.5, 1])
def test_a_number_as_text_stays_a_step_size(size: Any) -> None:
    assert Simulation("a.fmu", step_size=size).step_size == size


@pytest.mark.parametrize("name", KINDS)
def test_inputs_by_their_names(name: str) -> None:
    assert polynomial(setting_text(polynomial(name.upper()))) == KINDS[name]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (reading.algorithm, "Jacobi"),
        (reading.algorithm, "Jacobi:inputs=4,1"),
        (reading.algorithm, "Jacobi:inputs=3,1:mean=true"),
        (
            reading.algorithm,
            "GaussSeidel:inputs=linear:sub_steps=4,mode=lin:sub_steps=1,levels=true",
        ),
        (reading.algorithm, "GaussSeidel:inputs=hermite:mean=true,levels=true,most_levels=2"),
        (reading.algorithm, "AutomaticSequence:extrapolation=quadratic"),
        (reading.mode, "sub:parts=3"),
        (reading.event_clock, "predictive:near=0.0001"),
        (reading.event_clock, "none"),
        (reading.step_rule, "grid:size=1/60"),
        (reading.step_rule, "locate:size=0.1,tolerance=1e-08"),
        (reading.step_rule, "ecco:size=0.01,smallest=0.0001"),
        (reading.step_rule, "step-doubling:relative=0.01,safety=0.7"),
        (reading.solver, "cvode:relative=1e-08,jacobian=directional"),
        (reading.fault_policy, "restart:tries=5"),
    ],
)
def test_the_text_of_a_setting_is_read_back(read: Callable[[str], Any], text: str) -> None:
    assert read(setting_text(read(text))) == read(text)
    assert setting_text(read(text)) == text


@pytest.mark.parametrize(
    "value",
    [
        GaussSeidel(stale=frozenset({("a", "b")})),
        Jacobi(Polynomial(3, 1, adaptive=True)),
        PID(0.1, estimators=(PowerResidual(), PredictorCorrector())),
        replace(PID.step_doubling(0.1), reject_above=None),
        Waveform(Jacobi()),
        Sequential("upper"),
    ],
    ids=str,
)
def test_a_setting_without_a_text_is_written_as_python_writes_it(value: Any) -> None:
    assert setting_text(value) == in_short(value)


def test_steps_as_exact_fractions_are_written_as_numbers() -> None:
    assert setting_text(FixedStep(Fraction(1, 200))) == "grid:size=0.005"
    assert steps_text(FixedStep(Fraction(1, 200))) == "steps of 0.005 s"


def test_inputs_of_single_connections_mix_texts_and_objects() -> None:
    given: dict[str, Polynomial | str] = {"a.u": "linear", "b.*": NEPCE, "c.u": "2,1:mean=true"}
    found = Simulation("a.ssp", inputs=given)
    wanted = {"a.u": LINEAR, "b.*": NEPCE, "c.u": replace(Polynomial(2, 1), mean=True)}
    assert found.inputs == wanted
    assert given["a.u"] == "linear"


@pytest.mark.parametrize(
    ("text", "sequence"),
    [
        ("nearest_neighbour", "nearest-neighbour"),
        ("b, a ,c", ("b", "a", "c")),
        (("b", "a"), ("b", "a")),
    ],
)
def test_a_sequence_is_a_method_or_names(text: Any, sequence: Any) -> None:
    assert Simulation("a.ssp", sequence=text).sequence == sequence


def test_choices_by_their_values() -> None:
    found = Simulation("a.fmu", loops="all", backend="Reference")
    assert (found.loops, found.backend) == (Loops.ALL, Backend.REFERENCE)
    assert pickle.loads(pickle.dumps(found)) == found


def test_one_name_is_a_sequence_of_one() -> None:
    found = Simulation("a.fmu", output_variables="*.x", steady_states="a.x")
    assert (found.output_variables, found.steady_states) == (("*.x",), ("a.x",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "Jakobi"}, "There is no algorithm 'Jakobi'. Did you mean 'Jacobi'?"),
        ({"algorithm": "jacobi:mode=lin"}, "algorithm jacobi has no setting 'mode'"),
        ({"algorithm": "GaussSeidel:mode=line"}, "There is no mode 'line'. Did you mean 'lin'?"),
        ({"event_clock": "lookahed"}, "There is no event clock 'lookahed'."),
        ({"event_clock": "ramp"}, "'ramp' is a step rule: step_size ramp."),
        ({"event_clock": "predictive:far=1"}, "event_clock predictive has no setting 'far'"),
        ({"step_size": "eco"}, "There is no step rule 'eco'. Did you mean 'ecco'?"),
        ({"step_size": "ecco:smallest=x"}, "step_size ecco:smallest=x: expected a number."),
        ({"loops": "real-ones"}, "There is no choice of loops 'real-ones'. Did you mean 'real'?"),
        ({"backend": "fast"}, "There is no backend 'fast'. Did you mean 'fastest'?"),
        ({"inputs": {"a.u": "linea"}}, "Did you mean 'linear'?"),
        ({"algorithm": Jacobi}, "algorithm: Jacobi is a class. Give an object: Jacobi()."),
        ({"stoptime": 1}, "There is no setting 'stoptime'. Did you mean 'stop_time'"),
        ({"relative_tolerance": 1e-4}, "Did you mean 'tolerance'?"),
        ({"fmu_state": b""}, "see 'initial_fmu_state' and 'final_fmu_state'."),
        ({"solver": "cvodes"}, "There is no solver 'cvodes'. Did you mean 'cvode'?"),
        ({"solver": {"a": "cvode:order=5"}}, "solver cvode has no setting 'order'"),
        ({"solver": 5}, "solver: 5 is not a solver."),
        ({"solver": Cvode}, "solver: Cvode is a class. Give an object: Cvode()."),
        ({"inputs": "linear"}, "algorithm='Jacobi:inputs=linear'"),
    ],
)
def test_what_names_nothing_is_refused_with_what_is_near(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as error:
        Simulation("a.fmu", **given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("option", "text", "setting"),
    [
        ("--algorithm", "GaussSeidel:mode=lin", "algorithm"),
        ("--event-clock", "predictive:near=1e-4", "event_clock"),
        ("--step-rule", "ecco:size=0.01", "step_size"),
        ("--loops", "all", "loops"),
        ("--sequence", "b,a", "sequence"),
        ("--backend", "reference", "backend"),
        ("--solver", "cvode:relative=1e-8", "solver"),
    ],
)
def test_the_command_line_takes_the_same_texts(option: str, text: str, setting: str) -> None:
    parsed = _parser().parse_args(["simulate", "a.fmu", option, text])
    in_python = Simulation("a.fmu", **{setting: text})  # type: ignore[arg-type]
    assert getattr(settings.simulation(parsed), setting) == getattr(in_python, setting)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "GaussSeidel:mode=lin,mode=end"}, "'mode' is given twice"),
        ({"algorithm": "GaussSeidel:mode"}, "expected mode=VALUE"),
        ({"strict": "no"}, "strict: 'no', expected True or False"),
        ({"threads": "4"}, "threads: '4', expected 0"),
        ({"threads": 2.5}, "threads: 2.5, expected 0"),
    ],
    ids=str,
)
def test_a_value_that_would_be_misread_is_refused(settings: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Simulation("a.fmu", **settings)


def test_case_and_hyphens_of_keys_do_not_count() -> None:
    usual = Simulation("a.fmu", algorithm="GaussSeidel:mode=lin", step_size="ecco:smallest=1e-4")
    odd = Simulation("a.fmu", algorithm="gauss-seidel:MODE=lin", step_size="ECCO:Smallest=1e-4")
    assert odd == usual


def test_help_pages_show_the_names_and_defaults_that_count() -> None:
    assert tuple(backend.value for backend in Backend) == named.BACKENDS
    assert tuple(KINDS) == named.KINDS
    assert tuple(METHODS) == named.METHODS
    defaults = Simulation("a.fmu")
    assert (defaults.backend, defaults.loops_used) == (Backend(named.BACKENDS[0]), Loops("real"))
    assert (LoopSolver().relative, NO_TOLERANCE) == (1e-8, named.NO_TOLERANCE)
    assert TOLERANCE == REFERENCE_TOLERANCE
    given = signature(check_conformance).parameters
    assert (
        given["deadline"].default,
        given["output_folder"].default,
        ConformanceLimits().outside,
    ) == (
        conformance.CONFORMANCE_DEADLINE,
        conformance.CONFORMANCE_OUTPUT,
        conformance.OUTSIDE_BAND,
    )


@pytest.mark.parametrize(
    ("known", "base"),
    [
        (named.ALGORITHMS, Algorithm),
        (named.EVENT_CLOCKS, EventClock),
        (named.FAULT_POLICIES, FaultPolicy),
        (named.SOLVERS, Integrator),
    ],
)
def test_each_name_stands_for_the_class_that_is_spelled_so(
    known: Mapping[str, str], base: type
) -> None:
    for name, place in known.items():
        kind = at_place(place)
        assert issubclass(kind, base)
        spelled = "NoEventClock" if name == "none" else name
        assert kind.__name__.lower() == spelled.replace("-", "").lower()


@pytest.mark.parametrize("name", named.STEP_RULES)
def test_each_name_of_a_step_rule_makes_a_rule(name: str) -> None:
    assert isinstance(Simulation("a.fmu", step_size=name).step_size, StepRule)
