"""Runs that are repeated by the same instances give the rows, events and steps of runs by new ones, in every bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from command_line import changed
from in_turn import in_turn
from misbehaving_fmu import Act, misbehaving
from same_runs import assert_same

import fmimaster.algorithms
import fmimaster.loops
import fmimaster.program
from fmimaster import (
    CallError,
    DescriptionError,
    OptionError,
    PythonComponent,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.algorithms import GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.base.installation import reference_names
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.fmu.model_exchange.cvode import Cvode
from fmimaster.fmu.model_exchange.one_step import Euler
from fmimaster.inputs import FIRST_ORDER, NEPCE, Polynomial
from fmimaster.program.hook import Hook
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor
from fmimaster.steps import PID, EmbeddedOrders, MultiRate, Ramp

SYSTEMS = [Path(n).stem for n in reference_names() if n.endswith(".ssp")]
USUAL = (
    "quarter-car-a-fmi2",
    "cradle-mixed",
    "thermostat-fmi3",
    "two-mass-b1-mixed",
    "rigid-link-fmi3",
)
CAR = reference_path("systems/quarter-car-a-fmi3.ssp")
VARIED = {"chassis.mc": 420.0, "wheel.kw": 140e3, "wheel.kc": 16e3, "wheel.dc": 900.0}

METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "waveform": ("quarter-car-a-fmi2", {"algorithm": Waveform(Jacobi(Polynomial(2, 2)))}),
    "controlled": (
        "quarter-car-a-fmi3",
        {
            "algorithm": GaussSeidel(),
            "step_size": PID(0.02, (EmbeddedOrders(0.01),), smallest=0.001, reject_above=1.0),
        },
    ),
    "step doubling": ("quarter-car-a-fmi3", {"algorithm": Richardson(Jacobi(NEPCE))}),
    "rates": ("quarter-car-b-fmi2", {"step_size": MultiRate("1/100", {"wheel": "1/300"})}),
    "PZ": (
        "two-mass-b1-fmi3",
        {
            "algorithm": Jacobi(Polynomial(2, 2)),
            "step_size": Ramp("1/100"),
            "event_clock": Predictive(),
        },
    ),
}
"""Name of a method → a reference system, and settings."""

needs_kernel = pytest.mark.skipif(native_executor() is None, reason="needs the kernel")


def assert_repeats(simulation: Simulation, runs: int = 2) -> None:
    """Each of some runs is the one that is made anew."""
    simulation = replace(simulation, error_estimate=False)
    expected = simulation.run()
    with simulation.repeated() as repeated:
        for _ in range(runs):
            assert_same(repeated(), expected)


@pytest.mark.parametrize(
    "system",
    [pytest.param(s, marks=() if s in USUAL else pytest.mark.thorough) for s in SYSTEMS],
)
@pytest.mark.filterwarnings("ignore::fmimaster.AccuracyWarning")
def test_each_reference_system_is_repeated(system: str) -> None:
    """By the methods that are chosen for it: events, contacts, constraints, loops."""
    assert_repeats(Simulation(reference_path(f"systems/{system}.ssp")))


@pytest.mark.thorough
@pytest.mark.parametrize("fmu", [n for n in reference_names() if n.endswith(".fmu")])
def test_each_reference_fmu_is_repeated(fmu: str) -> None:
    """Alone: clocks, Event Mode, Scheduled Execution, Model Exchange, arrays."""
    assert_repeats(Simulation(reference_path(fmu), stop_time=1))


@pytest.mark.parametrize(
    "backend", [Backend.REFERENCE, pytest.param(Backend.NATIVE, marks=needs_kernel)]
)
@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_repeated(method: str, backend: Backend) -> None:
    """Saved states, controlled steps, own step sizes, event clocks, by both executors."""
    name, settings = METHODS[method]
    system = reference_path(f"systems/{name}.ssp")
    assert_repeats(Simulation(system, stop_time="0.3", backend=backend, **settings))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("two-mass-b2-fmi3", {"event_clock": LookAhead()}),
        ("rope-fmi3", {"event_clock": Predictive()}),
        ("quarter-car-a-fmi2", {"step_size": PID.ecco("0.01", smallest="0.0001"), "stop_time": 1}),
        ("quarter-car-a-fmi3", {"step_size": "predictor-corrector", "stop_time": "0.05"}),
    ],
)
def test_what_controllers_and_clocks_remember_is_forgotten(
    name: str, settings: dict[str, Any]
) -> None:
    """Sizes of steps, histories and indicators are those of a first run."""
    assert_repeats(Simulation(reference_path(f"systems/{name}.ssp"), **settings), 3)


def test_start_values_vary() -> None:
    """Each run is that of a simulation with these start values; those left out are those of the system again."""
    car = Simulation(CAR, stop_time="1/2", error_estimate=False)
    halves: list[Mapping[str, float]] = [{}, VARIED, {"wheel.kc": 12e3}, VARIED, {}]
    with car.repeated(VARIED) as runs:
        assert runs.names == (*VARIED,)
        found = [runs(values) for values in halves]
    for results, values in zip(found, halves, strict=True):  # none has changed since
        assert_same(results, replace(car, start_values=values).run())


def test_start_values_of_the_simulation_are_kept() -> None:
    """What the simulation gives, and does not vary or is left out, is as it gives it."""
    car = Simulation(
        CAR, stop_time="1/10", error_estimate=False, start_values={"wheel.kc": 1e4, "wheel.kw": 1e5}
    )
    with car.repeated(["wheel.kc"]) as runs:
        assert_same(runs(), car.run())
        both = replace(car, start_values={"wheel.kc": 2e4, "wheel.kw": 1e5})
        assert_same(runs({"wheel.kc": 2e4}), both.run())


def test_open_inputs_vary_beside_signals() -> None:
    """Inputs that nothing feeds have start values too; the table of the others begins anew."""
    wheel = Simulation(
        reference_path("fmi3/Feedthrough.fmu"),
        stop_time=1,
        step_size="1/10",
        error_estimate=False,
        input={"time": [0.0, 1.0], "Float64_continuous_input": [0.0, 2.0]},
    )
    name = "Float64_discrete_input"
    with wheel.repeated([name]) as runs:
        for values in ({name: 1.5}, {}, {name: 0.5}):
            assert_same(runs(values), replace(wheel, start_values=values).run())


def test_an_array_varies() -> None:
    """All elements are given together, as a list or an array."""
    system = Simulation(
        reference_path("fmi3/Feedthrough.fmu"), stop_time=1, step_size="1/10", error_estimate=False
    )
    name = "Float64_vector_input"
    with system.repeated([name]) as runs:
        first = runs()
        for values in ([0.5, 1.5, 2.5], np.array([3.0, 2.0, 1.0])):
            assert_same(runs({name: values}), replace(system, start_values={name: values}).run())
        assert_same(runs(), first)


@needs_kernel
def test_memory_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A further run borrows nothing that the one before has not borrowed."""
    masses = Simulation(
        reference_path("systems/two-mass-b1-mixed.ssp"), stop_time="1/50", event_clock=Predictive()
    )
    kept = []
    with masses.repeated() as runs:
        for _ in range(6):
            runs()
            lender = runs._session.executor._lender  # type: ignore[attr-defined]
            kept.append(len(lender._kept))
    assert len(set(kept[2:])) == 1


