"""One run of one FMU, by fmimaster or by fmpy, in a separate process, because the FMU may print, crash or not return."""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import pickle
import signal
import traceback
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import fmpy
import numpy as np

import fmimaster


@dataclass(frozen=True)
class Task:
    """A task: a number of steps of one size; times in s."""

    fmu: Path
    start: float
    step: float
    steps: int
    outputs: list[str]
    input_file: Path | None
    event_mode: bool
    is_event_mode_asked_for: bool


@dataclass
class Outcome:
    """The outcome of a run: columns by name with the times as "time", and the error, if there was one.

    ``verdict`` is "ran", "refused" (nothing was simulated), "failed" (a run was begun), or "defect" (an exception that
    is none of fmimaster's own), "crashed" or "timed out".
    """

    verdict: str
    error: str = ""
    columns: dict[str, Any] = field(default_factory=dict)


def run(
    program: str, task: Task, folder: Path, limit: float, environment: dict[str, str]
) -> Outcome:
    """Run an FMU in a process of its own for at most ``limit`` seconds.

    Parameters
    ----------
    program : str
        "native" or "reference" for fmimaster, or "fmpy".
    folder : Path
        An empty folder for what the FMU writes and prints; it is the working directory.
    environment : name → value
        Added to the environment of the process.
    """
    target, printed = folder / "outcome", folder / "printed"

    def child() -> None:
        os.setsid()
        os.chdir(folder)
        os.environ.update(environment)
        descriptor = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        faulthandler.enable()
        target.write_bytes(pickle.dumps(_run(program, task)))

    # forked, so that fmimaster and fmpy are imported once; no FMU was ever loaded in this process
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(limit)
    hangs = process.exitcode is None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid or 0, signal.SIGKILL)  # what the FMU has started ends with it
    process.join()
    if hangs:
        return Outcome("timed out", f"after {limit:g} s")
    if target.exists():
        outcome: Outcome = pickle.loads(target.read_bytes())
        return outcome
    last = (
        printed.read_text(errors="replace", encoding="utf-8").strip().splitlines()
        if printed.exists()
        else []
    )
    return Outcome("crashed", f"status {process.exitcode}: {' | '.join(last[:3])[:300]}")


def _run(program: str, task: Task) -> Outcome:
    try:
        return Outcome(
            "ran", columns=_fmpy(task) if program == "fmpy" else _fmimaster(program, task)
        )
    except fmimaster.SimulationError as error:
        rows = _columns(error.results) if error.results is not None else {}
        return Outcome("failed", f"{type(error).__name__}: {error}", rows)
    except fmimaster.FmimasterError as error:
        return Outcome("refused", f"{type(error).__name__}: {error}")
    except Exception as error:
        if program == "fmpy":  # its errors are of all kinds
            return Outcome("failed", f"{type(error).__name__}: {error}")
        return Outcome("defect", traceback.format_exc())


def _fmimaster(program: str, task: Task) -> dict[str, Any]:
    results = fmimaster.simulate(
        task.fmu,
        start_time=Fraction(task.start),
        stop_time=Fraction(task.start) + task.steps * Fraction(task.step),
        step_size=Fraction(task.step),  # the very double: the same times as fmpy's
        input=task.input_file,
        output_variables=task.outputs,
        allow_nan=True,
        event_mode=True if task.is_event_mode_asked_for else None,
        backend=fmimaster.run.Backend(program),
    )
    return _columns(results)


def _columns(results: fmimaster.Results) -> dict[str, Any]:
    return {"time": results.time, **{name: results[name] for name in results.names}}


def _fmpy(task: Task) -> dict[str, Any]:
    found = fmpy.simulate_fmu(
        str(task.fmu),
        validate=False,
        fmi_type="CoSimulation",
        start_time=task.start,
        stop_time=task.start + task.steps * task.step,
        output_interval=task.step,
        output=task.outputs,
        input=fmpy.read_csv(str(task.input_file)) if task.input_file else None,
        use_event_mode=task.event_mode,
        early_return_allowed=task.event_mode,
    )
    return {name: np.asarray(found[name]) for name in found.dtype.names}
