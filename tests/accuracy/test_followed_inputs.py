"""Algebraic loops of FMUs that cannot save their states: solved at the end of each step, where cards show that it works.

one: x' = u - x, y = (42 - 2 u^2) / 5 + x; two: y = 4 + 6 u. The loop is that of equationPair of OMSimulator, with a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from following_fmu import following
from pytest import approx

import fmimaster
from fmimaster import AccuracyWarning, Results, SystemBuilder
from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.cards import FmuCard
from fmimaster.plan.step_groups import Loops
from fmimaster.run.executor import Backend
from fmimaster.steps import MultiRate

ONE, TWO = (8.4, 0.0, -0.4, 1.0), (4.0, 6.0, 0.0, 0.0)
H = 0.1

Pair = tuple[Path, Path]
Cards = Sequence[FmuCard]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = tmp_path_factory.mktemp("pair")
    return following(folder / "one.fmu", ONE), following(folder / "two.fmu", TWO)


@pytest.fixture(scope="module")
def cards(pair: Pair) -> Cards:
    return [fmimaster.probe(path, use_cache=False) for path in pair]


def run(pair: Pair, cards: Cards | None, backend: Backend, **settings: object) -> Results:
    system = SystemBuilder("pair")
    for name, path in zip(("one", "two"), pair, strict=True):
        system.add(name, path)
    system.connect("one.y", "two.u")
    system.connect("two.y", "one.u")
    system.set("one.u", 4.0)
    options: dict[str, object] = {"stop_time": 1.0, "step_size": H, **settings}
    return fmimaster.simulate(system, cards=cards, backend=backend, **options)  # type: ignore[arg-type]


def solution(x: float) -> float:
    """The input u of one, by u = 4 + 6 ((42 - 2 u^2) / 5 + x)."""
    return (-1.0 + sqrt(1.0 + 9.6 * (54.4 + 6.0 * x))) / 4.8


def inputs_held_over_steps(n: int) -> list[float]:
    x, found = 0.0, [solution(0.0)]
    for _ in range(n):
        x = found[-1] + (x - found[-1]) * np.exp(-H)
        found.append(solution(x))
    return found


def test_a_loop_is_solved_by_setting_and_reading(
    pair: Pair, cards: Cards, backend: Backend
) -> None:
    results = run(pair, cards, backend, algorithm=Jacobi())
    assert results["two.y"] == approx(inputs_held_over_steps(10), rel=1e-8)
    assert not results.statistics.warnings
    assert any("by setting inputs and reading outputs" in note for note in results.statistics.notes)
    loops = results.statistics.loops
    assert sum(loop.solutions for loop in loops) == 11


def test_with_gauss_seidel_nothing_drifts(pair: Pair, cards: Cards, backend: Backend) -> None:
    """one steps with the solution at the start of the step, as above; two then gets newer values."""
    results = run(pair, cards, backend, algorithm=GaussSeidel())
    assert results["two.y"] == approx(inputs_held_over_steps(10), rel=1e-8)
    assert results["one.y"] == approx((results["two.y"] - 4.0) / 6.0, rel=1e-8)


@pytest.fixture(scope="module", params=["follows in steps only", "disturbed by reading"])
def other(
    request: pytest.FixtureRequest,
    pair: Pair,
    cards: Cards,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Pair, Cards]:
    """The pair with another first FMU, and their cards."""
    is_disturbed = request.param == "disturbed by reading"
    path = tmp_path_factory.mktemp("other") / "one.fmu"
    one = following(path, ONE, follows=is_disturbed, disturbed=is_disturbed)
    return (one, pair[1]), [fmimaster.probe(one, use_cache=False), cards[1]]


def test_an_fmu_that_does_not_follow_is_not_read_between(
    other: tuple[Pair, Cards], backend: Backend
) -> None:
    with pytest.warns(AccuracyWarning, match="'one' and 'two' cannot get and set their FMU state"):
        results = run(*other, backend, algorithm=Jacobi())
    assert results["two.y"][-1] != approx(inputs_held_over_steps(10)[-1], rel=1e-4)


def test_without_cards_a_warning_names_them(pair: Pair, backend: Backend) -> None:
    with pytest.warns(AccuracyWarning, match="fmimaster probe FMU"):
        run(pair, None, backend, algorithm=Jacobi())


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"loops": Loops.NONE, "algorithm": "Jacobi"}, "as the settings say"),
        ({"step_size": MultiRate(None, {"one": H, "two": 2 * H})}, "at different times"),
    ],
    ids=["none", "own step sizes"],
)
def test_a_loop_that_is_not_solved_is_told(
    pair: Pair,
    cards: Cards,
    settings: dict[str, object],
    why: str,
    recwarn: pytest.WarningsRecorder,
) -> None:
    results = run(pair, cards, Backend.REFERENCE, **settings)
    told = (*results.statistics.notes, *results.statistics.warnings)
    assert any("is not solved in Step Mode" in text and why in text for text in told)