def test_each_hook_that_remembers_something_begins_anew() -> None:
    """What a checkpoint keeps of a hook, a further run must not have."""
    for room in (fmimaster.algorithms, fmimaster.loops, fmimaster.program):
        for module in iter_modules(room.__path__, f"{room.__name__}."):
            import_module(module.name)
    kinds = [*Hook.__subclasses__()]
    for kind in kinds:
        kinds += kind.__subclasses__()
    remember = [k for k in kinds if k.__module__.startswith("fmimaster.") and "remember" in vars(k)]
    assert len(remember) > 2
    assert [k.__name__ for k in remember if "begin_anew" not in vars(k)] == []


EXCHANGED: dict[str, tuple[str, dict[str, Any]]] = {
    "Dormand-Prince": ("ball", {}),
    "located": ("ball", {"event_clock": EarlyReturn(), "algorithm": Jacobi()}),
    "Euler": ("ball", {"solver": Euler(0.03)}),
    "CVODE": ("pair", {"solver": Cvode(), "algorithm": GaussSeidel(FIRST_ORDER)}),
    "waveform": ("pair", {"algorithm": Waveform(Jacobi(FIRST_ORDER))}),
    "waveform by CVODE": ("pair", {"solver": Cvode(), "algorithm": Waveform(Jacobi())}),
    "copied states": ("copied pair", {"algorithm": Waveform(Jacobi(FIRST_ORDER))}),
}
"""Name → Model Exchange FMUs, and settings."""


