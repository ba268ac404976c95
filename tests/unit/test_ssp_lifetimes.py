"""Lifetimes of components and connections in SSP files: an annotation."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import command, reference
from ssd_text import annotated, component, elements, read, ssd

from fmimaster.base.errors import DescriptionError, FileError, InputError
from fmimaster.system.clocks import ALWAYS, Lifetime
from fmimaster.system.ssp_annotations import LIFETIMES

FUNCTION = "fmi3/LoopFunction.fmu"
WIRES = """<ssd:Connections>
<ssd:Connection startElement="a" startConnector="y" endElement="c" endConnector="u"/>
<ssd:Connection startElement="b" startConnector="y" endElement="c" endConnector="u"/>
</ssd:Connections>"""
A_TO_C = 'startElement="a" startConnector="y" endElement="c" endConnector="u"'


def system(inside: str) -> str:
    parts = [component(name, source=str(reference(FUNCTION))) for name in "abc"]
    text = f'<Lifetimes xmlns="{LIFETIMES.namespace}" version="1.0">{inside}</Lifetimes>'
    note = f'<ssc:Annotation type="{LIFETIMES.type}">{text}</ssc:Annotation>'
    return ssd(elements(*parts) + WIRES + annotated(note))


def test_lifetimes_of_components_and_connections(tmp_path: Path) -> None:
    inside = f'<Component name="b" fromTime="1/3"/><Connection {A_TO_C} untilEvent="bang"/>'
    found = read(tmp_path, system(inside))
    lives = {c.name: c.lifetime for c in found.system.components}
    assert lives == {"a": ALWAYS, "b": Lifetime("1/3"), "c": ALWAYS}
    assert [c.lifetime for c in found.system.connections] == [
        Lifetime(until_event="bang"),
        ALWAYS,
    ]
    assert not any("nnotation" in note for note in found.notes)


@pytest.mark.parametrize(
    ("inside", "error", "message"),
    [
        ('<Component name="d"/>', DescriptionError, "line 7: there is no component 'd'"),
        ('<Component name="a"/>' * 2, DescriptionError, "or it has a lifetime already"),
        (
            f"<Connection {A_TO_C.replace('u', 'q')}/>",
            DescriptionError,
            "no connection 'a.y -> c.q'",
        ),
        ('<Component name="a" fromTime="soon"/>', FileError, "a time in s, such as 0.1 or 1/3"),
        ('<Component name="a" fromTime="2" untilTime="1"/>', DescriptionError, "is empty"),
        ('<Component name="a" from="2"/>', FileError, "attribute 'from'"),
    ],
)
def test_annotations_with_faults(
    inside: str, error: type[InputError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        read(tmp_path, system(inside))


def test_plan_shows_each_structure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From 1 s on, b feeds c; from 2 s to 2.5 s, a does so too, which is an error. Then it is as before 2 s."""
    inside = f'<Connection {A_TO_C} fromTime="2" untilTime="2.5"/>'
    inside += '<Connection startElement="b" startConnector="y" endElement="c" endConnector="u" fromTime="1"/>'
    (tmp_path / "s.ssd").write_text(system(inside), encoding="utf-8")
    page = command(capfd, "plan", tmp_path / "s.ssd", "--stop-time", "3").out
    first, second, third = page.split("Structure from ")
    assert "c.u  <-" not in first
    assert second.startswith("1 s\n")
    assert "c.u  <-  b.y" in second
    assert third.startswith("2 s\n  cannot be simulated: ")


def test_the_command_line_runs_such_a_system(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inside = f'<Connection {A_TO_C} untilTime="1"/>'
    inside += '<Connection startElement="b" startConnector="y" endElement="c" endConnector="u" fromTime="1"/>'
    (tmp_path / "s.ssd").write_text(system(inside), encoding="utf-8")
    given = ["--start-value", "a.c0=3", "--start-value", "b.c0=4", "--output-variable", "c.y"]
    times = ["--stop-time", "2", "--step-size", "1", "--output-file", "-"]
    rows = command(capfd, "simulate", tmp_path / "s.ssd", *given, *times).out.split()
    assert [line for line in rows if line[0].isdigit()] == [
        "0.0,3.0",
        "1.0,3.0",
        "1.0,4.0",
        "2.0,4.0",
    ]
