"""Algebraic loops of real FMUs, FMI 2.0 and 3.0: the right values, the same bits from both executors, the same failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from edited_fmu import edited_fmu
from linear_fmu import linear_fmu
from loop_cases import AFFINE, CASES, MORE, MOST_SWEEPS, PARAMETERS, LoopCase
from pytest import approx

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.base.errors import LoopError
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.step_groups import Loops
from fmimaster.run import Backend

VERSIONS = ("fmi2", "fmi3")
CLOSE = 1e-8
"""loops.md, section 4."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("loops")


def function(folder: Path, version: str, *, derivatives: bool, nominal: str | None) -> Path:
    """LoopFunction, with or without directional derivatives, and with a nominal value of y."""
    path = folder / f"{version}-{derivatives}-{nominal}.fmu"
    if not path.exists():
        edited_fmu(
            reference_path(f"{version}/LoopFunction.fmu"),
            path,
            capabilities={"providesDirectionalDerivatives": str(derivatives).lower()},
            variables={} if nominal is None else {"y": {"nominal": nominal}},
        )
    return path


def system(
    folder: Path, name: str, version: str, *, derivatives: bool = False, reverse: bool = False
) -> SystemBuilder:
    """A case of loops.md with reference FMUs; ``reverse``: units and connections the other way round."""
    case, builder = CASES[name], SystemBuilder(name)
    order = -1 if reverse else 1
    for unit in list(case.units)[::order]:
        if name in AFFINE:
            d, f = AFFINE[name][unit]
            n = len(d[0])
            inputs = ["u"] if n == 1 else [f"u{k + 1}" for k in range(n)]
            path = folder / f"{name}-{unit}-{version}.fmu"
            if not path.exists():
                linear_fmu(path, version, d=d, f=f, inputs=inputs, outputs=["y"])
            builder.add(unit, path)
            continue
        nominal = case.units[unit].nominal
        path = function(
            folder,
            version,
            derivatives=derivatives,
            nominal=None if nominal is None else f"{nominal:g}",
        )
        builder.add(unit, path, PARAMETERS[name][unit])
    for connection in case.connections[::order]:
        builder.connect(*connection.split(" -> "))
    for variable, value in case.start.items():
        builder.set(variable, value)
    return builder


def run(builder: SystemBuilder, backend: Backend = Backend.NATIVE, **settings: Any) -> Results:
    return simulate(
        builder.build(),
        stop_time=0.1,
        step_size=0.1,
        backend=backend,
        loops=Loops.NONE,
        loop_solver=LoopSolver(relative=1e-10),
        **settings,
    )


def assert_solved(case: LoopCase, results: Results) -> None:
    for output, value in case.solution.items():
        assert results[output][0] == approx(value, rel=CLOSE)
    (loop,) = results.statistics.loops
    assert loop.most_sweeps <= MORE * case.sweeps


@pytest.mark.filterwarnings("ignore:.*solution not unique")  # L6c with derivatives
@pytest.mark.parametrize(
    ("name", "version", "derivatives"),
    in_turn([name for name, case in CASES.items() if case.solution], VERSIONS, [False, True]),
)
def test_a_loop_is_solved_at_the_start(
    folder: Path, name: str, version: str, derivatives: bool
) -> None:
    """loops.md 7.2, L1 to L9 in Initialization Mode, both versions of FMI, both executors."""
    builder = system(folder, name, version, derivatives=derivatives)
    found = [run(builder, backend) for backend in (Backend.REFERENCE, Backend.NATIVE)]
    for results in found:
        assert_solved(CASES[name], results)
    for output in CASES[name].solution:
        assert np.array_equal(found[0][output], found[1][output])
    assert found[0].statistics.loops == found[1].statistics.loops


@pytest.mark.parametrize("version", VERSIONS)
def test_a_loop_that_is_declared_linear_takes_two_sweeps(folder: Path, version: str) -> None:
    """loops.md 3: one Newton step with the directional derivatives of the FMUs, of FMI 2.0 and 3.0."""
    (loop,) = run(system(folder, "L5", version)).statistics.loops
    assert (loop.solutions, loop.sweeps) == (1, 2)


