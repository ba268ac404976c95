"""A linear system is found again from its responses to pulses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster.studies.stability.linear_fmu import realize

TRANSITION = np.array([[0.9, 0.2, 0.0], [-0.2, 0.9, 0.0], [0.0, 0.0, 0.5]])
ENTRY = np.array([[0.0, 1.0], [1.0, 0.0], [1e-3, 0.0]])
EXIT = np.array([[1.0, 0.0, 1.0], [0.0, 1e6, 0.0]])  # the outputs have units of different sizes
DIRECT = np.array([[0.3, 0.0], [0.0, 0.0]])


def pulses(
    transition: NDArray[np.float64], entry: NDArray[np.float64], steps: int = 13
) -> NDArray[np.float64]:
    found, state = [DIRECT], entry
    for _ in range(steps - 1):
        found.append(EXIT @ state)
        state = transition @ state
    return np.stack(found)


def test_the_eigenvalues_of_a_linear_system_are_found_from_its_pulses() -> None:
    found = realize(pulses(TRANSITION, ENTRY))
    assert found.states == 3
    eigenvalues = np.sort_complex(np.linalg.eigvals(found.map.transition))
    # 1e-9: the Hankel matrix is scaled, so that rounding counts by the smallest of its singular values, some 1e-5
    np.testing.assert_allclose(eigenvalues, [0.5, 0.9 - 0.2j, 0.9 + 0.2j], atol=1e-9)


def test_the_map_gives_the_pulses_again() -> None:
    given = pulses(TRANSITION, ENTRY)
    step = realize(given).map
    state = step.entry
    np.testing.assert_array_equal(step.direct, given[0])
    for response in given[1:]:
        np.testing.assert_allclose(step.exit @ state, response, rtol=1e-9, atol=1e-9)
        state = step.transition @ state


def test_states_are_found_from_the_outputs_that_follow() -> None:
    found = realize(pulses(TRANSITION, ENTRY))
    assert len(found.seen) == 2 * 6  # two outputs after each of six steps
    outputs = np.stack([EXIT @ np.linalg.matrix_power(TRANSITION, k) @ ENTRY for k in range(6)])
    np.testing.assert_allclose(found.states_of(outputs), found.map.entry, atol=1e-9)


def test_a_state_that_no_input_reaches_is_not_found() -> None:
    entry = ENTRY.copy()
    entry[2] = 0.0
    assert realize(pulses(TRANSITION, entry)).states == 2


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_what_is_below_the_noise_is_no_state(noise: float) -> None:
    disturbed = pulses(TRANSITION, ENTRY)
    disturbed[:, 0, :] += 0.1 * noise * np.random.default_rng(1).standard_normal((13, 2))
    entry_is_seen = noise < 1e-3  # the third state is reached by 1e-3
    assert realize(disturbed, noise).states == 2 + entry_is_seen


def test_without_any_response_there_is_no_state() -> None:
    found = realize(np.zeros((5, 2, 1)))
    assert found.states == 0
    assert found.map.exit.shape == (2, 0)
