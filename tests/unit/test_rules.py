"""Rules of FMI that an FMU breaks: which, how bad, and told at a length that can be read."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import changed, large_fmu, reference

from fmimaster.fmu.description.model_description import parse_description
from fmimaster.fmu.description.rules import BrokenRule, broken_rules
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.front.validation import Severity, validate

Edit = Callable[[str], str]


def unpacked(path: Path, target: Path) -> UnpackedFmu:
    with zipfile.ZipFile(path) as archive:
        archive.extractall(target)
    return UnpackedFmu(target, path.name)


def rules(path: Path, description: Edit = str) -> list[BrokenRule]:
    fmu = changed(path, path.parent / "changed.fmu", description=description)
    return broken(unpacked(fmu, path.parent / "unpacked"))


def broken(fmu: UnpackedFmu) -> list[BrokenRule]:
    return list(broken_rules(fmu, parse_description(fmu.folder, fmu.where)))


@pytest.fixture
def fmu(tmp_path: Path) -> Path:
    return large_fmu(tmp_path / "a.fmu", 40)


def without_initial_unknowns(text: str) -> str:
    return re.sub("<InitialUnknowns>.*</InitialUnknowns>", "", text)


def test_a_correct_fmu_breaks_none(fmu: Path) -> None:
    assert rules(fmu) == []


def test_names_are_told_in_one_line_with_a_count(tmp_path: Path) -> None:
    [rule] = rules(large_fmu(tmp_path / "a.fmu", 1300, "a variable {}"))
    assert rule.what == (
        "Names that do not follow the naming convention 'structured': "
        f"{', '.join(f'a variable {k}' for k in range(8))} and 1292 more"
    )
    assert rule.is_common


def test_names_are_not_parsed_by_the_grammar_of_fmpy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a grammar is compiled, which takes 10 ms for each name")

    monkeypatch.setattr("lark.Lark.__init__", refuse)
    assert rules(large_fmu(tmp_path / "a.fmu", 1300)) == []


def test_initial_unknowns_are_common_and_told_by_their_difference(tmp_path: Path) -> None:
    [rule] = rules(large_fmu(tmp_path / "a.fmu", 1300), without_initial_unknowns)
    assert rule.what.startswith(
        "The InitialUnknown entries of ModelStructure are not those expected"
    )
    assert rule.what.endswith(
        "; missing: v1, v1001, v1005, v1009, v101, v1013, v1017, v1021 and 317 more"
    )
    assert rule.is_common


def test_an_output_that_is_not_in_the_structure_is_no_common_finding(fmu: Path) -> None:
    found = rules(fmu, lambda t: t.replace('<Unknown index="2" dependencies="1"/>', "", 1))
    [rule] = [r for r in found if r.what.startswith("The Output entries")]
    assert rule.what.endswith("missing: v1")
    assert not rule.is_common


def test_findings_of_the_schema_have_their_line_and_do_not_hide_others(fmu: Path) -> None:
    def edit(text: str) -> str:
        return without_initial_unknowns(text).replace("<CoSimulation ", '<CoSimulation colour="x" ')

    schema, structure = rules(fmu, edit)
    assert re.match(r"line 3, column \d+: .*CoSimulation.*'colour'.*not allowed", schema.what)
    assert not schema.is_common
    assert "InitialUnknown" in structure.what


def test_of_a_long_list_the_first_elements_are_held_against_the_schema(tmp_path: Path) -> None:
    fmu = large_fmu(tmp_path / "a.fmu", 2500)
    found = rules(fmu, lambda text: text.replace('causality="output"', 'causality="output" x="1"'))
    by_schema = [rule.what for rule in found if "'x' is not allowed" in rule.what]
    assert len(by_schema) == 500  # one for each output among them
    [cut] = [
        rule
        for rule in found
        if "only the first 2000 of 25" in rule.what and "ModelVariables" in rule.what
    ]
    assert cut.is_common


def test_a_start_value_that_is_missing_is_no_common_finding(fmu: Path) -> None:
    [rule] = rules(fmu, lambda t: t.replace('<Real start="1"/>', "<Real/>", 1))
    assert 'Variable "v0"' in rule.what
    assert "has no start value" in rule.what
    assert not rule.is_common


def test_a_start_value_of_what_is_calculated_is_common(fmu: Path) -> None:
    [rule] = rules(fmu, lambda t: t.replace("<Real/>", '<Real start="1"/>', 1))
    assert 'has initial="calculated" but provides a start value' in rule.what
    assert rule.is_common


def test_a_unit_that_is_not_defined_is_common(fmu: Path) -> None:
    [rule] = rules(fmu, lambda t: t.replace("<Real/>", '<Real unit="m"/>', 1))
    assert 'The unit "m" of variable "v1"' in rule.what
    assert rule.is_common


def test_other_files_are_held_against_their_schemas(tmp_path: Path) -> None:
    members = {
        "sources/buildDescription.xml": b"<fmiBuildDescription>",
        "terminalsAndIcons/terminalsAndIcons.xml": b"<fmiTerminalsAndIcons/>",
    }
    path = changed(reference("fmi3/Dahlquist.fmu"), tmp_path / "a.fmu", members=members)
    build, terminals = broken(unpacked(path, tmp_path / "unpacked"))
    assert (build.file, terminals.file) == tuple(members)
    assert "malformed XML" in build.what
    assert "fmiVersion" in terminals.what


# In 'validate' --------------------------------------------------------------------------------------------------------


def test_common_findings_are_notes(fmu: Path) -> None:
    path = changed(fmu, fmu.with_name("b.fmu"), description=without_initial_unknowns)
    [finding] = [f for f in validate(path) if "InitialUnknown" in f.what]
    assert finding.severity is Severity.NOTE
    assert finding.place == "b.fmu/modelDescription.xml"


def test_nothing_is_said_of_connections_for_a_single_fmu(fmu: Path) -> None:
    path = changed(
        fmu, fmu.with_name("b.fmu"), description=lambda t: t.replace('"2.0"', '"1.0"', 1)
    )
    [finding] = validate(path)
    assert "is an FMI 1.0 FMU" in finding.what
