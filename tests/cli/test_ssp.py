"""Systems in SSP with units, differences, aliases and odd files, run with real FMUs from their files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, changed, reference
from ssd_text import component, elements, ssd

Run = Callable[..., Outcome]

DEFINED = """<Unit name="m"><BaseUnit m="1"/></Unit><Unit name="K"><BaseUnit K="1"/></Unit>
<Unit name="degC"><BaseUnit K="1" offset="273.15"/></Unit><Unit name="min"><BaseUnit s="1" factor="60"/></Unit>
</UnitDefinitions>"""
UNITS = (
    """<ssd:Units><ssc:Unit name="mm"><ssc:BaseUnit m="1" factor="0.001"/></ssc:Unit></ssd:Units>"""
)


def dahlquist(folder: Path, name: str, **attributes: str) -> str:
    """A copy of Dahlquist whose variables have these attributes as well; the time is ``time``."""

    def edit(text: str) -> str:
        for variable, more in attributes.items():
            text = text.replace(f' name="{variable}" ', f' name="{variable}" {more} ')
        return text.replace("</UnitDefinitions>", DEFINED)

    changed(reference("fmi3/Dahlquist.fmu"), folder / f"{name}.fmu", description=edit)
    return f"{name}.fmu"


def write(folder: Path, system: str, after: str = "") -> Path:
    (folder / "s.ssd").write_text(ssd(system, after), encoding="utf-8")
    return folder / "s.ssd"


def rows(path: Path) -> list[dict[str, float]]:
    with path.open(encoding="utf-8") as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


@pytest.mark.parametrize("backend", ["reference", "fastest"])
def test_differences_reach_their_input_without_the_offset(
    run: Run, tmp_path: Path, backend: str
) -> None:
    a = dahlquist(tmp_path, "a", x='unit="K" relativeQuantity="true"')
    b = dahlquist(tmp_path, "b", u='unit="degC" relativeQuantity="true"')
    path = write(
        tmp_path,
        elements(component("a", source=a), component("b", source=b))
        + '<ssd:Connections><ssd:Connection startElement="a" startConnector="x" endElement="b" endConnector="u"/>'
        "</ssd:Connections>",
    )
    held = ["--algorithm", "jacobi"]
    options = [*held, "--stop-time", 1, "--step-size", 0.5, "--backend", backend]
    names = ["--output-variable", "a.x", "--output-variable", "b.u"]
    outcome = run("simulate", path, *options, *names, "--output-file", tmp_path / "r.csv")
    assert outcome.status == 0, outcome.err
    found = rows(tmp_path / "r.csv")
    assert found[0]["b.u"] == found[0]["a.x"] == 1.0
    assert found[1]["b.u"] == found[0]["a.x"]  # held over the step


def test_a_difference_is_not_connected_with_a_temperature(run: Run, tmp_path: Path) -> None:
    a = dahlquist(tmp_path, "a", x='unit="K" relativeQuantity="true"')
    b = dahlquist(tmp_path, "b", u='unit="degC"')
    path = write(
        tmp_path,
        elements(component("a", source=a), component("b", source=b))
        + '<ssd:Connections><ssd:Connection startElement="a" startConnector="x" endElement="b" endConnector="u"/>'
        "</ssd:Connections>",
    )
    assert "'x' is a difference and 'u' is none (relativeQuantity)" in run("plan", path).error


def test_time_in_minutes_is_refused_in_simulate_plan_and_validate(run: Run, tmp_path: Path) -> None:
    def minutes(text: str) -> str:
        text = text.replace(
            'variability="continuous" unit="s"', 'variability="continuous" unit="min"'
        )
        return text.replace("</UnitDefinitions>", DEFINED)

    path = changed(reference("fmi3/Dahlquist.fmu"), tmp_path / "a.fmu", description=minutes)
    said = "Component 'a': the unit of time, 'time', is min (60 s). Expected s"
    assert said in run("simulate", path).error
    assert said in run("plan", path).error
    validated = run("validate", path)
    assert (validated.status, validated.out.count(said)) == (1, 1)


def test_a_column_of_an_input_file_is_in_the_unit_of_the_connector(
    run: Run, tmp_path: Path
) -> None:
    a = dahlquist(tmp_path, "a", u='unit="m"')
    path = write(
        tmp_path,
        '<ssd:Connectors><ssd:Connector name="v" kind="input"><ssc:Real unit="mm"/></ssd:Connector></ssd:Connectors>'
        + elements(component("a", source=a))
        + '<ssd:Connections><ssd:Connection startConnector="v" endElement="a" endConnector="u"/></ssd:Connections>',
        UNITS,
    )
    (tmp_path / "i.csv").write_text("time,v\n0,250\n1,250\n", encoding="utf-8")
    options = ["--stop-time", 1, "--step-size", 0.5, "--input-file", tmp_path / "i.csv"]
    names = ["--output-variable", "a.u"]
    outcome = run("simulate", path, *options, *names, "--output-file", tmp_path / "r.csv")
    assert outcome.status == 0, outcome.err
    assert [row["a.u"] for row in rows(tmp_path / "r.csv")] == [0.25, 0.25, 0.25]


def test_a_second_name_of_a_fed_input_takes_no_column(run: Run, tmp_path: Path) -> None:
    def alias(text: str) -> str:
        return text.replace(
            'start="0" description="Input" />', 'start="0"><Alias name="w"/></Float64>'
        )

    changed(reference("fmi3/Dahlquist.fmu"), tmp_path / "a.fmu", description=alias)
    path = write(
        tmp_path,
        elements(component("a"), component("b"))
        + '<ssd:Connections><ssd:Connection startElement="a" startConnector="x" endElement="b" endConnector="u"/>'
        "</ssd:Connections>",
    )
    (tmp_path / "i.csv").write_text("time,b.w\n0,250\n1,250\n", encoding="utf-8")
    options = ["--stop-time", 1, "--step-size", 0.5]
    error = run("simulate", path, *options, "--input-file", tmp_path / "i.csv").error
    assert "'b.u' and 'b.w' are two names of one input" in error


def test_findings_of_the_schema_are_in_plan_info_and_validate(run: Run, tmp_path: Path) -> None:
    dahlquist(tmp_path, "a")
    path = write(tmp_path, elements(component("a", "<ssd:Ports/>")))
    said = "line 4: Element 'Ports': This element is not expected"
    assert said in run("plan", path, "--stop-time", 1).out
    assert said in run("info", path).out
    assert said in json.loads(run("info", path, "--json").out)["warnings"][0]
    validated = run("validate", path)
    assert said in validated.out
    assert validated.status == 0