def exchanged_pair(version: str, folder: Path | None) -> SystemBuilder:
    """Two Model Exchange FMUs in a ring; with a folder, copies there that cannot save FMU states."""

    def without_state(text: str) -> str:
        return text.replace("canGetAndSetFMUState=", "a=").replace("canGetAndSetFMUstate=", "a=")

    fmu = reference_path(f"{version}/Dahlquist.fmu")
    if folder is not None:
        fmu = changed(fmu, folder / "copied.fmu", description=without_state)
    system = SystemBuilder()
    for name in "ab":
        system.add(name, fmu, {"x": float(name == "a")}, interface="ModelExchange")
    system.connect("b.x", "a.u", factor=-1.0)
    system.connect("a.x", "b.u")
    return system


@pytest.mark.parametrize(
    ("method", "version", "backend"),
    in_turn([*EXCHANGED], ["fmi2", "fmi3"], [Backend.NATIVE, Backend.REFERENCE]),
)
def test_model_exchange_is_repeated_by_the_same_instances(
    method: str, version: str, backend: Backend, tmp_path: Path
) -> None:
    """Time, states, indicators, next events, the length of steps and copies of states begin anew."""
    if backend is Backend.NATIVE and native_executor() is None:
        pytest.skip("needs the kernel")
    kind, settings = EXCHANGED[method]
    system: Any = reference_path(f"{version}/BouncingBall.fmu")
    names, values = ["e"], [{"e": 0.5}, {}, {"e": 0.6}, {"e": 0.5}]
    if kind == "ball":
        settings = {**settings, "interface": "ModelExchange"}
    else:
        system = exchanged_pair(version, tmp_path if kind == "copied pair" else None)
        names, values = ["a.k", "b.k"], [{"a.k": 2.0}, {}, {"a.k": 1.5, "b.k": 0.5}, {"a.k": 2.0}]
    made = Simulation(
        system, stop_time=2, step_size="1/10", backend=backend, error_estimate=False, **settings
    )
    with made.repeated(names) as runs:
        session = None
        for given in values:
            assert_same(runs(given), replace(made, start_values=given).run())
            assert session in (None, runs._session)
            session = runs._session


@needs_kernel
def test_memory_of_model_exchange_stays() -> None:
    """What the kernel borrows for an integration is given back before the next one."""
    ball = Simulation(
        reference_path("fmi3/BouncingBall.fmu"),
        interface="ModelExchange",
        stop_time="1/10",
        error_estimate=False,
    )
    kept = []
    with ball.repeated() as runs:
        for _ in range(5):
            runs()
            (entry,) = runs._session.executor._entries  # type: ignore[attr-defined]
            kept.append((len(entry._kept), [len(k) for k in entry._kept if isinstance(k, list)]))
    assert kept == kept[:1] * len(kept)