@pytest.mark.filterwarnings("ignore:.*solution not unique")
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.solution])
def test_a_loop_is_solved_in_event_mode(folder: Path, name: str) -> None:
    """loops.md 7.2, L1 to L9 in Event Mode, which follows Initialization Mode (FMI 3.0)."""
    results = run(system(folder, name, "fmi3"), event_mode=True)
    assert_solved(CASES[name], results)


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.reason])
def test_a_loop_without_solution_is_an_error_of_its_class(
    folder: Path, name: str, version: str, backend: Backend
) -> None:
    """loops.md 7.2, L6a and L6b, both versions of FMI, both executors."""
    with pytest.raises(LoopError) as caught:
        run(system(folder, name, version), backend)
    assert caught.value.reason == CASES[name].reason
    assert caught.value.sweeps <= MOST_SWEEPS


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_root_of_a_negative_number_is_divergence(version: str, backend: Backend) -> None:
    """Not an error of the FMU that is asked for a derivative there, and no warning of numpy."""
    builder = SystemBuilder("root")
    fmu = reference_path(f"{version}/LoopFunction.fmu")
    builder.add("pump", fmu, {"c0": -10, "c1": 0, "c2": -1})
    builder.add("pipe", fmu, {"function": 3})
    builder.connect("pump.y", "pipe.u")
    builder.connect("pipe.y", "pump.u")
    with pytest.raises(LoopError) as caught:
        run(builder, backend)
    assert caught.value.reason == "diverged"


@pytest.mark.parametrize("name", ["L5", "L8", "L9"])
def test_the_order_of_listing_changes_no_bit(folder: Path, name: str) -> None:
    """loops.md 7.4, with FMUs."""
    one, other = (run(system(folder, name, "fmi3", reverse=reverse)) for reverse in (False, True))
    for output in CASES[name].solution:
        assert np.array_equal(one[output], other[output])


# Initialisation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_loop_at_initialisation_only(folder: Path, version: str, backend: Backend) -> None:
    """loops.md 7.2, I1: x = 1.25, B.y = 0.5."""
    results = run(_from_its_input(folder, version, -2.0, 3.0), backend)
    assert [results["A.y"][0], results["B.y"][0]] == approx([1.25, 0.5], rel=CLOSE)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_loop_of_gain_one_at_initialisation_is_singular(folder: Path, version: str) -> None:
    """loops.md 7.2, I2."""
    with pytest.raises(LoopError) as caught:
        run(_from_its_input(folder, version, 2.0, -3.0))
    assert caught.value.reason == CASES["L6b"].reason


@pytest.mark.parametrize("mode", [False, True], ids=["initialization", "and Event Mode"])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_pump_and_a_pipe_start_where_they_agree(folder: Path, version: str, mode: bool) -> None:
    """loops.md 7.2, I4: L8 in Initialization Mode: p = 5, q = sqrt 5."""
    results = run(system(folder, "L8", version), event_mode=mode)
    assert results["pump.y"][0] == approx(5.0, rel=CLOSE)
    assert results["pipe.y"][0] == approx(5.0**0.5, rel=CLOSE)


def _from_its_input(folder: Path, version: str, gain: float, offset: float) -> SystemBuilder:
    """A: x(0) = 0.5 u + 1, y = x; B: y = gain u + offset."""
    path = folder / f"{version}-{gain}.fmu"
    if not path.exists():
        linear_fmu(path, version, d=[[gain]], f=[offset], inputs=["u"], outputs=["y"])
    builder = SystemBuilder("start")
    builder.add("A", reference_path(f"{version}/LoopStart.fmu"), {"a": 0.5, "b": 1.0})
    builder.add("B", path)
    builder.connect("A.y", "B.u")
    builder.connect("B.y", "A.u")
    return builder


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_run_can_start_in_a_steady_state(folder: Path, version: str, backend: Backend) -> None:
    """loops.md 7.2, steady-state start: x' = -2 x + u, u <- 0.5 x + 3: x = 2, u = 4."""
    paths = [folder / f"{version}-{name}.fmu" for name in ("lag", "gain")]
    if not paths[0].exists():
        linear_fmu(paths[0], version, a=[[-2.0]], b=[[1.0]], c=[[1.0]], inputs=["u"], outputs=["y"])
        linear_fmu(paths[1], version, d=[[0.5]], f=[3.0], inputs=["u"], outputs=["y"])
    builder = SystemBuilder("steady")
    for name, path in zip("AB", paths, strict=True):
        builder.add(name, path)
    builder.connect("A.y", "B.u")
    builder.connect("B.y", "A.u")
    results = run(builder, backend, steady_states=["A.x1"])
    assert results["A.y"] == approx([2.0, 2.0], rel=CLOSE)
    assert results["B.y"] == approx([4.0, 4.0], rel=CLOSE)
