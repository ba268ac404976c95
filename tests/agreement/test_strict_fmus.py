"""FMUs that refuse each forbidden call are run by every combination of algorithm, step, event clock, loops and executor.

A few of these runs are in the default tests, all others have the mark ``matrix``: ``pytest -m matrix``.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import changed
from strict_fmu import Strict

from fmimaster import CallError, OptionError, ProgramError, Simulation, SystemBuilder
from fmimaster.algorithms import (
    AlongLine,
    AutomaticSequence,
    Corrected,
    GaussSeidel,
    Jacobi,
    Refreshed,
    Richardson,
    Sequential,
    Subsequence,
    SubSteps,
    Waveform,
)
from fmimaster.events import Check, EarlyReturn
from fmimaster.fmu.instance import InstanceOptions
from fmimaster.fmu.load import Loader
from fmimaster.inputs import LINEAR, NEPCE
from fmimaster.loops import Loops
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor
from fmimaster.steps import PID, Locate, MultiRate, PredictorCorrector, Ramp, StepDoubling
from fmimaster.system.description import Component
from fmimaster.system.model import DataType, Source

PLAIN_2, PLAIN_3 = Strict("fmi2"), Strict("fmi3", intermediate=True)
EVENTS = Strict("fmi3", events=True)
EARLY = Strict("fmi3", events=True, early=True, intermediate=True)
CLOCKS = Strict("fmi3", events=True, clocks=True)
EXCHANGE_2, EXCHANGE_3 = Strict("fmi2", exchange=True), Strict("fmi3", exchange=True)
EXCHANGE_CLOCKS = replace(EXCHANGE_3, clocks=True)
UNABLE = replace(EARLY, states=False)

PAIRS: dict[str, tuple[Strict, Strict, dict[str, Any]]] = {
    "FMI 2.0": (PLAIN_2, PLAIN_2, {}),
    "FMI 3.0": (PLAIN_3, PLAIN_3, {}),
    "direct": (replace(PLAIN_3, direct=True), replace(PLAIN_2, direct=True), {}),
    "derivatives": (
        replace(PLAIN_3, direct=True, derivatives=True),
        replace(PLAIN_2, direct=True, derivatives=True),
        {},
    ),
    "events": (EVENTS, replace(EVENTS, direct=True), {"event_mode": True}),
    "early returns": (EARLY, EVENTS, {"event_mode": True}),
    "time events": (EARLY, EVENTS, {"event_mode": True, "announce": 1}),
    "early return as clock": (EARLY, EARLY, {"event_clock": EarlyReturn()}),
    "states missing": (UNABLE, EARLY, {"event_mode": True}),
    "all states missing": (UNABLE, UNABLE, {"event_mode": True}),
    "clocks": (CLOCKS, replace(CLOCKS, early=True), {}),
    "Model Exchange": (EXCHANGE_2, EXCHANGE_3, {}),
    "Model Exchange with events": (EXCHANGE_3, EARLY, {"event_mode": True}),
    "Model Exchange with clocks": (
        EXCHANGE_CLOCKS,
        CLOCKS,
        {"event_mode": True},
    ),
    "Model Exchange, states missing": (
        replace(EXCHANGE_3, states=False),
        EARLY,
        {"event_mode": True},
    ),
    "Model Exchange, unused clocks": (EXCHANGE_CLOCKS, EXCHANGE_3, {}),
    "ends": (EARLY, EXCHANGE_3, {"event_mode": True, "stop": 0.6}),
    "ends in an update": (EARLY, EXCHANGE_3, {"event_mode": True, "stop": -0.6}),
    "ends in a hidden update": (EXCHANGE_2, EXCHANGE_3, {"event_mode": False, "stop": -0.6}),
    "ends at the start": (EARLY, EXCHANGE_3, {"event_mode": True, "stop": -1e-12}),
}
METHODS: dict[str, dict[str, Any]] = {
    "jacobi": {"algorithm": Jacobi()},
    "jacobi, lines": {"algorithm": Jacobi(LINEAR)},
    "gauss-seidel": {"algorithm": GaussSeidel()},
    "gauss-seidel, lin": {"algorithm": GaussSeidel(LINEAR, mode=AlongLine())},
    "gauss-seidel, held": {"algorithm": GaussSeidel(mode=Corrected())},
    "gauss-seidel, sub": {"algorithm": GaussSeidel(mode=Subsequence())},
    "waveform": {"algorithm": Waveform(Jacobi(LINEAR), tolerance=1e-3)},
    "richardson": {"algorithm": Richardson(GaussSeidel(LINEAR))},
    "sub-steps": {"algorithm": SubSteps(counts={"a": 3})},
    "sub-steps of the other": {"algorithm": SubSteps(counts={"b": 3})},
    "sequential": {"algorithm": Sequential(first="a")},
    "refreshed": {"algorithm": Refreshed(Jacobi(NEPCE))},
    "automatic sequence": {"algorithm": AutomaticSequence(), "event_clock": Check()},
    "step doubling": {"step_size": PID(0.1, (StepDoubling(0.01),), smallest=0.01)},
    "predictor": {"step_size": PID(0.1, (PredictorCorrector(0.01),), smallest=0.01)},
    "located": {"step_size": Locate(0.1)},
    "ramp": {"step_size": Ramp(0.1)},
    "rates": {"step_size": MultiRate("0.1", {"a": "0.05"})},
}
BACKENDS = [Backend.REFERENCE, Backend.NATIVE]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Has the FMUs of all pairs."""
    return tmp_path_factory.mktemp("strict")


