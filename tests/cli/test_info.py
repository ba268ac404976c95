"""``fmimaster info``: a readable page, and JSON whose keys stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import fmpy
import pytest
from command_line import Outcome, changed, large_fmu, reference, system

from fmimaster.commands import facts
from fmimaster.system.model import Variable

Run = Callable[..., Outcome]


@pytest.fixture
def upper() -> Path:
    return reference("fmi2/TwoMassUpper.fmu")


def test_a_page_tells_what_the_fmu_says_of_itself(run: Run, upper: Path) -> None:
    lines = [" ".join(line.split()) for line in run("info", upper).out.splitlines()]
    assert lines[0] == "TwoMassUpper"
    assert "Look-ahead" not in run("info", reference("fmi2/BouncingBall.fmu")).out
    for expected in (
        "FMI version 2.0",
        "interfaces CoSimulation",
        "default experiment start 0 s, stop 20 s, step 0.01 s",
        "yes can get and set FMU state",
        "44 variables: 1 independent, 12 input, 14 output, 17 parameter",
        "u_x Float64 m start -8.8 Position of the lower mass",
        "m1 Float64 kg start 0.2 Mass of the upper block",
        "x no input",
        "collision.z[1] u_x, u_poly[0], u_poly[1], u_poly[2], u_poly[3], u_poly[4], u_poly[5]",
    ):
        assert expected in lines
    [platforms] = [line for line in lines if line.startswith("platforms ")]
    assert f"{fmpy.platform} (this machine)" in platforms


def test_an_fmu_without_a_description_has_no_empty_line_for_it(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    whole = run("info", upper).out
    described = re.compile(r' description="[^"]*"')
    path = changed(upper, tmp_path / "a.fmu", description=lambda t: described.sub("", t, count=1))
    lines = run("info", path).out.splitlines()
    assert lines[0] == whole.splitlines()[0]
    assert (lines[1] == "", lines[2] == "") == (True, False)


def test_arrays_are_told_with_their_shape(run: Run) -> None:
    page = run("info", reference("fmi3/Feedthrough.fmu")).out
    assert re.search(r"Float64_vector_input +Float64\[3\] +start 0 0 0 ", page)


def test_undeclared_dependencies_are_told(run: Run, upper: Path, tmp_path: Path) -> None:
    path = changed(
        upper,
        tmp_path / "a.fmu",
        description=lambda t: re.sub(r' dependencies(Kind)?="[^"]*"', "", t),
    )
    assert re.search(r"\n  x +not declared: all inputs are assumed\n", run("info", path).out)


def test_an_fmu_for_another_platform_can_be_looked_at(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    path = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/[^/]*", "binaries/win32", n)
    )
    outcome = run("info", path)
    assert outcome.status == 0
    assert re.search(r"\n  platforms +win32\n", outcome.out)
    told = json.loads(run("info", path, "--json").out)
    assert (told["platforms"], told["platformHere"]) == (["win32"], None)


def test_long_lists_are_cut_on_the_page_and_whole_in_json(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    more = "".join(
        f'<ScalarVariable name="p{k}" valueReference="{1000 + k}" causality="parameter" '
        f'variability="fixed" initial="exact"><Real start="{k}"/></ScalarVariable>'
        for k in range(100)
    )
    path = changed(
        upper,
        tmp_path / "a.fmu",
        description=lambda t: t.replace("</ModelVariables>", f"{more}</ModelVariables>"),
    )
    assert "  ... and 102 more (all with --all)\n" in run("info", path).out
    assert re.search(r"\n  p99 +Float64 +start 99\n", run("info", path, "--all").out)
    assert len(json.loads(run("info", path, "--json").out)["variables"]) == 144


def test_local_variables_which_can_be_indicators_too_are_shown_with_all(run: Run) -> None:
    path = reference("fmi3/Superdense.fmu")
    assert "Local variables" not in run("info", path).out
    assert re.search(r"\nLocal variables\n(  .+\n)* +resetTime ", run("info", path, "--all").out)


def test_the_page_of_20_000_variables_is_short_and_converts_only_what_it_shows(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_fmu(tmp_path / "a.fmu", 20_000)
    converted: list[str] = []
    one = facts._variable

    def counted(variable: Variable) -> dict[str, object]:
        converted.append(variable.name)
        return one(variable)

    monkeypatch.setattr(facts, "_variable", counted)
    lines = run("info", path).out.splitlines()
    assert len(lines) < 200
    assert max(map(len, lines)) < 200
    assert "20000 variables: 5000 input, 5000 output, 5000 parameter, 5000 local" in lines
    assert len(converted) < 100


def test_long_lists_of_a_system_are_cut(run: Run, tmp_path: Path) -> None:
    fmu = large_fmu(tmp_path / "a.fmu", 400)
    routes = [f"a.v{4 * k + 1} -> b.v{4 * k}" for k in range(100)]
    path = system(tmp_path / "s", {"a": fmu, "b": fmu}, routes)
    assert "  ... and 85 more (all with --all)\n" in run("info", path).out
    assert "a.v397  ->  b.v396\n" in run("info", path, "--all").out


LAYERED = """<?xml version="1.0"?><manifest xmlns:fmi-ls="http://fmi-standard.org/fmi-ls-manifest"
 fmi-ls:fmi-ls-name="org.fmi-standard.fmi-ls-bus" fmi-ls:fmi-ls-version="1.0.0-beta.1"
 fmi-ls:fmi-ls-description="Layered standard for network communication"/>"""

TERMINALS = """<?xml version="1.0"?>
<fmiTerminalsAndIcons fmiVersion="3.0"><Terminals>
  <Terminal name="flange" matchingRule="plug" terminalKind="mechanical">
    <TerminalMemberVariable variableName="x" memberName="s" variableKind="signal"/>
    <TerminalMemberVariable variableName="u_x" memberName="f" variableKind="signal"/>
    <Terminal name="inner" matchingRule="bus">
      <TerminalStreamMemberVariable inStreamMemberName="hi" outStreamMemberName="ho"
        inStreamVariableName="u_v" outStreamVariableName="v"/>
    </Terminal>
  </Terminal>
