"""What a model description has wrong is said by each command that uses the FMU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, changed, reference

Run = Callable[..., Outcome]


def with_variable(folder: Path, text: str, instead_of: str = "</ModelVariables>") -> Path:
    """Feedthrough of FMI 3.0 with something else in its variables."""
    source = reference("fmi3/Feedthrough.fmu")
    return changed(
        source, folder / "a.fmu", description=lambda t: t.replace(instead_of, text + instead_of, 1)
    )


def output(run: Run, command: str, fmu: Path) -> str:
    outcome = run(command, fmu)
    assert outcome.status == 0, outcome.err
    return " ".join((outcome.out + outcome.err).split())


@pytest.mark.parametrize("command", ["simulate", "plan", "validate"])
def test_a_start_value_that_is_no_number_is_an_error(
    run: Run, tmp_path: Path, command: str
) -> None:
    fmu = with_variable(tmp_path, '<Float64 name="p" valueReference="999" start="one"/>')
    outcome = run(command, fmu)
    assert outcome.status != 0
    said = " ".join((outcome.out + outcome.err).split())
    assert "start of Float64 'p' is 'one', expected a value of type Float64" in said
    assert "modelDescription.xml, line " in said


@pytest.mark.parametrize("command", ["simulate", "plan", "validate"])
def test_a_doubled_name_of_a_local_variable_is_said(run: Run, tmp_path: Path, command: str) -> None:
    double = '<Float64 name="p" valueReference="998"/><Int8 name="p" valueReference="999"/>'
    said = output(run, command, with_variable(tmp_path, double))
    assert "a variable has the name of another one; the first one is used: 'p'" in said


@pytest.mark.parametrize("command", ["simulate", "plan", "info"])
def test_a_doubled_name_of_an_output_is_an_error(run: Run, tmp_path: Path, command: str) -> None:
    double = '<Int32 name="Int32_output" valueReference="999" causality="output"/>'
    message = run(command, with_variable(tmp_path, double)).error
    assert "Int32 'Int32_output' has the name of another variable" in message
    assert "modelDescription.xml, line " in message


def test_a_structural_parameter_cannot_make_an_array_of_any_size(run: Run, tmp_path: Path) -> None:
    variables = (
        '<UInt64 name="n" valueReference="998" causality="structuralParameter" start="2"/>'
        '<Float64 name="y" valueReference="999" causality="output"><Dimension valueReference="998"/></Float64>'
    )
    fmu = with_variable(tmp_path, variables)
    assert run("plan", fmu, "--start-value", "n", "3").status == 0
    message = run("plan", fmu, "--start-value", "n", "9223372036854775808").error
    assert "'a': all variables together have more than 10000000 elements with n = 92233" in message