def system(pair: str, folder: Path) -> tuple[SystemBuilder, dict[str, Any]]:
    """Two FMUs that feed each other, and the settings of the pair."""
    *units, settings = PAIRS[pair]
    settings = dict(settings)
    starts = {"announce": settings.pop("announce", 0), "stop": settings.pop("stop", 0.0)}
    builder = SystemBuilder()
    for name, unit, period in zip("ab", units, (0.17, 0.23), strict=True):
        path = folder / f"{pair} {name}.fmu"
        builder.add(name, path if path.exists() else unit.write(folder, path.stem))
        builder.set(f"{name}.period", period)
        builder.set(f"{name}.d", 0.3 if unit.direct else 0.0)
        for variable, value in starts.items():
            builder.set(f"{name}.{variable}", value)
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u", factor=-0.5)
    builder.connect("a.n", "b.m")
    builder.connect("b.n", "a.m")
    if all(unit.clocks for unit in units):
        builder.connect("a.out", "b.in")
        builder.connect("a.copy", "b.sum")
    return builder, settings


def is_run(pair: str, method: str, loops: Loops, backend: Backend, folder: Path) -> bool:
    """Whether a combination was run, and not refused before; a forbidden call is an error."""
    if backend is Backend.NATIVE and native_executor() is None:
        pytest.skip("the kernel is not built")
    builder, settings = system(pair, folder)
    settings |= METHODS[method]
    settings.setdefault("step_size", 0.1)
    simulation = Simulation(builder, stop_time=1, loops=loops, backend=backend, **settings)
    try:
        simulation.prepare()
    except (OptionError, ProgramError):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about accuracy: only the calls count here
        simulation.run()
    return True


COMBINATIONS = [
    pytest.param(pair, method, loops, id=f"{pair}: {method}, {loops.value}")
    for pair, method, loops in product(PAIRS, METHODS, (Loops.REAL, Loops.ALL, Loops.NONE))
]


@pytest.mark.matrix
@pytest.mark.parametrize(("pair", "method", "loops"), COMBINATIONS)
def test_no_forbidden_call_in_any_combination(
    pair: str, method: str, loops: Loops, folder: Path
) -> None:
    for backend in BACKENDS:
        is_run(pair, method, loops, backend, folder)


