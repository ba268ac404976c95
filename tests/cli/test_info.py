"""``fmimaster info``: a readable page, and JSON whose keys stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import fmpy
import pytest
from command_line import Outcome, changed, reference, system

Run = Callable[..., Outcome]


@pytest.fixture
def upper() -> Path:
    return reference("fmi2/TwoMassUpper.fmu")


def test_a_page_tells_what_the_fmu_says_of_itself(run: Run, upper: Path) -> None:
    lines = [" ".join(line.split()) for line in run("info", upper).out.splitlines()]
    assert lines[0] == "TwoMassUpper"
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
    assert f"platforms {fmpy.platform} (this machine)" in lines


def test_arrays_are_told_with_their_shape(run: Run) -> None:
    page = run("info", reference("fmi3/Feedthrough.fmu")).out
    assert re.search(r"Float64_vector_input +Float64\[3\] +start 0 0 0 ", page)


def test_undeclared_dependencies_are_told(run: Run, upper: Path, tmp_path: Path) -> None:
    path = changed(
        upper,
        tmp_path / "a.fmu",
        description=lambda t: re.sub(r' dependencies(Kind)?="[^"]*"', "", t),
    )
    assert re.search(r"\n  x +not declared: counts as all inputs\n", run("info", path).out)


def test_an_fmu_for_another_platform_can_be_looked_at(
    run: Run, upper: Path, tmp_path: Path
) -> None:
    path = changed(
        upper, tmp_path / "a.fmu", name=lambda n: re.sub("^binaries/[^/]*", "binaries/win32", n)
    )
    outcome = run("info", path)
    assert outcome.status == 0
    assert re.search(r"\n  platforms +win32\n", outcome.out)
    facts = json.loads(run("info", path, "--json").out)
    assert (facts["platforms"], facts["platformHere"]) == (["win32"], None)


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
    assert "  ... and 92 more (all with --json)\n" in run("info", path).out
    assert len(json.loads(run("info", path, "--json").out)["variables"]) == 144


def test_the_json_of_an_fmu_is_stable(run: Run, upper: Path) -> None:
    facts = json.loads(run("info", upper, "--json").out)
    assert list(facts) == [
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
        "capabilities",
        "logCategories",
        "variables",
        "dependencies",
        "eventIndicators",
        "events",
        "eventPolicy",
        "lookAhead",
        "inputPolynomials",
    ]
    assert facts["defaultExperiment"] == {
        "startTime": 0.0,
        "stopTime": 20.0,
        "tolerance": None,
        "stepSize": 0.01,
    }
    assert facts["capabilities"]["canGetAndSetFMUState"] is True
    assert facts["dependencies"]["x"] == {"inputs": [], "declared": True}
    assert facts["dependencies"]["a"]["inputs"][:2] == ["u_x", "u_v"]
    [u_v] = [v for v in facts["variables"] if v["name"] == "u_v"]
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
    facts = json.loads(run("info", path, "--json").out)
    assert list(facts) == [
        "file",
        "name",
        "experiment",
        "components",
        "connections",
        "parameters",
        "sharedEvents",
        "warnings",
        "notes",
    ]
    assert facts["components"][0] == {
        "name": "a",
        "source": str(tmp_path / "fmi2-TwoMassUpper.fmu"),
        "modelName": "TwoMassUpper",
        "fmiVersion": "2.0",
        "error": None,
    }
    assert facts["connections"] == [
        {
            "start": "b.u_x",
            "end": "a.x",
            "factor": 1.0,
            "offset": 0.0,
            "suppressUnitConversion": False,
        }
    ]
    assert facts["parameters"] == [{"name": "a.m1", "value": 2.0, "unit": "kg"}]
