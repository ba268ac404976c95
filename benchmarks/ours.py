"""fmimaster itself, by its public interface."""

from __future__ import annotations

import time

import numpy as np
from systems import Measured, System

from fmimaster import Progress, Simulation
from fmimaster.algorithms import Algorithm, Jacobi
from fmimaster.control.step_rule import FixedStep
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend


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
    )


def measure(
    system: System,
    backend: Backend,
    *,
    algorithm: Algorithm | None = None,
    rows: bool = True,
) -> Measured:
    """The loop of one run; its CPU time is read after each stretch of steps, but for the first."""
    cpu: list[float] = []

    def progress(_: Progress) -> None:
        cpu.append(time.process_time())

    results = simulation(system, backend, algorithm).run(progress)
    wall = results.statistics.seconds
    used = cpu[-1] - cpu[0] if len(cpu) > 2 else wall
    return Measured(wall, used, stacked(system, results) if rows else None)


def whole(system: System, *, step_size: FixedStep | None = None) -> float:
    """CPU time of a whole run with the kernel, with loading and results, in s."""
    begin = time.process_time()
    simulation(system, Backend.NATIVE, step_size=step_size).run()
    return time.process_time() - begin


def native(system: System) -> Measured:
    """The kernel in C."""
    return measure(system, Backend.NATIVE)


def reference(system: System) -> Measured:
    """The interpreter in Python."""
    return measure(system, Backend.REFERENCE)


def stacked(system: System, results: Results) -> np.ndarray:
    """All outputs, shape (rows, columns)."""
    return np.column_stack([results[name] for name in system.names])
