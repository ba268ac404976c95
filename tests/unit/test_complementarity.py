"""Linear complementarity problems, against all combinations and against random contacts."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

import numpy as np
import pytest
from pytest import approx

from fmimaster.events.complementarity import impulses, solve


def solves(m: np.ndarray, q: np.ndarray, z: np.ndarray) -> bool:
    """Whether the smaller one of each pair is zero: the natural residual min(z, m z + q)."""
    most = 1e-9 * max(1.0, float(np.abs(m).max()), float(z.max()))
    return float(np.abs(np.minimum(z, m @ z + q)).max()) < most


def random_contacts(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Contacts of a row of bodies with masses over six decades, some of them walls; some contacts are there twice."""
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 8))
    powers = [float(Decimal(10) ** Decimal(e)) for e in random.uniform(-3, 3, n + 1).tolist()]
    inverse = np.array(powers) * (random.random(n + 1) > 0.2)
    jacobian = np.zeros((n, n + 1))
    for k in range(n):
        jacobian[k, k], jacobian[k, k + 1] = -1.0, 1.0
    if n > 2:
        jacobian[-1] = jacobian[0]
    # powers in decimal numbers, products one by one: others differ in the last bit between processors and systems
    m = ((jacobian * inverse)[:, np.newaxis] * jacobian).sum(axis=-1)
    return m, (jacobian * random.normal(size=n + 1)).sum(axis=-1)


@pytest.mark.parametrize("seed", range(200))
def test_random_contacts(seed: int) -> None:
    """Velocities of walls are not changed by impulses: with two of them there may be no solution."""
    m, q = random_contacts(seed)
    found = solve(m.tolist(), q.tolist())
    if found is None:
        assert not exists(m, q)
    else:
        z = np.array(found)
        assert solves(m, q, z)


def exists(m: np.ndarray, q: np.ndarray) -> bool:
    """Whether some combination of pairs solves the problem."""
    for chosen in product([False, True], repeat=len(q)):
        a = np.flatnonzero(chosen)
        z = np.zeros(len(q))
        if len(a):
            z[a] = np.linalg.lstsq(m[np.ix_(a, a)], -q[a], rcond=None)[0]
        if solves(m, q, z):
            return True
    return False


def test_a_stack_carries_its_weight() -> None:
    """Forces between equal bodies of 1 kg that lie on each other, from the floor up: 3 g, 2 g, g."""
    m = [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]
    assert solve(m, [-9.81, 0.0, 0.0]) == approx([29.43, 19.62, 9.81])


def test_nothing_pushes_where_all_contacts_open() -> None:
    assert solve([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0]) == approx([0.0, 0.0])


def test_two_walls_that_approach_each_other_have_no_solution() -> None:
    assert solve([[0.0]], [-1.0]) is None


@pytest.mark.parametrize("noise", [0.0, 1e-15, -1e-8, 1e-8])
def test_balls_that_touch_by_rounding_pass_an_impact_on(noise: float) -> None:
    """Three balls of 1 kg in contact, the first is hit: the last one leaves with the speed."""
    m = [[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]]
    found = impulses(m, [-1.0, noise, -noise], [1.0] * 3, [0.0] * 3, [1e-9] * 3)
    assert found is not None
    assert found[0] == approx([1.0] * 3, abs=1e-7)
    assert found[1][:2] == [0, 1]
