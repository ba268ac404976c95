"""Step-size control on the command line: `--step-rule` by name, with settings."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import pytest
from command_line import reference

from fmimaster import OptionError
from fmimaster.commands import settings
from fmimaster.configure.named import STEP_RULES
from fmimaster.configure.reading import rule_with_defaults
from fmimaster.steps import PID, FixedStep, PredictorCorrector


def rule(*arguments: str) -> Any:
    """What --step-rule and --step-size come to."""
    parser = ArgumentParser()
    settings.add_arguments(parser)
    given: Namespace = parser.parse_args(["system.ssp", *arguments])
    return settings.simulation(given).step_size


@pytest.mark.parametrize("name", STEP_RULES)
def test_a_rule_by_its_name_has_its_defaults(name: str) -> None:
    found = rule("--step-rule", name)
    assert found == rule_with_defaults(name)
    assert found.size is None


def test_settings_of_a_controller_are_its_fields_and_those_of_its_estimators() -> None:
    text = "predictor-corrector:tolerance=0.67,smallest=1e-4,k1=0.6,reject-above=2"
    found = rule("--step-size", "1/100", "--step-rule", text)
    assert found == PID(
        "1/100", (PredictorCorrector(0.67),), smallest=1e-4, k1=0.6, reject_above=2.0
    )


def test_the_step_size_of_a_grid_is_as_ever() -> None:
    assert rule("--step-size", "0.1", "--step-rule", "grid") == FixedStep("0.1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("eco", "There is no step rule 'eco'. Did you mean 'ecco'?"),
        ("ecco:tolerence=1", "has no setting 'tolerence'"),
        ("ecco:size=1", "the step size 0.1 s is already given. Leave size=1 out."),
        ("ecco:degree=1", "has no setting 'degree'"),
        ("ecco:safety=much", "ecco:safety=much: expected a number, such as 0.8"),
        ("ecco:smallest=x", "ecco:smallest=x: expected a number."),
        ("ecco:smallest=0.2", "Smallest step size 0.2 s, largest step size 0.1 s"),
        ("predictor-corrector:tolerance=0", "expected tolerance > 0"),
    ],
)
def test_what_no_rule_takes_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError) as error:
        rule("--step-size", "0.1", "--step-rule", text)
    assert message in str(error.value)


def test_the_plan_shows_the_controller(capsys: pytest.CaptureFixture[str]) -> None:
    from fmimaster.commands.cli import main

    system = str(reference("systems/quarter-car-a-fmi3.ssp"))
    main(["plan", system, "--step-size", "0.01", "--step-rule", "ecco:reject_above=1.5"])
    assert (
        "control  0.0001 s to 0.01 s  by energy_error; a step above 1.5 is undone"
        in capsys.readouterr().out
    )
