"""FMUs in processes of their own: the bits of a run in this process, with both executors; and FMUs that are lost."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ABORT, CRASHED

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import Algorithm, Aligned, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.base.errors import FmuLostError, OptionError, SimulationError
from fmimaster.events import EarlyReturn
from fmimaster.inputs import Polynomial
from fmimaster.steps import FreeStep

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

TIMES: dict[str, Any] = {"stop_time": 1.0, "step_size": 0.1}

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "steps": ("two-mass-b1-fmi2", {"step_size": "0.05"}),
    "order of stepping": ("two-mass-b1-mixed", {"step_size": "0.05", "algorithm": GaussSeidel()}),
    "derivatives of inputs": (
        "two-mass-b1-fmi2",
        {"step_size": "0.05", "algorithm": Jacobi(Polynomial(2, 2)), "stop_time": 0.5},
    ),
    "step doubling": (
        "two-mass-b1-mixed",
        {"step_size": "0.05", "algorithm": Richardson(Jacobi())},
    ),
    "sweeps, polynomials, early return": (
        "two-mass-b1-fmi3",
        {
            "algorithm": Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2),
            "step_size": FreeStep("0.2"),
            "event_clock": EarlyReturn(),
        },
    ),
    "step-size control": (
        "two-mass-b1-mixed",
        {"step_size": "embedded-orders:size=0.01,tolerance=0.1", "stop_time": 0.7},
    ),
    "clocks": ("thermostat-fmi3", {"event_clock": "early-return", "stop_time": 20.0}),
}


@pytest.fixture(params=RUNS, ids=lambda name: name.replace(" ", "-"))
def run(request: pytest.FixtureRequest) -> tuple[Path, dict[str, Any]]:
    system, settings = RUNS[request.param]
    return reference_path(f"systems/{system}.ssp"), {"stop_time": 1.5, **settings}


def assert_same_bits(one: Results, other: Results) -> None:
    assert list(one) == list(other)
    np.testing.assert_array_equal(one.time, other.time)
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("backend", ["native", "reference"])
def test_an_isolated_run_has_the_bits_of_one_in_this_process(
    run: tuple[Path, dict[str, Any]], backend: str
) -> None:
    path, settings = run
    here = Simulation(path, isolate=False, **settings).run()
    apart = Simulation(path, isolate=True, backend=backend, **settings).run()
    assert_same_bits(here, apart)
    assert len(here.events) == len(apart.events)


FAULTY = "fmi3/Faulty.fmu"
CRASH, EXIT, HANG = 9, 11, 13


@pytest.mark.parametrize("backend", ["native", "reference"])
def test_a_crash_ends_the_run_with_its_rows_and_says_where(backend: str) -> None:
    values = {"fault": CRASH, "faultTime": 0.5}
    run = Simulation(
        reference_path(FAULTY), start_values=values, isolate=True, backend=backend, **TIMES
    )
    with pytest.raises(
        FmuLostError,
        match=rf"'Faulty' was ended by {re.escape(CRASHED)}, in fmi3DoStep at t = ",
    ) as caught:
        run.run()
    error = caught.value
    assert (error.signal, error.function, error.instance) == (CRASHED, "fmi3DoStep", "Faulty")
    assert error.how == f"was ended by {CRASHED}"
    assert error.results.rows > 1


def test_an_exit_ends_the_run_only() -> None:
    values = {"fault": EXIT, "faultTime": 0.5}
    with pytest.raises(
        FmuLostError, match=rf"ended with exit status 3{re.escape(ABORT)}, in fmi3DoStep"
    ):
        Simulation(reference_path(FAULTY), start_values=values, isolate="Faulty", **TIMES).run()


def test_a_call_that_does_not_return_is_ended_at_its_deadline() -> None:
    values = {"fault": HANG, "faultTime": 0.5}
    with pytest.raises(FmuLostError, match=r"did not answer within 0\.5 s and was ended"):
        Simulation(reference_path(FAULTY), start_values=values, call_timeout=0.5, **TIMES).run()


class Refusing(logging.Handler):
    """A log handler that raises after some messages, as one whose disk is full may do."""

    left = 5

    def handle(self, record: logging.LogRecord) -> bool:
        self.left -= 1
        if self.left < 0:
            raise OSError("no space left")
        return True


def test_an_error_of_a_log_handler_ends_an_isolated_run_with_that_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "fmimaster")
    monkeypatch.setattr(logging.getLogger("fmimaster"), "handlers", [Refusing()])
    run = Simulation(
        reference_path("fmi3/BouncingBall.fmu"), isolate=True, debug_logging=True, stop_time=3.0
    )
    with pytest.raises(OSError, match="no space left"):
        run.run()


@LINUX
def test_nothing_remains_of_isolated_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = Simulation(reference_path("fmi3/Dahlquist.fmu"), isolate=True)
    run.run()
    before = os.listdir("/proc/self/fd")
    run.run()
    with pytest.raises(FmuLostError):
        Simulation(
            reference_path(FAULTY), start_values={"fault": CRASH}, isolate=True, **TIMES
        ).run()
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert list(tmp_path.iterdir()) == []


@LINUX
def test_runs_leave_no_descriptor_until_garbage_is_collected() -> None:
    run = Simulation(reference_path("fmi3/Dahlquist.fmu"), isolate=True, **TIMES)
    run.run()
    gc.collect()
    before = os.listdir("/proc/self/fd")
    gc.disable()
    try:
        for _ in range(3):
            run.run()
        assert len(os.listdir("/proc/self/fd")) == len(before)
    finally:
        gc.enable()


@pytest.mark.parametrize("backend", ["native", "reference"])
@pytest.mark.parametrize("algorithm", [Jacobi(), Waveform(Jacobi())], ids=["jacobi", "sweeps"])
def test_calls_are_logged_as_in_this_process(
    tmp_path: Path, algorithm: Algorithm, backend: str
) -> None:
    """Also the number of times that outputs are read: a step reads them in advance only if they will be read."""
    builder = SystemBuilder("pair")
    builder.add("first", reference_path("fmi2/Dahlquist.fmu"))
    builder.add("second", reference_path("fmi3/Dahlquist.fmu"))
    builder.connect("first.x", "second.u")
    logs = []
    for isolate in (False, True):
        log = tmp_path / f"{isolate}.log"
        Simulation(
            builder.build(),
            algorithm=algorithm,
            isolate=isolate,
            fmi_log_file=log,
            backend=backend,
            **TIMES,
        ).run()
        calls = re.findall(r"(\w+): (fmi\w+)", log.read_text(encoding="utf-8"))
        logs.append({name: [c for c in calls if c[0] == name] for name in ("first", "second")})
    assert logs[0] == logs[1]
    assert logs[0]["second"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"isolate": "pump"}, "'pump' fits no component with an FMU"),
        ({"isolate": "no"}, "Expected names or globs; or True"),
        ({"isolate": 3}, "isolate: 3, expected a sequence of names or globs"),
        ({"call_timeout": 0}, "call_timeout: 0, expected a positive number of seconds"),
        ({"memory_limit": 0}, "memory_limit: 0, expected a positive number of bytes"),
        ({"isolate": False, "call_timeout": 1}, "isolate is False, but call_timeout"),
    ],
)
def test_settings_without_meaning_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Simulation(reference_path("fmi3/Dahlquist.fmu"), **settings).prepare()


def test_fmus_that_fail_at_the_same_time_are_all_freed(caplog: pytest.LogCaptureFixture) -> None:
    system = SystemBuilder("pair")
    for name in ("one", "two"):
        system.add(name, reference_path("fmi3/Faulty.fmu"), {"fault": 3, "faultTime": 0.5})
    with pytest.raises(SimulationError, match="returned fmi3Error"):
        Simulation(system, **TIMES, isolate=True, threads=2).run()
    assert not [r for r in caplog.records if "cannot be freed" in r.getMessage()]


@pytest.mark.parametrize("backend", ["reference", "native"])
def test_an_isolated_fmu_tells_the_intervals_of_its_clocks(backend: str) -> None:
    settings: dict[str, Any] = {"stop_time": 2, "step_size": "0.3", "backend": backend}
    sampler = reference_path("fmi3/Sampler.fmu")
    here = Simulation(sampler, **settings).run()
    apart = Simulation(sampler, isolate=True, **settings).run()
    assert_same_bits(here, apart)
    assert [a.count for a in apart.activations] == [21]
