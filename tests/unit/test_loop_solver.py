"""The solver of algebraic loops by itself: functions in Python in place of sweeps over FMUs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from pytest import approx

from fmimaster.base.errors import OptionError
from fmimaster.loops.anderson import Anderson
from fmimaster.loops.search import NoSolution, Problem, Reasons, Sweep, not_solved
from fmimaster.loops.solver import LoopSolver
from fmimaster.numerics.anderson import least_squares

Vector = NDArray[np.float64]


def solve(
    function: Callable[[Vector], ArrayLike],
    start: ArrayLike,
    solver: LoopSolver | None = None,
    **options: object,
) -> tuple[Vector, int]:
    """The last value that was tried, and how many sweeps it took."""
    solver = solver or LoopSolver()
    u = np.array(start, float)
    nominal = np.ones(len(u))
    problem = Problem(u, nominal, np.full(len(u), solver.relative), solver.absolute, **options)  # type: ignore[arg-type]
    search, sweeps = solver.solve(problem), 0
    trial = next(search)
    while True:
        sweeps += 1
        given = np.asarray(function(trial.u), float)
        residual = given - trial.u
        for k in problem.constrained:
            residual[k] = given[k]
        last = trial.u
        try:
            trial = search.send(Sweep(last, residual))
        except StopIteration:
            return last, sweeps


def test_an_affine_loop_of_n_unknowns_needs_n_plus_two_sweeps() -> None:
    matrix = np.array([[0.0, 2.0, -1.0], [3.0, 0.0, 0.5], [1.0, -2.0, 0.0]])
    shift = np.array([1.0, -2.0, 0.5])
    found, sweeps = solve(lambda u: matrix @ u + shift, [0.0, 0.0, 0.0])
    assert found == approx(np.linalg.solve(np.eye(3) - matrix, shift), rel=1e-9)
    assert sweeps == 5


def test_without_memory_it_is_fixed_point_iteration() -> None:
    """loops.md 4: L1 takes 15 sweeps of it."""
    solver = LoopSolver(relative=1e-10, depth=0, most_anderson=50)
    found, sweeps = solve(lambda u: 0.2 * u + 2, [0.0], solver)
    assert found == approx([2.5], rel=1e-9)
    assert sweeps == 15


def test_a_bounded_solver_takes_what_its_last_sweep_gives() -> None:
    _, sweeps = solve(lambda u: np.cos(u), [0.0], LoopSolver(bounded=3))
    assert sweeps == 3


def test_a_loop_that_is_only_assumed_is_computed_by_plain_sweeps() -> None:
    """A chain of two: the second unknown depends on the first one, which depends on nothing."""
    found, sweeps = solve(lambda u: [7.0, u[0] ** 3], [0.0, 0.0], plain=3)
    assert found.tolist() == [7.0, 343.0]
    assert sweeps == 3


def test_a_linear_constraint_takes_three_sweeps() -> None:
    """loops.md 6.1: two trial steps give the exact secant, the third is kept."""
    found, sweeps = solve(lambda u: 3.0 * u - 1.2, [0.0], constrained=frozenset({0}))
    assert found == approx([0.4], rel=1e-12)
    assert sweeps == 3


def test_a_constraint_counts_in_units_of_its_unknown() -> None:
    """The position after a short step hardly depends on the force: 1e-12 m/N."""
    found, sweeps = solve(lambda u: 1e-12 * (u - 0.4), [0.0], constrained=frozenset({0}))
    assert found == approx([0.4], rel=1e-12)
    assert sweeps == 3


def test_a_constraint_that_is_met_from_the_start_ends_where_it_is_met() -> None:
    found, sweeps = solve(lambda u: u - 0.4, [0.4], constrained=frozenset({0}))
    assert found == approx([0.4], rel=1e-12)
    assert sweeps == 3


def test_a_constraint_and_a_loop_are_solved_together() -> None:
    """u0 = cos(u1) / 2 and 1e-6 (u0 + u1 - 1) = 0."""
    found, _ = solve(
        lambda u: [np.cos(u[1]) / 2, 1e-6 * (u[0] + u[1] - 1)],
        [0.0, 0.0],
        constrained=frozenset({1}),
    )
    assert found[0] == approx(np.cos(found[1]) / 2, abs=1e-8)
    assert found.sum() == approx(1.0, abs=1e-8)


def test_the_jacobian_of_an_earlier_solution_saves_a_sweep() -> None:
    solver, problem = (
        LoopSolver(),
        Problem(
            np.zeros(1),
            np.ones(1),
            np.full(1, 1e-8),
            1e-10,
            constrained=frozenset({0}),
            jacobian=np.array([[3.0]]),
        ),
    )
    search = solver.solve(problem)
    first = next(search)
    second = search.send(Sweep(first.u, 3.0 * first.u - 1.2))
    with pytest.raises(StopIteration) as end:
        search.send(Sweep(second.u, 3.0 * second.u - 1.2))
    assert end.value.value.jacobian.tolist() == [[3.0]]


def test_a_jacobian_that_has_become_wrong_is_computed_again() -> None:
    solver = LoopSolver()
    jacobian = np.array([[-5.0]])  # the wrong sign: no step along it makes the residual smaller
    problem = Problem(
        np.zeros(1),
        np.ones(1),
        np.full(1, 1e-8),
        1e-10,
        constrained=frozenset({0}),
        jacobian=jacobian,
    )
    search = solver.solve(problem)
    trial = next(search)
    residual = 1.0
    while abs(residual) > 1e-10:
        residual = float(3.0 * trial.u[0] - 1.2)
        with suppress(StopIteration):
            trial = search.send(Sweep(trial.u, np.array([residual])))
    assert trial.u == approx([0.4], rel=1e-9)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda u: u * u + 1, "no solution found (stationary residual 0.75 at 0.5)"),
        (lambda u: u + 1, "singular: loop gain 1 (no or no unique solution)"),
        (lambda u: u * np.inf + 1, "diverged"),
    ],
)
def test_the_reason_of_a_failure_is_its_class(
    function: Callable[[Vector], Vector], reason: str
) -> None:
    """loops.md 3."""
    with pytest.raises(NoSolution) as caught, np.errstate(all="ignore"):
        solve(function, [0.0])
    assert caught.value.reason == reason


def test_a_search_ends_after_its_limit() -> None:
    """A residual with no structure: neither method gets anywhere."""
    rng = np.random.default_rng(1)
    with pytest.raises(NoSolution) as caught:
        solve(lambda u: u + 1.0 + rng.random(len(u)), [0.0])
    assert caught.value.reason.startswith(("not converged", "diverged", "no solution", "singular"))


@pytest.mark.parametrize("most", [4, 8])
def test_a_search_for_a_shorter_step_ends_at_the_limit_of_sweeps(most: int) -> None:
    """The residual is 1 at the start and 2 everywhere else, so that no step makes it smaller."""
    tried = list[float]()

    def function(u: Vector) -> Vector:
        tried.append(float(u[0]))
        return u + (1.0 if u[0] == 0.0 else 2.0)

    with pytest.raises(NoSolution):
        solve(function, [0.0], LoopSolver(most_anderson=1, most_sweeps=most))
    assert len(tried) == most


def test_a_difference_that_depends_on_newer_ones_adds_nothing() -> None:
    rows, chosen, factors = [1.0, 0.0, 2.0, 0.0, 0.0, 1.0], [0] * 3, [0.0] * 3
    used = least_squares(rows, 3, [3.0, 4.0], 2, [0.0] * 6, [0.0] * 9, chosen, factors)
    assert (chosen[:used], factors[:used]) == ([0, 2], [3.0, 4.0])


def test_anderson_forgets_what_is_older_than_its_depth() -> None:
    """With one difference it is the secant method: exact for an affine function of one unknown."""
    history = Anderson(1)
    first = history.next([0.0], [2.0])
    assert first == [2.0]
    assert history.next([2.0], [-4.0]) == approx([2 / 3])  # r = 2 - 3 s


@pytest.mark.parametrize(
    "numbers", [{"relative": 0.0}, {"absolute": float("nan")}, {"depth": -1}, {"bounded": 0}]
)
def test_numbers_without_meaning_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(numbers))):
        LoopSolver(**numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize("gain", [-1e9, 1e9])
def test_a_steep_loop_is_solved_where_no_other_value_is_nearer(gain: float) -> None:
    """The rounding of u alone changes G(u) by more than the tolerance."""
    found, _ = solve(lambda u: gain * (u - 0.1) + 0.1, [0.0])
    assert found == approx([0.1], rel=1e-15)


def test_a_jump_over_the_solution_is_none() -> None:
    with pytest.raises(NoSolution):
        solve(lambda u: np.where(u < 0.3, 0.3 + 1e-3, 0.3 - 1.0), [0.0])


def test_a_bounded_solver_fails_where_the_last_sweep_is_infinite() -> None:
    with pytest.raises(NoSolution, match="diverged") as caught, np.errstate(over="ignore"):
        solve(lambda u: 1e200 * (u * u + 1), [0.0], LoopSolver(bounded=2))
    assert caught.value.method == "Anderson acceleration"


@pytest.mark.parametrize(
    ("residual", "advice"),
    [
        (
            2e-9,
            "The residual is small: it cannot become smaller if FMUs do not repeat a step exactly.",
        ),
        (0.1, "Give start values nearer to the solution"),
    ],
)
def test_the_advice_for_a_loop_that_does_not_converge_depends_on_the_residual(
    residual: float, advice: str
) -> None:
    error = not_solved(
        "algebraic loop of a.y",
        NoSolution(Reasons.NOT_CONVERGED, "Newton", np.zeros(1), np.zeros(1)),
        loop=["a.y"],
        values={"a.y": 0.5},
        residuals={"a.y": residual},
        sweeps=100,
        time=0.04,
        assumed=False,
    )
    assert advice in str(error)
