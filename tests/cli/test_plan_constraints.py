"""What ``fmimaster plan`` shows of constraints."""

from __future__ import annotations

import json
from collections.abc import Callable

from command_line import Outcome, reference

Run = Callable[..., Outcome]

SECTION = """
Constraints
  link: mass1.v = mass3.v at the end of each step, by a force that is constant in it
      mass1.F = link.force, mass3.F = -link.force
      mass1 and mass3 repeat the step until the force is found.
"""


def test_the_page_says_what_a_constraint_makes_equal_and_how(run: Run) -> None:
    assert SECTION in run("plan", reference("systems/rigid-link-fmi3.ssp")).out
    assert "Constraints" not in run("plan", reference("systems/four-units-fmi3.ssp")).out


def test_the_facts_of_a_constraint(run: Run) -> None:
    facts = json.loads(run("plan", reference("systems/rigid-link-fmi2.ssp"), "--json").out)
    assert facts["constraints"] == [
        {
            "name": "link",
            "level": "velocity",
            "equal": ["mass1.v", "mass3.v"],
            "forces": [
                {"input": "mass1.F", "factor": 1.0},
                {"input": "mass3.F", "factor": -1.0},
            ],
            "together": ["mass1", "mass3"],
        }
    ]


def test_ends_that_do_not_meet_end_a_run_with_a_message(run: Run) -> None:
    outcome = run(
        "simulate",
        reference("systems/rigid-link-fmi3.ssp"),
        "--start-value",
        "mass3.position",
        "1.1",
    )
    assert outcome.status != 0
    assert (
        "The constraint 'link' is not met at the start: the positions of its ends differ by -0.1. They may differ by "
        "1e-06"
    ) in outcome.err