@pytest.mark.parametrize(
    ("pair", "method"),
    [
        ("FMI 2.0", "gauss-seidel, sub"),
        ("FMI 3.0", "gauss-seidel, lin"),
        ("derivatives", "gauss-seidel, held"),
        ("direct", "waveform"),
        ("events", "richardson"),
        ("events", "sub-steps"),
        ("early returns", "step doubling"),
        ("early return as clock", "gauss-seidel"),
        ("time events", "jacobi, lines"),
        ("states missing", "gauss-seidel"),
        ("all states missing", "predictor"),
        ("clocks", "richardson"),
        ("Model Exchange", "located"),
        ("Model Exchange with events", "predictor"),
        ("Model Exchange with clocks", "waveform"),
        ("Model Exchange, unused clocks", "gauss-seidel, lin"),
        ("Model Exchange, states missing", "gauss-seidel"),
        ("Model Exchange, states missing", "waveform"),
        ("ends", "step doubling"),
        ("ends in an update", "gauss-seidel"),
        ("ends in a hidden update", "jacobi"),
        ("ends at the start", "jacobi"),
    ],
)
def test_no_forbidden_call(pair: str, method: str, backend: Backend, folder: Path) -> None:
    assert is_run(pair, method, Loops.REAL, backend, folder)


@pytest.mark.filterwarnings("ignore:the clock 'a.count' has the interval")
@pytest.mark.parametrize(
    "settings", [{}, {"event_mode": False}, {"event_clock": EarlyReturn()}], ids=str
)
def test_model_exchange_loses_no_tick_of_an_output_clock(
    settings: dict[str, Any], backend: Backend, folder: Path
) -> None:
    """Nothing is connected; the FMU refuses to leave Event Mode before its intervals were asked for."""
    path = folder / "ticks.fmu"
    builder = SystemBuilder()
    fmu = path if path.exists() else EXCHANGE_CLOCKS.write(folder, path.stem)
    builder.add("a", fmu, {"period": 0.25})
    columns = ("a.out", "a.copy")
    results = Simulation(
        builder, stop_time=1, step_size=0.1, output_variables=columns, backend=backend, **settings
    ).run()
    times = results.time[results["a.out"]]
    assert times.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert np.ma.compressed(results["a.copy"]).tolist() == [0, 1, 2, 3]  # before the updates


@pytest.mark.parametrize("isolate", [False, True])
def test_an_interval_that_cannot_be_read_is_an_error_of_its_function(
    isolate: bool, backend: Backend, tmp_path: Path
) -> None:
    """The description declares fractions, which the FMU refuses."""

    def with_fractions(text: str) -> str:
        return text.replace('valueReference="26"', 'valueReference="26" supportsFraction="true"')

    unit = CLOCKS.write(tmp_path, "whole")
    fmu = changed(unit, tmp_path / "fractions.fmu", description=with_fractions)
    simulation = Simulation(fmu, stop_time=1, step_size=0.1, backend=backend, isolate=isolate)
    with pytest.raises(CallError, match="the FMU does not declare it") as got:
        simulation.run()
    assert got.value.function == "fmi3GetIntervalFraction"
    assert got.value.status == "fmi3Error"


def test_outputs_are_read_before_inputs_are_set_inside_of_steps(
    backend: Backend, folder: Path
) -> None:
    """In Intermediate Update Mode both are allowed; the FMU refuses Get after Set."""
    path = folder / "inside.fmu"
    unit = path if path.exists() else PLAIN_3.write(folder, path.stem)
    builder = SystemBuilder()
    builder.add("a", unit)
    builder.add("b", unit)
    builder.connect("a.y", "b.u")
    results = Simulation(
        builder,
        stop_time=1,
        step_size=0.1,
        algorithm=Jacobi(LINEAR),
        event_clock="none",
        record_intermediate_values=True,
        backend=backend,
    ).run()
    assert len(results.intermediate["b"].time) > 11


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_a_forbidden_call_is_refused(version: str, folder: Path) -> None:
    """So that a run without an error shows something: the FMU is called as no program would call it."""
    path = Strict(version).write(folder, f"refuses {version}")
    loader = Loader()
    instance = loader.instantiate(Component("a", Source(path)), "a", InstanceOptions())
    read = instance.getter(DataType.FLOAT64, [4], np.zeros(1))
    write = instance.setter(DataType.FLOAT64, [3], np.zeros(1))
    instance.enter_initialization_mode(0.0, 1.0, None)
    write()
    instance.enter_step_mode()
    instance.do_step(0.0, 0.5)
    read()
    write()
    with pytest.raises(CallError, match="inputs were set, and DoStep was not called since then"):
        read()
    with pytest.raises(CallError, match=r"DoStep at t = 0.5 in the state after Error"):
        instance.do_step(0.5, 0.5)
    loader.close()
