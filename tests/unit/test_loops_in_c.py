"""The solver of algebraic loops in C does what the one in Python does: the same calls, with the same bits."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest
from loop_benches import bench_of, sweeps
from loop_cases import CASES
from python_fmu import Bench, PythonFmu

from fmimaster.algorithms.settling import Settling
from fmimaster.base.errors import LoopError
from fmimaster.loops.solver import LoopSolver
from fmimaster.loops.unknowns import MOST_REMEMBERED
from fmimaster.run.choice import native_executor
from fmimaster.run.executor import Backend
from fmimaster.system.model import DataType

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")


@pytest.mark.parametrize("derivatives", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_both_executors_make_the_same_calls_with_the_same_values(
    monkeypatch: pytest.MonkeyPatch, name: str, derivatives: bool
) -> None:
    logs = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        monkeypatch.setattr(Bench, "backend", backend)
        bench = bench_of(CASES[name], derivatives=derivatives)
        try:
            bench.initialize()
        except LoopError as error:
            logs.append(str(error))
        logs.append(str([i.log for i in bench.instances.values()]))
    assert logs[: len(logs) // 2] == logs[len(logs) // 2 :]


def random_ring(seed: int) -> dict[str, PythonFmu]:
    """Arrays of 3 in double and of 2 in single precision around a ring of two, nearly linear."""
    rng = np.random.default_rng(seed)
    n, m = 3, 2
    matrices = [0.4 * rng.normal(size=shape) for shape in ((n, n), (n, m), (m, n), (m, m))]
    shift = rng.normal(size=n + m)

    def first(v: Any) -> list[float]:
        return list(matrices[0] @ (v.u + 0.1 * np.sin(v.u)) + matrices[1] @ v.s + shift[:n])

    def second(v: Any) -> list[float]:
        return list(matrices[2] @ v.u + matrices[3] @ v.s + shift[n:])

    single = {"type": DataType.FLOAT32, "shape": (m,)}
    attributes: dict[str, dict[str, Any]] = {
        "u": {"shape": (n,), "nominal": 3.0, "has_nominal": True},
        "s": single,
        "y": {"shape": (n,)},
        "z": single,
    }
    a = PythonFmu(
        inputs={"u": 0.0, "s": 0.0},
        outputs={"y": first, "z": second},
        depends={"y": ["u", "s"], "z": ["u", "s"]},
        attributes=attributes,
    )
    b = PythonFmu(
        inputs={"u": 0.0, "s": 0.0},
        outputs={"y": lambda v: v.u, "z": lambda v: v.s},
        depends={"y": ["u"], "z": ["s"]},
        attributes=attributes,
    )
    return {"a": a, "b": b}


@pytest.mark.parametrize("seed", range(6))
def test_both_executors_solve_random_loops_by_the_same_calls(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """loops.md 7: several unknowns, more than Anderson acceleration remembers, double and single precision."""
    logs = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        monkeypatch.setattr(Bench, "backend", backend)
        connections = [f"{s}.{y} -> {t}.{u}" for s, t in ("ab", "ba") for y, u in ("yu", "zs")]
        bench = Bench(random_ring(seed), connections)
        try:
            bench.initialize()
            ended = ""
        except LoopError as error:
            ended = str(error)
        logs.append((ended, str([i.log for i in bench.instances.values()]), sweeps(bench)))
    assert logs[0] == logs[1]
    assert logs[0][2] > 5


def overflowing(u: float) -> float:
    return 1e200 * (u * u + 1) if abs(u) < 1e50 else inf


@pytest.mark.parametrize("solver", [LoopSolver(most_sweeps=3), LoopSolver(bounded=3)], ids=str)
def test_both_executors_fail_alike_where_nothing_follows_anderson_acceleration(
    monkeypatch: pytest.MonkeyPatch, solver: LoopSolver
) -> None:
    failures = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        monkeypatch.setattr(Bench, "backend", backend)
        units = {
            name: PythonFmu(
                inputs={"u": 0.0}, outputs={"y": lambda v: overflowing(v.u)}, depends={"y": ["u"]}
            )
            for name in "ab"
        }
        bench = Bench(units, ["a.y -> b.u", "b.y -> a.u"], settling=Settling(solver))
        with pytest.raises(LoopError) as caught:
            bench.initialize()
        failures.append(str(caught.value))
    assert failures[0] == failures[1]
    assert "diverged" in failures[0]


@pytest.mark.parametrize("depth", [0, 1, MOST_REMEMBERED, MOST_REMEMBERED + 1])
def test_both_executors_solve_alike_whatever_is_remembered(
    monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    """With more than the kernel has room for, all is done in Python."""
    n = MOST_REMEMBERED + 2
    matrix = 0.1 * np.random.default_rng(depth).normal(size=(n, n))
    attributes: dict[str, dict[str, Any]] = {name: {"shape": (n,)} for name in "uy"}
    functions: dict[str, Any] = {"a": lambda v: matrix @ v.u + 1.0, "b": lambda v: v.u}
    found = []
    for backend in (Backend.REFERENCE, Backend.NATIVE):
        monkeypatch.setattr(Bench, "backend", backend)
        units = {
            name: PythonFmu(
                inputs={"u": 0.0}, outputs={"y": f}, depends={"y": ["u"]}, attributes=attributes
            )
            for name, f in functions.items()
        }
        solver = LoopSolver(depth=depth, most_anderson=60)
        bench = Bench(units, ["a.y -> b.u", "b.y -> a.u"], settling=Settling(solver))
        bench.initialize()
        found.append((str([i.log for i in bench.instances.values()]), sweeps(bench)))
    assert found[0] == found[1]


@pytest.mark.parametrize(("derivatives", "sizes"), [(False, [2, 2]), (True, [2])])
def test_the_kernel_has_the_loops_that_anderson_acceleration_solves_first(
    derivatives: bool, sizes: list[int]
) -> None:
    """The plain iteration of the start, and the loop itself: where FMUs have derivatives, it is solved by Newton's method,
    in Python."""
    bench = bench_of(CASES["L5"], derivatives=derivatives)
    twins = [hook.twin(bench.executor.store) for hook in bench.programs.hooks]
    for part in ("start of a loop", "sweep of a loop"):
        assert [t.numbers["n"] for t in twins if t is not None and t.name == part] == sizes
