"""``--sequence`` and ``sequence=``: the order of stepping, by names or by a method."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from command_line import Outcome, reference

from fmimaster import Simulation
from fmimaster.algorithms import GaussSeidel

FOUR_UNITS = reference("systems/four-units-fmi3.ssp")
Run = Callable[..., Outcome]


@pytest.mark.parametrize(
    ("sequence", "order"),
    [
        ([], "3412"),
        (["--sequence", "automatic"], "3412"),
        (["--sequence", "count"], "1234"),
        (["--sequence", "upstream"], "3124"),
        (["--sequence", "S2, S1,S4,S3"], "2143"),
    ],
)
def test_the_sequence_is_what_the_option_says(run: Run, sequence: list[str], order: str) -> None:
    outcome = run("plan", FOUR_UNITS, "--json", "--algorithm", "gauss-seidel", *sequence)
    assert "".join(json.loads(outcome.out)["order"]).replace("S", "") == order


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ("S1,S2,S4", "sequence: 'S3' is missing."),
        ("S1,S2,S3,S4,S2", "sequence: 'S2' is named more than once."),
        ("S1,S2,S3,s4", "sequence: there is no component 's4'. Did you mean 'S4'?"),
        ("nearest", "sequence: there is no method 'nearest'."),
    ],
)
def test_a_sequence_that_does_not_name_each_component_once_is_an_error(
    run: Run, sequence: str, message: str
) -> None:
    """Issue 10, bad input: a sequence given by the user that misses or repeats a unit."""
    outcome = run("simulate", FOUR_UNITS, "--sequence", sequence)
    assert outcome.status != 0
    assert message in outcome.err


@pytest.mark.parametrize(("algorithm", "is_noted"), [("jacobi", True), ("gauss-seidel", False)])
def test_a_sequence_that_has_no_influence_is_noted(
    run: Run, algorithm: str, is_noted: bool
) -> None:
    sequence = ["--sequence", "S1,S2,S3,S4", "--algorithm", algorithm]
    outcome = run("simulate", FOUR_UNITS, "--stop-time", "0.01", *sequence)
    noted = "note: The trigger sequence given by the user has no influence on the results: Jacobi"
    assert (noted in outcome.err) == is_noted


def test_no_influence_is_not_noted_of_an_automatic_sequence(run: Run) -> None:
    assert "influence" not in run("simulate", FOUR_UNITS, "--stop-time", "0.01").err


def test_the_sequence_decides_which_result_gauss_seidel_has() -> None:
    def last(sequence: list[str]) -> float:
        settings = {"algorithm": GaussSeidel(), "stop_time": 0.01, "sequence": sequence}
        return float(Simulation(FOUR_UNITS, **settings).run()["S1.y11"][-1])  # type: ignore[arg-type]

    assert last(["S3", "S4", "S1", "S2"]) != last(["S2", "S1", "S4", "S3"])
    # both order each connected pair in the same way
    assert last(["S4", "S2", "S3", "S1"]) == last(["S2", "S4", "S1", "S3"])
