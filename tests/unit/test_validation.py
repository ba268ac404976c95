"""Findings about FMUs and systems: which, how bad, and what to do."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from command_line import changed, reference, system
from edited_fmu import edited_fmu
from event_fmus import VARIABLES, event_fmu

from fmimaster import PythonComponent, SystemBuilder, reference_path
from fmimaster.front.validation import Finding, Severity, validate
from fmimaster.prepare import isolation
from fmimaster.system import Lifetime, xml
from fmimaster.system.resolve import resolve
from fmimaster.system.ssp_annotations import SEQUENCE, write_sequence
from fmimaster.system.ssp_copy import copy_with_annotation


@pytest.fixture
def upper() -> Path:
    return reference("fmi2/TwoMassUpper.fmu")


@pytest.fixture
def feedthrough() -> Path:
    return reference("fmi3/Feedthrough.fmu")


def errors(findings: tuple[Finding, ...]) -> list[str]:
    return [f.what for f in findings if f.severity is Severity.ERROR]


def of(severity: Severity, findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.severity is severity]


def without_dependencies(text: str) -> str:
    return re.sub(r' dependencies(Kind)?="[^"]*"', "", text)


@pytest.mark.parametrize(
    "name", ["Dahlquist", "Faulty", "Feedthrough", "TwoMassLower", "TwoMassUpper"]
)
@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_the_reference_fmus_have_neither_errors_nor_warnings(version: str, name: str) -> None:
    findings = validate(reference(f"{version}/{name}.fmu"))
    assert {f.severity for f in findings} <= {Severity.NOTE}


def test_a_system_without_doubts_has_no_findings() -> None:
    assert validate(reference("systems/two-mass-b3-mixed.ssp")) == ()


def test_a_sequence_that_does_not_name_the_components_is_an_error(tmp_path: Path) -> None:
    source, copy = reference("systems/two-mass-b3-mixed.ssp"), tmp_path / "copy.ssp"
    for names, what in (
        (("upper", "louwer"), "there is no component 'louwer'. Did you mean 'lower'?"),
        (("upper",), "'lower' is missing"),
        (("upper", "lower", "upper"), "'upper' is named more than once"),
    ):
        copy_with_annotation(source, copy, SEQUENCE.type, write_sequence(names))
        [error] = errors(validate(copy))
        assert what in error


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    [finding] = validate(tmp_path / "a.fmu")
    assert finding.severity is Severity.ERROR
    assert "does not exist" in finding.what


def test_a_broken_rule_is_a_warning(upper: Path, tmp_path: Path) -> None:
    def without_start(text: str) -> str:
        return text.replace('start="-8.8"', "", 1)

    path = changed(upper, tmp_path / "a.fmu", description=without_start)
    [finding] = of(Severity.WARNING, validate(path))
    assert finding.place == "a.fmu/modelDescription.xml"
    assert '"u_x"' in finding.what
    assert "has no start value" in finding.what
    assert "may still run" in finding.advice


def test_a_missing_binary_is_an_error_with_what_builds_one(upper: Path, tmp_path: Path) -> None:
    path = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/[^/]*", "binaries/win32", n)
    )
    [finding] = of(Severity.ERROR, validate(path))
    assert "has no binary for this platform" in finding.what
    assert "it has win32" in finding.what
    assert "Export it for this platform" in finding.advice
    flags = "-DFMI2_OVERRIDE_FUNCTION_PREFIX -DFMI2_FUNCTION_PREFIX="
    command = f'set "CFLAGS={flags}" &&' if sys.platform == "win32" else f'CFLAGS="{flags}"'
    built = f"It has C sources; build a binary from them: {command} fmpy compile"
    assert built in finding.what
    unlisted = changed(
        path, tmp_path / "b.fmu", description=lambda t: re.sub("(?s)<SourceFiles>.*?</S.*?>", "", t)
    )
    [finding] = of(Severity.ERROR, validate(unlisted))  # fmpy compiles listed files only
    assert "fmpy" not in finding.what


def test_what_cannot_be_read_is_an_error_and_nothing_is_said_of_connections(
    upper: Path, tmp_path: Path
) -> None:
    bad = changed(upper, tmp_path / "bad.fmu", description=lambda t: t.replace('"2.0"', '"1.0"', 1))
    findings = validate(system(tmp_path / "s", {"good": upper, "bad": bad}, ["good.y -> bad.u"]))
    [error] = errors(findings)
    assert "is an FMI 1.0 FMU" in error
    assert findings[-1].what.startswith("Connections and parameters were not checked")


def test_every_wrong_connection_and_parameter_is_told(upper: Path, tmp_path: Path) -> None:
    routes = ["a.x -> b.u_x", "a.v -> b.u_x", "a.y -> b.u_v", "a.x -> b.v", "b.a -> a.u_a"]
    parameters = """<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>
      <ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>
        <ssv:Parameter name="a.m1"><ssv:Real value="1"/></ssv:Parameter>
        <ssv:Parameter name="a.a"><ssv:Real value="1"/></ssv:Parameter>
      </ssv:Parameters></ssv:ParameterSet>
    </ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>"""
    path = system(tmp_path, {"a": upper, "b": upper}, routes, parameters=parameters)
    found = errors(validate(path))
    assert len(found) == 4
    assert "'a.a' takes no start value" in found[0]
    assert "'b.u_x' is already fed by Connection 'a.x -> b.u_x'" in found[1]
    assert "component 'a' has no variable 'y'" in found[2]
    assert "connects two outputs" in found[3]


def test_one_error_of_many_connections_is_found_without_trying_each(
    upper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def counted(*arguments: Any, **options: Any) -> Any:
        tried.append(1)
        return resolve(*arguments, **options)

    monkeypatch.setattr("fmimaster.front.validation.resolve", counted)
    names = [f"c{k}" for k in range(100)]
    routes = [f"{a}.x -> {b}.u_x" for a, b in pairwise(names)]
    path = system(
        tmp_path, dict.fromkeys(names, upper), [*routes[:60], "c0.x -> c1.v", *routes[60:]]
    )
    assert len(errors(validate(path))) == 1
    assert len(tried) < 20


def test_undeclared_dependencies_and_the_loops_that_follow_are_noted(
    feedthrough: Path, tmp_path: Path
) -> None:
    path = changed(feedthrough, tmp_path / "a.fmu", description=without_dependencies)
    out, into = "Float64_continuous_output", "Float64_continuous_input"
    ring = [f"a.{out} -> b.{into}", f"b.{out} -> a.{into}"]
    notes = of(Severity.NOTE, validate(system(tmp_path / "s", {"a": path, "b": path}, ring)))
    said = [f.what for f in notes]
    assert any(
        "The FMU does not declare on which inputs these outputs depend" in what for what in said
    )
    loops = [what for what in said if what.startswith("Algebraic loop")]
    assert [what.split(",")[0] for what in loops] == [
        "Algebraic loop at initialization",
        "Algebraic loop in Step Mode",
    ]
    assert all("assumed, because an FMU does not declare" in what for what in loops)


def test_only_outputs_without_dependencies_are_named_as_undeclared(
    feedthrough: Path, tmp_path: Path
) -> None:
    def without_some(text: str) -> str:
        for number in re.findall(r'name="Int(?:8|32)_output" valueReference="(\d+)"', text):
            text, n = re.subn(
                rf'(valueReference="{number}") dependencies="[^"]*"( dependenciesKind="[^"]*")?',
                r"\1",
                text,
            )
            assert n > 0
        return text

    path = changed(feedthrough, tmp_path / "a.fmu", description=without_some)
    said = "The FMU does not declare on which inputs these outputs depend: "
    [note] = [f.what for f in validate(path) if f.what.startswith(said)]
    assert note.startswith(f"{said}Int8_output, Int32_output. They are assumed")


def test_a_real_loop_is_not_called_assumed(feedthrough: Path, tmp_path: Path) -> None:
    out, into = "Float64_continuous_output", "Float64_continuous_input"
    ring = [f"a.{out} -> b.{into}", f"b.{out} -> a.{into}"]
    findings = validate(system(tmp_path, {"a": feedthrough, "b": feedthrough}, ring))
    loops = [f.what for f in findings if f.what.startswith("Algebraic loop")]
    assert len(loops) == 2
    assert not any("assumed" in what for what in loops)


def test_conversions_are_noted_at_their_connection(
    upper: Path, feedthrough: Path, tmp_path: Path
) -> None:
    path = system(tmp_path, {"a": upper, "b": feedthrough}, ["a.x -> b.Float32_continuous_input"])
    notes = {f.what for f in validate(path) if f.place == "a.x -> b.Float32_continuous_input"}
    assert notes == {
        "Float64 to Float32, rounded.",
        "m (m) to no unit, not compared: passed unchanged.",
    }


def test_an_fmu_used_twice_that_allows_one_instance_is_an_error_where_it_cannot_be_isolated(
    upper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = '<CoSimulation canBeInstantiatedOnlyOncePerProcess="true"'
    fmu = changed(
        upper, tmp_path / "a.fmu", description=lambda t: t.replace("<CoSimulation", once, 1)
    )
    path = system(tmp_path / "s", {"a": fmu, "b": fmu})
    assert errors(validate(path)) == []
    monkeypatch.setattr(isolation, "native_executor", lambda: None)
    [error] = errors(validate(path))
    assert error.startswith("a, b are instances of one FMU that allows one instance per process")


def test_a_missing_stop_time_is_a_warning_since_an_option_can_give_it(
    upper: Path, tmp_path: Path
) -> None:
    fmu = changed(
        upper,
        tmp_path / "a.fmu",
        description=lambda t: re.sub(r"<DefaultExperiment[^>]*/>", "", t),
    )
    [finding] = of(Severity.WARNING, validate(fmu))
    assert "Give one: stop_time (--stop-time)" in finding.what


def test_a_model_description_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, parse = [], xml._parse

    def counted(text: bytes, where: str) -> object:
        parsed.append(where)
        return parse(text, where)

    monkeypatch.setattr(xml, "_parse", counted)
    path = reference("fmi3/Dahlquist.fmu")
    validate(path)
    assert [where for where in parsed if where.endswith("modelDescription.xml")] == [
        f"{path}/modelDescription.xml"
    ]


def test_a_system_that_was_built_in_python_is_validated() -> None:
    system = SystemBuilder("heating")
    system.add("room", reference_path("fmi3/ThermostatRoom.fmu"))
    system.add("control", PythonComponent(outputs={"q": False}, step=lambda c, t, h: None))
    system.connect("room.q", "control.q")
    found = [(f.place, f.severity, f.what) for f in validate(system)]
    turned = (
        "connections are written from an input to an output, and are read in the direction of the value: "
        "'room.q -> control.q'."
    )
    assert ("heating", Severity.WARNING, turned) in found
    assert validate(system.build()) == validate(system)
    system.connect("control.p", "room.q")
    assert [f.severity for f in validate(system)].count(Severity.ERROR) == 1


def test_each_structure_of_a_changing_system_is_validated_by_itself() -> None:
    """Two connections to one input are right, if they never exist at the same time."""

    def two_pipes(second_from: float) -> SystemBuilder:
        system = SystemBuilder("two pipes")
        for name in ("first", "second"):
            system.add(name, reference_path("fmi3/EventSource.fmu"))
        system.add("tank", reference_path("fmi3/FillingTank.fmu"))
        pipe: dict[str, Any] = {"suppress_unit_conversion": True}
        system.connect("first.ramp", "tank.inflow", lifetime=Lifetime(until_time=2), **pipe)
        later = Lifetime(from_time=second_from)
        system.connect("second.ramp", "tank.inflow", lifetime=later, **pipe)
        return system

    assert errors(validate(two_pipes(second_from=2))) == []
    (error,) = errors(validate(two_pipes(second_from=1)))
    assert "'tank.inflow'" in error
    assert "first.ramp" in error
    assert "second.ramp" in error


# Dependencies on triggers: requirement M10 of fmi-ls-events -----------------------------------------------------------


NO_TRIGGER = {"dependencies": "u_x", "dependenciesKind": "dependent"}


def test_indicators_that_do_not_list_the_trigger_are_told(tmp_path: Path) -> None:
    names = ("collision.z[1]", "collision.z[2]")
    unknowns = dict.fromkeys(names, NO_TRIGGER)
    path = edited_fmu(reference("fmi2/TwoMassUpper.fmu"), tmp_path / "upper.fmu", unknowns=unknowns)
    [finding] = of(Severity.WARNING, validate(path))
    assert "Event 'collision' has right limits without a step, and none of its" in finding.what
    assert "requirement M10" in finding.advice


def test_an_output_that_lists_the_payload_without_its_trigger_is_told(tmp_path: Path) -> None:
    unknowns = {"v": {"dependencies": "collision.w", "dependenciesKind": "dependent"}}
    path = edited_fmu(reference("fmi2/TwoMassUpper.fmu"), tmp_path / "upper.fmu", unknowns=unknowns)
    [finding] = of(Severity.WARNING, validate(path))
    assert "the output 'v' depends on the payload 'collision.w', and not on" in finding.what
    assert "the trigger 'collision.in'" in finding.what


@pytest.mark.parametrize("kind", ["Int32", "Clock"])
def test_a_counter_of_fmi3_is_a_dependency_and_a_clock_need_not_be(
    kind: str, tmp_path: Path
) -> None:
    """What changes in fmi3UpdateDiscreteStates does not depend directly on a Clock."""
    variables = re.sub(r"(collision.in +)Clock", rf"\g<1>{kind}", VARIABLES)
    path = event_fmu(tmp_path / "upper.fmu", variables=variables)
    told = [f.what for f in of(Severity.WARNING, validate(path)) if "trigger" in f.what]
    assert [("none of its indicators" in what) for what in told] == [True] * (kind == "Int32")