</Terminals></fmiTerminalsAndIcons>"""


def test_layered_standards_and_terminals_are_listed(run: Run, upper: Path, tmp_path: Path) -> None:
    members = {
        "extra/org.fmi-standard.fmi-ls-bus/fmi-ls-manifest.xml": LAYERED.encode(),
        "extra/org.example.broken/fmi-ls-manifest.xml": b"<broken",
        "extra/org.example.vendor/data.txt": b"no layered standard",
        "terminalsAndIcons/terminalsAndIcons.xml": TERMINALS.encode(),
    }
    path = changed(upper, tmp_path / "a.fmu", members=members)
    lines = [" ".join(line.split()) for line in run("info", path).out.splitlines()]
    after = lines[lines.index("Layered standards") :]
    assert after == [
        "Layered standards",
        "org.example.broken invalid, see 'fmimaster validate'",
        "org.fmi-standard.fmi-ls-bus 1.0.0-beta.1 not known, not used Layered standard for network communication",
        "org.fmimaster.fmi-ls-events 0.3.0 used Event indicator sets, shared events, look-ahead",
        "org.fmimaster.fmi-ls-input-polynomials 0.3.0 used Inputs as polynomials over a communication step",
        "",
        "Terminals",
        "flange mechanical plug x, u_x",
        "flange.inner bus u_v, v",
    ]
    told = json.loads(run("info", path, "--json").out)
    assert told["layeredStandards"][1] == {
        "name": "org.fmi-standard.fmi-ls-bus",
        "version": "1.0.0-beta.1",
        "description": "Layered standard for network communication",
        "known": False,
        "problems": [],
    }
    assert "malformed XML" in told["layeredStandards"][0]["problems"][0]
    assert told["terminals"][1] == {
        "name": "flange.inner",
        "kind": "",
        "matchingRule": "bus",
        "description": "",
        "members": [
            {"name": "hi", "variable": "u_v", "kind": "inStream"},
            {"name": "ho", "variable": "v", "kind": "outStream"},
        ],
    }


def test_the_treatment_of_events_is_shown_with_the_reason(run: Run) -> None:
    ball = reference("fmi2/BouncingBall.fmu")
    said = "Predictive, because its events have indicators and triggers"
    assert said in run("info", ball).out
    row = json.loads(run("info", ball, "--json").out)["eventRow"]
    assert row == {"method": "Predictive", "because": said.split("because ")[1]}
    dahlquist = reference("fmi2/Dahlquist.fmu")
    assert json.loads(run("info", dahlquist, "--json").out)["eventRow"] is None


def test_the_json_of_an_fmu_is_stable(run: Run, upper: Path) -> None:
    told = json.loads(run("info", upper, "--json").out)
    assert list(told) == [
        "file",
        "modelName",
        "description",
        "fmiVersion",
        "interfaces",
        "generationTool",
        "modelIdentifier",
        "instantiationToken",
        "platforms",
        "platformHere",
        "defaultExperiment",
        "interface",
        "capabilities",
        "logCategories",
        "variables",
        "clocks",
        "dependencies",
        "eventIndicators",
        "numberOfEventIndicators",
        "stateDerivatives",
        "events",
        "eventPolicy",
        "eventRow",
        "lookAhead",
        "inputPolynomials",
        "layeredStandards",
        "terminals",
        "powerPorts",
    ]
    assert told["defaultExperiment"] == {
        "startTime": 0.0,
        "stopTime": 20.0,
        "tolerance": None,
        "stepSize": 0.01,
    }
    assert told["capabilities"]["canGetAndSetFMUState"] is True
    assert told["dependencies"]["x"] == {"inputs": [], "declared": True}
    assert told["dependencies"]["a"]["inputs"][:2] == ["u_x", "u_v"]
    [u_v] = [v for v in told["variables"] if v["name"] == "u_v"]
    assert u_v == {
        "name": "u_v",
        "valueReference": 2,
        "type": "Float64",
        "causality": "input",
        "variability": "continuous",
        "initial": None,
        "shape": [],
        "unit": "m/s",
        "start": [3.0],
        "min": None,
        "max": None,
        "nominal": 10.0,
        "derivativeOf": "u_x",
        "enumeration": None,
        "clocks": [],
        "description": "Velocity of the lower mass",
    }


# Systems --------------------------------------------------------------------------------------------------------------


def test_a_page_tells_what_a_system_is_made_of(run: Run) -> None:
    page = run("info", reference("systems/two-mass-b3-mixed.ssp")).out
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert lines[0] == "two-mass"
    for expected in (
        "experiment start 0 s, stop 20 s, step 0.01 s",
        "upper TwoMassUpper FMI 2.0 resources/TwoMassUpper.fmu",
        "lower TwoMassLower FMI 3.0 resources/TwoMassLower.fmu",
        "upper.x -> lower.u_x",
    ):
        assert expected in lines


def test_a_system_with_an_fmu_that_cannot_be_used_can_be_looked_at(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    bad = changed(upper, tmp_path / "bad.fmu", description=lambda t: t.replace('"2.0"', '"1.0"', 1))
    outcome = run(
        "info", system(tmp_path / "s", {"good": upper, "bad": bad}, ["good.x -> bad.u_x"])
    )
    assert outcome.status == 0
    assert "  bad: " in outcome.out
    assert "is an FMI 1.0 FMU" in outcome.out
    assert re.search("good.x +-> +bad.u_x", outcome.out)


def test_the_json_of_a_system_is_stable(run: Run, upper: Path, tmp_path: Path) -> None:
    parameters = """<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>
      <ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>
        <ssv:Parameter name="a.m1"><ssv:Real value="2" unit="kg"/></ssv:Parameter>
      </ssv:Parameters><ssv:Units><ssc:Unit name="kg"><ssc:BaseUnit kg="1"/></ssc:Unit></ssv:Units></ssv:ParameterSet>
    </ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>"""
    path = system(tmp_path, {"a": upper, "b": upper}, ["b.u_x -> a.x"], parameters=parameters)
    told = json.loads(run("info", path, "--json").out)
    assert list(told) == [
        "file",
        "name",
        "experiment",
        "components",
        "connections",
        "parameters",
        "sharedEvents",
        "powerBonds",
        "sequence",
        "warnings",
        "notes",
    ]
    assert told["components"][0] == {
        "name": "a",
        "source": str(tmp_path / "fmi2-TwoMassUpper.fmu"),
        "priority": None,
        "modelName": "TwoMassUpper",
        "fmiVersion": "2.0",
        "error": None,
    }
    assert told["connections"] == [
        {
            "start": "b.u_x",
            "end": "a.x",
            "factor": 1.0,
            "offset": 0.0,
            "suppressUnitConversion": False,
        }
    ]
    assert told["parameters"] == [{"name": "a.m1", "value": 2.0, "unit": "kg"}]


def test_a_model_exchange_fmu_is_shown_with_its_states(run: Run, tmp_path: Path) -> None:
    path = changed(
        reference("fmi2/BouncingBall.fmu"),
        tmp_path / "a.fmu",
        description=lambda t: re.sub(
            '(name="h" .*?<Real )', r'\1nominal="2.5" ', t, flags=re.DOTALL
        ),
    )
    page = run("info", path, "--interface", "ModelExchange").out
    assert "interfaces CoSimulation, ModelExchange (used)" in " ".join(page.split())
    start = page.index("Continuous states, and 1 event indicator")
    assert [line.split() for line in page[start:].splitlines()[1:3]] == [
        ["h", "derivative", "v", "nominal", "2.5"],
        ["v", "derivative", "a"],
    ]
    assert "Continuous states" not in run("info", path).out


def test_the_interface_of_a_system_is_refused(run: Run) -> None:
    path = reference("systems/two-mass-b3-fmi3.ssp")
    ran = run("validate", path, "--interface", "ModelExchange")
    assert "for a single FMU" in ran.error


def test_the_unit_1_is_not_printed_behind_a_value(run: Run, tmp_path: Path) -> None:
    parameters = """<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>
      <ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>
        <ssv:Parameter name="a.Float64_continuous_input"><ssv:Real value="13" unit="1"/></ssv:Parameter>
      </ssv:Parameters><ssv:Units><ssc:Unit name="1"><ssc:BaseUnit/></ssc:Unit></ssv:Units>
      </ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings>"""
    path = system(tmp_path, {"a": reference("fmi3/Feedthrough.fmu")}, [], parameters=parameters)
    page = run("info", path).out.splitlines()
    assert "  a.Float64_continuous_input  =  13.0" in [line.rstrip() for line in page]


def test_a_parameter_is_shown_as_the_fmu_gets_it(run: Run, upper: Path, tmp_path: Path) -> None:
    """2500 g with a mapping by the factor 2: the FMU gets 5 kg."""
    parameters = """<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>
      <ssv:ParameterSet version="1.0" name="set"><ssv:Parameters>
        <ssv:Parameter name="mass"><ssv:Real value="2500" unit="g"/></ssv:Parameter>
      </ssv:Parameters><ssv:Units><ssc:Unit name="g"><ssc:BaseUnit kg="1" factor="0.001"/></ssc:Unit></ssv:Units>
      </ssv:ParameterSet></ssd:ParameterValues>
      <ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="mass" target="a.m1">
      <ssc:LinearTransformation factor="2"/></ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping>
      </ssd:ParameterBinding></ssd:ParameterBindings>"""
    path = system(tmp_path, {"a": upper, "b": upper}, ["b.u_x -> a.x"], parameters=parameters)
    page = run("info", path).out.splitlines()
    assert "  a.m1  =  5 kg  mapped from 2500.0 g" in [line.rstrip() for line in page]
    [facts] = json.loads(run("info", path, "--json").out)["parameters"]
    assert facts == {
        "name": "a.m1",
        "value": 2500.0,
        "unit": "g",
        "received": {"values": [5.0], "unit": "kg"},
    }