def test_an_fmu_that_does_not_reset_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A repetition of the first run shows it; the results are right, and a warning says what it costs."""
    fmu = Simulation(
        misbehaving(tmp_path, "fmi3"), stop_time=1, step_size="1/10", error_estimate=False
    )
    with fmu.repeated(["k"]) as runs:
        for k in (1.0, 2.0, 3.0):
            assert_same(runs({"k": k}), replace(fmu, start_values={"k": k}).run())
    (told,) = [r.getMessage() for r in caplog.records if "Reset" in r.getMessage()]
    assert told.startswith("After Reset, 'x'")
    assert "each run gets new instances" in told


def test_instances_that_cannot_be_made_end_one_run(tmp_path: Path) -> None:
    """The error names the FMU, and another run may follow."""
    path = misbehaving(tmp_path, "fmi3", Act("EnterInitializationMode", "return", 3))
    with Simulation(path, stop_time=1, step_size="1/10").repeated() as runs:
        for _ in range(2):
            with pytest.raises(CallError, match="EnterInitializationMode of 'Misbehaving'"):
                runs()


def test_a_reset_that_fails_ends_nothing(tmp_path: Path) -> None:
    """Another run follows by new instances."""
    path = misbehaving(tmp_path, "fmi2", Act("Reset", "return", 3))
    fmu = Simulation(path, stop_time=1, step_size="1/10", error_estimate=False)
    with fmu.repeated(["k"]) as runs:
        for k in (1.0, 2.0, 3.0):
            assert_same(runs({"k": k}), replace(fmu, start_values={"k": k}).run())


def test_a_run_that_fails_keeps_its_rows_and_others_follow(tmp_path: Path) -> None:
    """Its error is raised with its rows; the next run has new instances."""
    path = misbehaving(tmp_path, "fmi3", Act("DoStep", "return", 3, since=0.5))
    fmu = Simulation(path, stop_time=1, step_size="1/10")
    short = replace(fmu, stop_time="0.4", error_estimate=False)
    with fmu.repeated(["k"]) as runs:
        for _ in range(3):
            with pytest.raises(CallError) as failed:
                runs({"k": 2.0})
            assert failed.value.results is not None
            assert failed.value.results.time[-1] == 0.5
            expected = replace(short, start_values={"k": 2.0}).run()
            assert np.array_equal(failed.value.results["x"][:5], expected["x"])


def test_components_in_python_are_made_anew() -> None:
    """Nothing tells what their objects keep."""

    class Counting(PythonComponent):
        def __init__(self) -> None:
            self.outputs, self.parameters = {"y": 0.0}, {"k": 1.0}

        def start(self, t: float) -> None:
            self.seen = getattr(self, "seen", 0) + 1
            self.y = self.seen * self.k

        def step(self, t: float, h: float) -> None:
            self.y += self.k

    builder = SystemBuilder("counting")
    builder.add("a", Counting())
    counting = Simulation(builder, stop_time=1, step_size="1/10", error_estimate=False)
    with counting.repeated(["a.k"]) as runs:
        for k in (1.0, 3.0, 1.0):
            assert_same(runs({"a.k": k}), replace(counting, start_values={"a.k": k}).run())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wheel.nothing", "has no variable 'nothing'"),
        ("wheel.force", "takes no start value"),
        ("wheel.velocity", "connection"),
    ],
)
def test_what_cannot_vary_is_refused_by_name(name: str, words: str) -> None:
    """Before anything is loaded."""
    with pytest.raises((DescriptionError, OptionError)) as refused:
        Simulation(CAR).repeated([name])
    assert words in str(refused.value)
    assert name.partition(".")[2] in str(refused.value)


def test_values_are_checked_in_each_run() -> None:
    """A wrong one ends nothing."""
    with Simulation(CAR, stop_time="1/10").repeated("wheel.kc") as runs:
        with pytest.raises(OptionError, match="values=3"):
            runs(3)  # type: ignore[arg-type]
        with pytest.raises(DescriptionError, match=r"wheel\.kc"):
            runs({"wheel.kc": "much"})
        with pytest.raises(
            OptionError, match=r"'wheel\.kw' does not vary .* Did you mean 'wheel\.kc'"
        ):
            runs({"wheel.kw": 1.0})
        assert runs({"wheel.kc": 1e4}).rows
    with pytest.raises(OptionError, match="closed"):
        runs()


@pytest.mark.parametrize(
    "settings",
    [
        {"accuracy": 1e-3},
        {"checkpoint": "run.checkpoint"},
        {"final_fmu_state": "state"},
        {"initial_fmu_state": "state"},
        {"record_intermediate_values": True},
    ],
)
def test_settings_of_a_single_run_are_refused(settings: dict[str, Any]) -> None:
    """They would write the same file again and again, or need several runs."""
    with pytest.raises(OptionError, match=next(iter(settings))):
        Simulation(CAR, **settings).repeated()
