"""Algebraic loops of FMUs in Step Mode, solved by going back: loops.md 7.2 and 7.5."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from loop_cases import CASES
from loop_fmus import loop_system
from pytest import approx

from fmimaster import AccuracyError, AccuracyWarning, Results, Simulation, SystemBuilder
from fmimaster.algorithms import GaussSeidel
from fmimaster.loops import LoopSolver
from fmimaster.run import Backend

pytestmark = [
    pytest.mark.parametrize("version", ["fmi2", "fmi3"]),
    pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST]),
]

SOLVED = [name for name, case in CASES.items() if case.solution and name != "L6c"]
STRONG = ("L4", "L7b")
"""Their gain at the solution is more than 1: what a sweep gives has a larger residual than what it was given."""


def run(system: SystemBuilder, backend: Backend, **options: object) -> Results:
    """Ten steps; a loop that is not solved would be refused."""
    return Simulation(
        system.build(),
        stop_time=1,
        step_size=0.1,
        strict=True,
        loop_solver=LoopSolver(relative=1e-10),
        backend=backend,
        **options,  # type: ignore[arg-type]
    ).run()


@pytest.mark.parametrize("name", SOLVED)
def test_loops_of_fmus_stay_solved(
    name: str, version: str, backend: Backend, tmp_path: Path
) -> None:
    """loops.md 7.2, L1 to L9 with FMUs: the value in each row, and one sweep where nothing changes."""
    results = run(loop_system(name, tmp_path, version), backend)
    for output, value in CASES[name].solution.items():
        assert results[output] == approx(np.full(11, value), rel=1e-8)
    (calls,) = {i.calls for i in results.statistics.instances}
    assert calls == 10 or (name in STRONG and calls <= 13)


@pytest.mark.parametrize("algorithm", [None, GaussSeidel()], ids=["jacobi", "gauss-seidel"])
def test_a_loop_follows_what_drives_it(
    algorithm: GaussSeidel | None, version: str, backend: Backend, tmp_path: Path
) -> None:
    """loops.md 7.2, L8 with FMUs in Step Mode, gain -1: p = 10 + s - q^2, q = sqrt(p), with s = t."""
    loop_system("L8", tmp_path, version)  # writes the FMUs
    driven = SystemBuilder("driven")
    for name in ("pump", "pipe"):
        driven.add(name, tmp_path / f"{name}.fmu")
    for name, value in {"c0": 10.0, "c1": 0.0, "c2": -1.0}.items():
        driven.set(f"pump.{name}", value)
    driven.set("pipe.function", 3)
    driven.set("pipe.u", 1.0)
    driven.add("s", linear_fmu(tmp_path / "s.fmu", version, a=[[0.0]], e=[1.0], c=[[1.0]]))
    driven.add("sum", linear_fmu(tmp_path / "sum.fmu", version, d=[[1.0, 1.0]]))
    driven.connect("pump.y", "sum.u1")
    driven.connect("s.y1", "sum.u2")
    driven.connect("sum.y1", "pipe.u")
    driven.connect("pipe.y", "pump.u")
    results = run(driven, backend, algorithm=algorithm)
    assert results["sum.y1"] == approx((10 + results.time) / 2, rel=1e-8)
    calls = {i.name: i.calls for i in results.statistics.instances}
    assert calls["s"] == 10
    assert 20 < calls["pump"] == calls["pipe"] == calls["sum"] <= 60


def test_an_fmu_that_interpolates_no_input_is_given_the_end_of_the_step(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    """An FMU of FMI 3.0 may offer intermediate update and declare it for none of its inputs, as modelica's StateSpace
    does. Its outputs must belong to the inputs of the end all the same."""
    source = linear_fmu(
        tmp_path / "plain.fmu",
        version,
        a=[[-1.0]],
        b=[[0.0]],
        c=[[1.0], [1.0]],
        d=[[0.5], [0.0]],
        x0=[1.0],
        inputs=["u"],
        outputs=["y", "z"],
    )
    edited: dict[str, Any] = {"variables": {"u": {"intermediateUpdate": None}}}
    if version == "fmi2":
        edited = {"capabilities": {"canInterpolateInputs": None}}
    other = linear_fmu(
        tmp_path / "b.fmu", version, d=[[-2.0]], f=[1.0], inputs=["u"], outputs=["y"]
    )
    system = SystemBuilder("ring")
    system.add("a", edited_fmu(source, tmp_path / "a.fmu", **edited))
    system.add("b", other)
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    results = run(system, backend)
    assert results["b.y"] == approx(1.0 - 2.0 * results["a.y"], abs=1e-9)
    assert results["a.y"] == approx(results["a.z"] + 0.5 * results["b.y"], abs=1e-9)


def test_a_real_fmu_without_rollback_is_a_warning_and_with_strict_an_error(
    version: str, backend: Backend, tmp_path: Path
) -> None:
    """loops.md 7.5 with FMUs: the run continues with a warning that names the input; with strict it is an error."""
    loop_system("L1", tmp_path, version)
    edited_fmu(tmp_path / "a.fmu", tmp_path / "c.fmu", capabilities={"canGetAndSetFMUState": None})
    system = SystemBuilder("stuck")
    system.add("a", tmp_path / "c.fmu")
    system.add("b", tmp_path / "b.fmu")
    system.connect("a.y", "b.u")
    system.connect("b.y", "a.u")
    made = Simulation(system.build(), stop_time=1, step_size=0.1, backend=backend)
    with pytest.warns(
        AccuracyWarning, match=r"'a' cannot get and set its FMU state.*Instead the input"
    ):
        results = made.run()
    assert results["a.y"][-1] == approx(2.5)  # a loop gain of 0.2, and nothing that drives it
    with pytest.raises(AccuracyError, match="'a' cannot get and set its FMU state"):
        replace(made, strict=True).run()
