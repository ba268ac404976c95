"""fmimaster itself, by its public interface; and the CPU time of the loop of a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from systems import Measured, System

from fmimaster import Simulation
from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.results.results import Results
from fmimaster.run.executor import Backend
from fmimaster.session.session import Session
from fmimaster.steps.step_rule import FixedStep


def simulation(
    system: System,
    backend: Backend,
    algorithm: Algorithm | None = None,
    step_size: FixedStep | None = None,
) -> Simulation:
    """The system with its fixed step."""
    return Simulation(
        system.described(),
        algorithm=algorithm or Jacobi(),
        start_time=0,
        stop_time=system.stop,
        step_size=step_size or system.step,
        backend=backend,
        error_estimate=False,  # it is a run of its own
    )


def measure(
    system: System,
    backend: Backend,
    *,
    algorithm: Algorithm | None = None,
    rows: bool = True,
    output_file: Path | None = None,
) -> Measured:
    """The loop of one run, from its first step until its last row was handed on."""
    with marked() as marks:
        results = simulation(system, backend, algorithm).run(output_file=output_file)
    wall, used = results.statistics.seconds, marks[-1] - marks[0]
    if output_file is not None:
        results = Results.read(output_file)
    return Measured(wall, used, stacked(system, results) if rows else None)


@contextmanager
def marked() -> Iterator[list[float]]:
    """CPU times of the process where the loop of a run begins, and where the parts of it end.

    Callbacks of the public interface cannot tell them: the first progress is reported after a part of the run.
    """
    marks: list[float] = []

    def marking(part: Callable[..., Any]) -> Callable[..., Any]:
        def with_marks(*arguments: Any) -> Any:
            marks.append(time.process_time())
            try:
                return part(*arguments)
            finally:
                marks.append(time.process_time())

        return with_marks

    loop, last_rows = Session.advance, Session._hand_on_last
    Session.advance, Session._hand_on_last = marking(loop), marking(last_rows)
    try:
        yield marks
    finally:
        Session.advance, Session._hand_on_last = loop, last_rows


def whole(system: System, *, step_size: FixedStep | None = None) -> float:
    """CPU time of a whole run with the kernel, with loading and results, in s."""
    begin = time.process_time()
    simulation(system, Backend.NATIVE, step_size=step_size).run()
    return time.process_time() - begin


def native(system: System) -> Measured:
    """The kernel in C."""
    return measure(system, Backend.NATIVE)


def to_csv(system: System) -> Measured:
    """The kernel in C, with all rows in a CSV file."""
    with TemporaryDirectory() as folder:
        return measure(system, Backend.NATIVE, output_file=Path(folder, "rows.csv"))


def reference(system: System) -> Measured:
    """The interpreter in Python."""
    return measure(system, Backend.REFERENCE)


def stacked(system: System, results: Results) -> np.ndarray:
    """All outputs, shape (rows, columns)."""
    return np.column_stack([results[name] for name in system.names])
