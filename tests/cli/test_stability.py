"""``fmimaster stability``: the page, the figure, and what cannot be answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference

CAR = "systems/quarter-car-b-fmi2.ssp"


def test_the_page_has_the_limit_the_steps_and_the_fmus(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    figure = tmp_path / "radius.svg"
    size = "--algorithm", "jacobi", "--step-size", "0.02"
    outcome = run("stability", reference(CAR), *size, "--figure", figure)
    assert outcome.status == 0
    assert "Largest stable communication step\n  11.23 ms\n" in outcome.out
    assert "  11.23 ms   1.000000  keeps its size" in outcome.out
    assert "the step of the run" in outcome.out
    assert "  chassis  2 states  linear\n  wheel    2 states  linear\n" in outcome.out
    assert outcome.err.strip() == f"figure written to {figure}"
    text = figure.read_text(encoding="utf-8")
    assert text.startswith("<?xml")
    assert text.count("<path") > 10


def test_a_range_without_an_unstable_step_is_told(run: Callable[..., Outcome]) -> None:
    outcome = run("stability", reference(CAR), "--step-size", "0.001", "--longest", "0.002")
    assert outcome.status == 0
    assert "none was found: all steps from 1 ms to 2 ms are stable" in outcome.out


def test_an_fmu_that_is_far_from_linear_makes_the_figures_a_hint(
    run: Callable[..., Outcome],
) -> None:
    system = reference("systems/quarter-car-a-nonlinear-fmi2.ssp")
    outcome = run("stability", system, "--step-size", "0.001", "--at", "0.1")
    assert outcome.status == 0
    [wheel] = [line for line in outcome.out.splitlines() if line.startswith("  wheel")]
    assert "not linear: its responses differ by" in wheel
    assert "only estimates" in outcome.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--inputs", "adaptive"), "adapt to measured errors"),
        (("--at", "-1"), "not between the start and the stop time of the run"),
        (("--longest", "0"), "expected a positive number"),
        (("--figure", "radius.txt"), "expected .pdf, .png, .svg"),
    ],
)
def test_what_cannot_be_answered(
    run: Callable[..., Outcome], options: tuple[str, ...], words: str
) -> None:
    outcome = run("stability", reference(CAR), *options)
    assert (outcome.status, outcome.out) == (2, "")
    assert words in outcome.err
