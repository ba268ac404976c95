"""The kernel and the interpreter in Python make the same FMI calls with the same arguments, in the same order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from in_turn import in_turn

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from command_line import changed
from kernel_encodings import as_written
from loop_fmus import loop_system

from fmimaster import Simulation, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    GaussSeidel,
    InputMode,
    Jacobi,
    Sequential,
    Waveform,
)
from fmimaster.configure import named, reading
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.predictive import Predictive
from fmimaster.inputs import FIRST_ORDER, HOLD, Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.run import Backend
from fmimaster.steps.locate import Locate
from fmimaster.steps.ramp import Ramp
from fmimaster.system import Lifetime

MODES = {name: reading.mode(name) for name in named.MODES}

pytestmark = pytest.mark.in_this_process("calls are traced in the process of the run")

Calls = list[tuple[Any, ...]]


def calls(system: Any, backend: Backend, **settings: Any) -> Calls:
    """Instance, function and arguments of each FMI call of a run."""
    with traced() as trace:
        simulate(system, backend=backend, **settings)
    return trace.calls


def assert_same_calls(system: Any, *, among: set[str], **settings: Any) -> None:
    """Both backends make the same calls, the kernel with fused instructions and without; these names are among them."""
    expected = calls(system, Backend.REFERENCE, **settings)
    found = calls(system, Backend.NATIVE, **settings)
    with as_written():
        assert calls(system, Backend.NATIVE, **settings) == found
    assert Counter(c[:2] for c in found) == Counter(c[:2] for c in expected)
    for k, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one == other, f"call {k}"
    assert among <= {name for _, name, *_ in expected}


def pair(first: str, second: str) -> SystemBuilder:
    builder = SystemBuilder("pair")
    builder.add("a", reference_path(f"{first}/Dahlquist.fmu"), {"k": 1.0})
    builder.add("b", reference_path(f"{second}/Dahlquist.fmu"), {"k": 3.0})
    builder.connect("b.x", "a.u", factor=2.0, offset=0.1)
    builder.connect("a.dx", "b.u", factor=-1.0)
    return builder


@pytest.mark.parametrize(
    ("algorithm", "inputs", "versions"),
    in_turn(
        [Jacobi, GaussSeidel],
        [HOLD, FIRST_ORDER, Polynomial(2, 1), Polynomial(3, 0)],
        [("fmi2", "fmi2"), ("fmi3", "fmi3"), ("fmi2", "fmi3")],
    ),
    ids=str,
)
def test_steps_and_inputs(algorithm: Any, inputs: Polynomial, versions: tuple[str, str]) -> None:
    system = pair(*versions).build(start_time=0, stop_time=0.505, step_size=1 / 60)
    among = {f"{version}DoStep" for version in versions}
    if inputs is not HOLD and versions == ("fmi2", "fmi2"):
        among |= {"fmi2SetRealInputDerivatives"}
    assert_same_calls(system, algorithm=algorithm(inputs), among=among)


@pytest.mark.parametrize("versions", [("fmi2", "fmi2"), ("fmi3", "fmi3"), ("fmi2", "fmi3")])
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_modes_of_gauss_seidel(mode: InputMode, versions: tuple[str, str]) -> None:
    system = pair(*versions).build(start_time=0, stop_time=0.1, step_size=1 / 60)
    among = {f"{version}DoStep" for version in versions}
    assert_same_calls(system, algorithm=GaussSeidel(mode=mode, levels=True), among=among)


ENTERS = {"fmi2": "fmi2SetupExperiment", "fmi3": "fmi3EnterInitializationMode"}


@pytest.mark.parametrize("own", [None, 1e-4])
@pytest.mark.parametrize("described", [None, 1e-5])
@pytest.mark.parametrize("given", [None, 1e-6, "none"])
def test_the_tolerance_is_that_of_the_option_else_the_system_else_the_fmu(
    given: Any, described: float | None, own: float | None, tmp_path: Path
) -> None:
    """Each FMU is passed exactly what the plan says, by both executors and both versions of FMI."""
    paths = {
        version: changed(
            reference_path(f"{version}/Dahlquist.fmu"),
            tmp_path / f"{version}.fmu",
            description=lambda text: text.replace(
                "<DefaultExperiment", "<DefaultExperiment" + (f' tolerance="{own}"' if own else "")
            ),
        )
        for version in ENTERS
    }
    builder = SystemBuilder("pair")
    for version, path in paths.items():
        builder.add(version, path)
    system = builder.build(stop_time=1.0, step_size=0.25, tolerance=described)
    assert_same_calls(system, among={*ENTERS.values()}, tolerance=given)
    expected = None if given == "none" else given or described or own
    made = calls(system, Backend.NATIVE, tolerance=given)
    for version, name in ENTERS.items():
        (entered,) = (c[2:4] for c in made if c[:2] == (version, name))
        assert entered == (expected is not None, expected or 0.0)
    planned = Simulation(system, tolerance=given).prepare().plan.instances
    assert [i.tolerance.value for i in planned] == [expected, expected]


@pytest.mark.parametrize("version", ENTERS)
def test_each_fmu_gets_its_own_tolerance_if_nothing_else_is_given(
    version: str, tmp_path: Path
) -> None:
    builder = SystemBuilder("pair")
    for k, own in enumerate(("1e-3", "1e-7")):
        path = changed(
            reference_path(f"{version}/Dahlquist.fmu"),
            tmp_path / f"{k}.fmu",
            description=lambda text, own=own: text.replace(  # type: ignore[misc]
                "<DefaultExperiment", f'<DefaultExperiment tolerance="{own}"'
            ),
        )
        builder.add(f"d{k}", path)
    settings = {"stop_time": 1, "step_size": "1/4"}
    assert_same_calls(builder, among={ENTERS[version]}, **settings)
    made = calls(builder, Backend.REFERENCE, **settings)
    assert [c[2:4] for c in made if c[1] == ENTERS[version]] == [(True, 1e-3), (True, 1e-7)]


@pytest.mark.parametrize(("version", "before"), [("fmi2", ["k"]), ("fmi3", ["u", "k"])])
def test_fmi_2_inputs_are_set_in_initialization_mode_only(version: str, before: list[str]) -> None:
    builder = SystemBuilder("pair")
    for name in "ab":
        builder.add(name, reference_path(f"{version}/Dahlquist.fmu"), {"u": 1.0, "k": 2.0})
    builder.connect("a.x", "b.u")
    settings = {"stop_time": 1, "step_size": "1/4"}
    kind = {"fmi2": "fmi2SetReal", "fmi3": "fmi3SetFloat64"}[version]
    assert_same_calls(builder, among={kind}, **settings)
    references = {
        v.name: v.value_reference
        for v in Simulation(builder, stop_time=1).prepare().plan.instances[1].model.variables
    }
    first = next(c for c in calls(builder, Backend.NATIVE, **settings) if c[:2] == ("b", kind))
    assert sorted(first[2]) == sorted(references[name] for name in before)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_every_type(version: str) -> None:
    path = reference_path(f"{version}/Feedthrough.fmu")
    names = [
        n for n in simulate(path, stop_time=1, step_size=1).names if not n.startswith("String")
    ]
    builder = SystemBuilder("chain")
    builder.add("first", path, {"Int32_input": 3, "Boolean_input": True})
    builder.add("second", path)
    for name in names:
        builder.connect(f"first.{name}", f"second.{name.replace('_output', '_input')}")
    recorded = [f"{component}.{name}" for component in ("first", "second") for name in names]
    among = {f"{version}SetBoolean"} | ({"fmi3SetFloat32"} if version == "fmi3" else set())
    settings = {"stop_time": 1, "step_size": "1/4", "output_variables": recorded}
    assert_same_calls(builder, among=among, **settings)


QUINTIC = Polynomial(2, 2)
EVENTS: dict[str, tuple[Algorithm, Any, EventClock]] = {
    "E2": (Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2), 0.1, EarlyReturn()),
    "PZ": (Jacobi(QUINTIC), Ramp(0.1), Predictive()),
    "C5": (Sequential("upper", QUINTIC, synchronised=True), 0.1, Check()),
}


@pytest.mark.parametrize(("name", "version"), in_turn(list(EVENTS), ["fmi2", "fmi3", "mixed"]))
def test_events(name: str, version: str) -> None:
    algorithm, step_size, clock = EVENTS[name]
    among = {"fmi2": {"fmi2SetInteger"}, "fmi3": {"fmi3UpdateDiscreteStates", "fmi3SetClock"}}
    assert_same_calls(
        reference_path(f"systems/two-mass-b1-{version}.ssp"),
        among=among.get(version, among["fmi2"] | among["fmi3"]),
        algorithm=algorithm,
        step_size=step_size,
        event_clock=clock,
        stop_time=5.0,  # three shared events, and one of upper alone
    )


@pytest.mark.filterwarnings("ignore:.*may have changed its discrete outputs late")  # with Jacobi
@pytest.mark.parametrize(("version", "step"), [("fmi3", "0.1"), ("fmi2", Locate("0.1"))])
def test_going_back(version: str, step: Locate | str) -> None:
    among = {"fmi2": {"fmi2SetFMUstate"}, "fmi3": {"fmi3UpdateDiscreteStates"}}[version]
    path = reference_path(f"systems/thermostat-{version}.ssp")
    settings = {"step_size": step, "stop_time": 10}
    assert_same_calls(path, among=among, **settings)


def test_a_jump_of_a_continuous_input(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("time,x\n0,20\n1,20\n1,22\n2.5,22\n2.5,18\n", encoding="utf-8")
    path = reference_path("fmi3/ThermostatController.fmu")
    settings: dict[str, Any] = {"stop_time": 4, "step_size": 1, "event_mode": True}
    assert_same_calls(path, among={"fmi3EnterEventMode"}, input=file, **settings)
    rows = simulate(path, input=file, **settings)
    assert [e.time for e in rows.events] == [1.0, 2.5]


@pytest.mark.parametrize("name", ["Superdense", "ThermostatController", "ThermostatRoom"])
def test_fmus_with_clocks_are_in_event_mode_without_being_asked(name: str) -> None:
    path = reference_path(f"fmi3/{name}.fmu")
    among = {"fmi3UpdateDiscreteStates", "fmi3EnterStepMode"}
    assert_same_calls(path, among=among, stop_time=3.5, step_size="0.5")


def test_superdense_time() -> None:
    settings = {"stop_time": 3.5, "step_size": "0.3", "start_values": {"test": 2}}
    among = {"fmi3EnterEventMode", "fmi3EnterStepMode"}
    path = reference_path("fmi3/Superdense.fmu")
    assert_same_calls(path, among=among, event_mode=True, **settings)


@dataclass(frozen=True, slots=True)
class TwoHalves(Algorithm):
    """All instances over both halves of the interval, then back and over the whole."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(plan.members)
        for half in (0.0, 0.5):
            with p.over(half, half + 0.5):
                Jacobi().emit(plan, p)
        p.restore(places)
        Jacobi().emit(plan, p)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize(
    ("backend", "n"), [(Backend.REFERENCE, 2), (Backend.NATIVE, 2), (Backend.NATIVE, 300)]
)
def test_fmus_are_told_that_no_earlier_state_is_restored_where_that_is_so(
    version: str, backend: Backend, n: int
) -> None:
    """libcosim's Chassis and Wheel do not leave a communication point while they are told otherwise.

    Of few steps, each is measured by the kernel; of many, most are not.
    """
    system = pair(version, version).build(stop_time=n / 8, step_size=1 / 8)

    def told(algorithm: Algorithm) -> list[bool]:
        found = calls(system, backend, algorithm=algorithm)
        return [bool(c[4]) for c in found if c[:2] == ("a", f"{version}DoStep")]

    assert told(Jacobi()) == [True] * n
    assert told(Waveform(Jacobi(), 2, 2)) == [True, True] * n
    # the second half starts after the state to which the FMU goes back
    assert told(TwoHalves()) == [True, False, True] * n


