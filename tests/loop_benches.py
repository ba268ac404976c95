"""The loops of loops.md as FMUs in Python, on an executor to be driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loop_cases import LoopCase, Unit, names_of
from python_fmu import Bench, PythonFmu

from fmimaster.algorithms.settling import Settling
from fmimaster.loops.solver import LoopSolver

SOLVER = LoopSolver(relative=1e-10)


def fmu_of(unit: Unit, *, derivatives: bool = False) -> PythonFmu:
    names = names_of(unit)

    def values(v: Any) -> list[float]:
        return [getattr(v, name) for name in names]

    def partial_of(k: int) -> Callable[[Any], float]:
        return lambda v: unit.partials(*values(v))[k]

    nominal = {} if unit.nominal is None else {"nominal": unit.nominal, "has_nominal": True}
    return PythonFmu(
        inputs=dict(zip(names, unit.start, strict=True)),
        outputs={"y": lambda v: unit.function(*values(v))},
        depends={"y": names},
        attributes={"y": nominal},
        partials={"y": {name: partial_of(k) for k, name in enumerate(names)}}
        if derivatives
        else None,
    )


def units_of(case: LoopCase, *, derivatives: bool = False) -> dict[str, PythonFmu]:
    return {name: fmu_of(unit, derivatives=derivatives) for name, unit in case.units.items()}


def bench_of(case: LoopCase, **options: Any) -> Bench:
    units = units_of(case, **options)
    return Bench(units, case.connections, case.start, settling=Settling(SOLVER))


def sweeps(bench: Bench) -> int:
    """Sweeps over all loops."""
    return sum(h.solutions.sweeps for h in bench.programs.hooks if h.solutions)
