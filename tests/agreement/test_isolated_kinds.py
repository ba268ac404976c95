"""FMUs of all kinds in processes of their own: the values, call logs and messages of a run in this process."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.loops import LoopSolver

BACKENDS = pytest.mark.parametrize("backend", ["native", "reference"])
VERSIONS = pytest.mark.parametrize("version", ["fmi2", "fmi3"])


def assert_same_bits(one: Results, other: Results) -> None:
    assert list(one) == list(other)
    for name in ("time", *one):
        here, there = (
            results.time if name == "time" else results[name] for results in (one, other)
        )
        np.testing.assert_array_equal(here, there, err_msg=name)


def here_and_apart(source: Any, **settings: Any) -> tuple[Results, Results]:
    here, apart = (Simulation(source, isolate=i, **settings).run() for i in (False, True))
    assert here.rows > 2
    return here, apart


@BACKENDS
@VERSIONS
@pytest.mark.parametrize("solver", ["dormand-prince", "cvode"])
def test_model_exchange_with_its_events(solver: str, version: str, backend: str) -> None:
    system = SystemBuilder()
    system.add("ball", reference_path(f"{version}/BouncingBall.fmu"), interface="ModelExchange")
    here, apart = here_and_apart(
        system.build(stop_time=1.5, step_size=0.1), solver=solver, backend=backend
    )
    assert here["ball.h"].min() < 0.2
    assert_same_bits(here, apart)


@VERSIONS
def test_all_types_with_text(version: str) -> None:
    path = reference_path(f"{version}/Feedthrough.fmu")
    system = SystemBuilder()
    system.add("first", path, {"String_input": "Größe"})
    system.add("second", path)
    names = list(Simulation(path, stop_time=1, step_size=1).run().names)
    assert ("Binary_output" in names) == (version == "fmi3")
    for name in names:
        system.connect(f"first.{name}", f"second.{name.replace('_output', '_input')}")
    here, apart = here_and_apart(system.build(stop_time=0.5, step_size=0.1))
    assert_same_bits(here, apart)
    assert set(apart["second.String_output"][2:]) == {"Größe"}


@BACKENDS
def test_loops_with_directional_derivatives(backend: str) -> None:
    here, apart = here_and_apart(
        reference_path("systems/rigid-link-fmi3.ssp"),
        loop_solver=LoopSolver(),
        stop_time=1.0,
        step_size=0.1,
        backend=backend,
    )
    assert_same_bits(here, apart)


@BACKENDS
@VERSIONS
def test_messages_of_debug_logging(
    version: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    messages = []
    for isolate in (False, True):
        caplog.clear()
        with caplog.at_level(logging.DEBUG, "fmimaster"):
            Simulation(
                reference_path(f"{version}/BouncingBall.fmu"),
                isolate=isolate,
                debug_logging=True,
                stop_time=1.0,
                step_size=0.1,
                backend=backend,
            ).run()
        messages.append([m for m in caplog.messages if m.startswith("BouncingBall [")])
    assert messages[0] == messages[1]
    assert messages[0]


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("system", ["two-mass-b1-fmi3", "thermostat-fmi3"])
def test_call_logs(system: str, tmp_path: Path) -> None:
    logs = []
    for isolate in (False, True):
        path = tmp_path / f"{isolate}.log"
        Simulation(
            reference_path(f"systems/{system}.ssp"),
            isolate=isolate,
            fmi_log_file=path,
            stop_time=0.5,
            step_size=0.1,
        ).run()
        calls = [line.partition("(")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        # each FMU has its order; requests to different FMUs are collected, so theirs may differ
        logs.append(sorted(calls, key=lambda call: call.rpartition(": ")[0].rpartition(" ")[2]))
    assert logs[0] == logs[1]
