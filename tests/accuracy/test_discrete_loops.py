"""Loops with discrete variables, with FMUs of FMI 2.0 and 3.0 on both executors: loops.md, section 5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from edited_fmu import edited_fmu
from pytest import approx

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.base.errors import LoopError
from fmimaster.run import Backend

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

pytestmark = pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
versions = pytest.mark.parametrize("version", ["fmi2", "fmi3"])


def ring(version: str, first: str, second: str, a: dict[str, Any], b: dict[str, Any]) -> Any:
    """a.<output> -> b.<input> and back; an end is written ``output>input``."""
    builder = SystemBuilder("ring")
    for name, values in (("a", a), ("b", b)):
        builder.add(name, reference_path(f"{version}/LoopFunction.fmu"), values)
    for ends, source, target in ((first, "a", "b"), (second, "b", "a")):
        output, _, name = ends.partition(">")
        builder.connect(f"{source}.{output}", f"{target}.{name}")
    return builder


def run(builder: Any, backend: Backend, **settings: Any) -> Results:
    return simulate(builder, backend=backend, **{"stop_time": 0.2, "step_size": 0.1, **settings})


@versions
def test_a_ring_of_a_negation_oscillates(version: str, backend: Backend) -> None:
    """loops.md 7.2, B1."""
    builder = ring(version, "inverse>q", "latch>q", {}, {})
    with pytest.raises(LoopError, match="discrete loop oscillates, period 2") as caught:
        run(builder, backend)
    assert caught.value.loop == ("a.inverse", "a.q", "b.latch", "b.q")


@versions
@pytest.mark.parametrize(
    ("given", "q"),
    [
        ({"q": True}, True),
        ({"q": False}, False),
        ({"set": True}, True),
        ({"q": True, "reset": True}, False),
    ],
    ids=str,
)
def test_a_latch(version: str, given: dict[str, bool], q: bool, backend: Backend) -> None:
    """loops.md 7.2, B2."""
    rows = run(ring(version, "latch>q", "latch>q", given, {}), backend)
    assert {*rows["a.latch"].tolist(), *rows["b.latch"].tolist()} == {q}


MIXED = {"c0": 0.4, "c1": 0.2}


@versions
@pytest.mark.parametrize(("start", "y1", "y2"), [(0.4, 0, 0.4), (0.6, 1, 0.6)])
def test_a_mixed_loop(version: str, start: float, y1: int, y2: float, backend: Backend) -> None:
    """loops.md 7.2, B3."""
    rows = run(ring(version, "step>u", "y>u", {"u": start}, MIXED), backend)
    assert (rows["a.step"][0], rows["b.y"][0]) == (y1, approx(y2, rel=1e-15))


@versions
def test_a_mixed_loop_without_solution(version: str, backend: Backend) -> None:
    """loops.md 7.2, B4."""
    builder = ring(version, "step>u", "y>u", {"low": 1.0, "high": 0.0, "u": 0.4}, MIXED)
    with pytest.raises(LoopError, match="discrete loop oscillates, period 2") as caught:
        run(builder, backend)
    assert "a.step = 1.0; a.step = 0.0" in str(caught.value)


@versions
@pytest.mark.parametrize("event_mode", [False, True])
def test_a_loop_of_numbers_that_are_declared_as_discrete(
    version: str, event_mode: bool, tmp_path: Path, backend: Backend
) -> None:
    """loops.md 4, L2, at the start, in Event Mode or in Step Mode; plain sweeps diverge."""
    path = tmp_path / "discrete.fmu"
    discrete = {name: {"variability": "discrete"} for name in "uy"}
    edited_fmu(reference_path(f"{version}/LoopFunction.fmu"), path, variables=discrete)
    builder = SystemBuilder("ring")
    builder.add("a", path, {"c0": 3.0, "c1": -2.0})
    builder.add("b", path, {"c0": 1.0, "c1": 1.5})
    builder.connect("a.y", "b.u")
    builder.connect("b.y", "a.u")
    rows = run(builder, backend, event_mode=event_mode and version == "fmi3")
    assert rows["a.y"].tolist() == approx([0.25] * 3, rel=1e-7)
    assert rows["b.y"].tolist() == approx([1.375] * 3, rel=1e-7)


# Step Mode ------------------------------------------------------------------------------------------------------------


@versions
def test_a_latch_in_step_mode(version: str, tmp_path: Path, backend: Backend) -> None:
    """loops.md 7.2, B2, in Step Mode by going back: in each step all inputs are those of its end."""
    pulses = table(
        tmp_path,
        (0, 0, 0),
        (0.2, 1, 0),
        (0.3, 0, 0),
        (0.6, 0, 1),
        (0.7, 0, 0),
        names="a.set,a.reset",
    )
    builder = ring(version, "latch>q", "latch>q", {}, {})
    rows = run(builder, backend, input=pulses, stop_time=1, event_clock="none")
    expected = [0.15 < t < 0.55 for t in rows.time.tolist()]
    assert rows["a.latch"].tolist() == expected
    assert rows["b.latch"].tolist() == expected


@versions
def test_a_loop_that_starts_to_oscillate_in_step_mode(
    version: str, tmp_path: Path, backend: Backend
) -> None:
    """loops.md 7.2, B1, in Step Mode by going back."""
    reset = table(tmp_path, (0, 1), (0.2, 0), names="b.reset")
    builder = ring(version, "inverse>q", "latch>q", {}, {})
    with pytest.raises(LoopError, match="discrete loop oscillates, period 2") as caught:
        run(builder, backend, input=reset, stop_time=1)
    assert caught.value.time is not None
    assert caught.value.time > 0


@versions
@pytest.mark.parametrize(("start", "y1", "y2"), [(0.4, 0, 0.4), (0.6, 1, 0.6)])
def test_a_mixed_loop_in_step_mode(
    version: str, start: float, y1: int, y2: float, backend: Backend
) -> None:
    """loops.md 7.2, B3, in Step Mode by going back: each step starts from the solution of the one before."""
    rows = run(ring(version, "step>u", "y>u", {"u": start}, MIXED), backend)
    assert rows["a.step"].tolist() == [y1] * 3
    assert rows["b.y"].tolist() == approx([y2] * 3, rel=1e-15)


# Event Mode -----------------------------------------------------------------------------------------------------------


def table(folder: Path, *rows: tuple[float, ...], names: str) -> Path:
    file = folder / "input.csv"
    lines = [f"time,{names}", *(",".join(map(str, row)) for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_latch_in_event_mode_is_set_and_reset(tmp_path: Path, backend: Backend) -> None:
    """loops.md 7.2, B2, in Event Mode (FMI 3.0)."""
    pulses = table(
        tmp_path,
        (0, 0, 0),
        *((0.2, 0, 0), (0.2, 1, 0), (0.4, 1, 0), (0.4, 0, 0)),
        *((0.6, 0, 0), (0.6, 0, 1), (0.8, 0, 1), (0.8, 0, 0)),
        names="a.set,a.reset",
    )
    builder = ring("fmi3", "latch>q", "latch>q", {}, {})
    rows = run(builder, backend, event_mode=True, input=pulses, stop_time=1)
    last = {round(t, 6): bool(q) for t, q in zip(rows.time, rows["b.latch"], strict=True)}
    assert [t for t, q in last.items() if q] == [0.2, 0.3, 0.4, 0.5]


def test_a_loop_that_starts_to_oscillate_in_event_mode(tmp_path: Path, backend: Backend) -> None:
    """loops.md 7.2, B1, in Event Mode (FMI 3.0)."""
    reset = table(tmp_path, (0, 1), (0.2, 1), (0.2, 0), names="b.reset")
    builder = ring("fmi3", "inverse>q", "latch>q", {}, {})
    with pytest.raises(LoopError, match=r"at t = 0\.2 s: discrete loop oscillates, period 2"):
        run(builder, backend, event_mode=True, input=reset, stop_time=1)


@pytest.mark.parametrize(("start", "y1", "y2"), [(0.4, 0, 0.4), (0.6, 1, 0.6)])
def test_a_mixed_loop_in_event_mode(start: float, y1: int, y2: float, backend: Backend) -> None:
    """loops.md 7.2, B3, in Event Mode (FMI 3.0): solved again after the initialization, from its solution."""
    builder = ring("fmi3", "step>u", "y>u", {"u": start}, MIXED)
    rows = run(builder, backend, event_mode=True)
    assert (rows["a.step"][0], rows["b.y"][0]) == (y1, approx(y2, rel=1e-15))
