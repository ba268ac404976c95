"""--inputs: kinds for all connections and for single ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from fmimaster import reference_path
from fmimaster.configure.named import setting_text
from fmimaster.inputs import Polynomial

Run = Callable[..., Outcome]

MIDPOINT = "held at the value of the polynomial of degree 1 through 2 points at 0.5 of the step"


@pytest.fixture
def car() -> Path:
    return reference_path("systems/quarter-car-a-fmi2.ssp")


def courses(run: Run, system: Path, *inputs: str) -> dict[str, str]:
    options = [word for text in inputs for word in ("--inputs", text)]
    outcome = run("plan", system, "--json", *options)
    assert outcome.status == 0, outcome.error
    return {c["target"]: c["course"] for c in json.loads(outcome.out)["connections"]}


@pytest.mark.parametrize(
    ("kind", "course"),
    [
        ("hold", "held"),
        ("midpoint", MIDPOINT),
        ("nepce", "held and 0.5 of its mean error over the last step"),
        ("nepce:compensation=0.8", "held and 0.8 of its mean error over the last step"),
        ("linear", "polynomial of degree 1 through 2 points"),
        ("quadratic", "polynomial of degree 2 through 3 points"),
        ("interpolated", "line from the value before to the newest, late by one more step"),
        ("2,0:mean=true", "held at the mean of the polynomial of degree 1 through 2 points"),
    ],
)
def test_the_plan_says_how_inputs_go_on(run: Run, car: Path, kind: str, course: str) -> None:
    assert set(courses(run, car, kind).values()) == {course}


def test_single_connections_have_kinds_of_their_own(run: Run, car: Path) -> None:
    found = courses(run, car, "midpoint", "wheel.*=linear")
    assert found["chassis.force"] == MIDPOINT
    assert found["wheel.velocity"] == "polynomial of degree 1 through 2 points"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (("linear", "hold"), "--inputs hold: a kind for all inputs was given already"),
        (("wheel.velocity=linear", "wheel.velocity=hold"), "'wheel.velocity' is given twice"),
        (("wheel.velocity=linaer",), "Did you mean 'linear'?"),
        (("wheel.speed=linear",), "'wheel.speed' fits no connected continuous input"),
        (("linear:steps=4",), "--inputs linear has no setting 'steps'"),
        (("nepce:compensation=2",), "compensation=2: expected 0 to 1"),
    ],
)
def test_inputs_that_cannot_be_understood_are_refused(
    run: Run, car: Path, inputs: tuple[str, ...], message: str
) -> None:
    options = [word for text in inputs for word in ("--inputs", text)]
    outcome = run("plan", car, *options)
    assert outcome.status != 0
    assert message in outcome.error


@pytest.mark.parametrize(
    ("polynomial", "words"),
    [
        (Polynomial(2, 0), "linear"),
        (Polynomial(4, 0), "4,0"),
        (Polynomial(1, 0, compensation=0.8), "hold:compensation=0.8"),
        (Polynomial(2, 1, mean=True), "hermite:mean=true"),
        (Polynomial(2, 0, sub_steps=4), "linear:sub_steps=4"),
    ],
    ids=str,
)
def test_a_polynomial_is_said_as_it_is_taken(
    run: Run, car: Path, polynomial: Polynomial, words: str
) -> None:
    assert setting_text(polynomial) == words
    assert run("plan", car, "--inputs", words).status == 0
