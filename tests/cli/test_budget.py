"""``fmimaster budget``: which connection costs accuracy."""

from __future__ import annotations

from collections.abc import Callable

from command_line import Outcome, reference

Run = Callable[..., Outcome]


def test_the_page_shows_errors_and_what_they_do(run: Run) -> None:
    system = reference("systems/quarter-car-a-fmi3.ssp")
    found = run("budget", system, "--step-size", "0.001", "--stop-time", "0.5")
    assert found.status == 0
    text = found.out
    assert "  wheel.force -> chassis.force" in text
    assert text.index("wheel.force -> chassis.force") < text.index("chassis.velocity -> wheel.vel")
    assert "Effects on the outputs of the same component" in text
    assert "note:" not in text


def test_with_a_controller_effects_are_left_out_with_a_note(run: Run) -> None:
    system = reference("systems/quarter-car-a-fmi3.ssp")
    found = run("budget", system, "--step-rule", "free", "--stop-time", "0.1")
    assert found.status == 0
    assert "What they do" not in found.out
    assert "note: Effects on outputs are measured with a fixed step only" in found.out