@pytest.mark.parametrize(
    ("version", "get"), [("fmi2", "fmi2GetFMUstate"), ("fmi3", "fmi3GetFMUState")]
)
def test_loops_in_step_mode(version: str, get: str, tmp_path: Path) -> None:
    """loops.md 7.2, L4, gain -4.4: the iterates of both executors agree to the last bit."""
    system = loop_system("L4", tmp_path, version).build(stop_time=0.5, step_size=0.1)
    assert_same_calls(system, among={f"{version}DoStep", get, get.replace("Get", "Set")})


def test_changes_of_the_structure() -> None:
    """A component joins, another one ends, and signals of a table feed what exists."""
    system = SystemBuilder("changes")
    tank = {"leak": 0, "height": 100}
    system.add("C", reference_path("fmi3/FillingTank.fmu"), tank)
    system.add("g", reference_path("fmi3/LoopFunction.fmu"), lifetime=Lifetime(until_time=3))
    system.add("h", reference_path("fmi2/Dahlquist.fmu"), lifetime=Lifetime(2))
    system.connect("g.y", "C.inflow", suppress_unit_conversion=True)
    table = {
        "time": [0, 2, 2, 4],
        "C.inflow": [0, 1, 5, 5],
        "g.u": [1, 0, 3, 3],
        "h.u": [0, 1, 2, 3],
    }
    among = {"fmi3DoStep", "fmi3EnterEventMode", "fmi2DoStep", "fmi3Terminate"}
    assert_same_calls(system, input=table, stop_time=4, step_size=0.5, among=among)
