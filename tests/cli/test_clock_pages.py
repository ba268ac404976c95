"""`info` and `plan` explain clocks: their kind, when they tick, what makes them active, and what they activate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, reference
from ssd_text import annotated, component, elements, ssd

from fmimaster.system import ssp_events

Run = Callable[..., Outcome]


def lines(text: str, title: str) -> list[str]:
    """The lines of a section."""
    found = re.search(rf"^{title}.*?\n(.*?)(?=^\S|\Z)", text, re.M | re.S)
    assert found is not None
    return found[1].splitlines()


def section(text: str, title: str) -> str:
    """The text of a section, with one blank between words."""
    return " ".join(" ".join(lines(text, title)).split())


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A source with a priority whose event is logged, two clocks with an interval, and two elements."""
    clocks = (
        '<Priority component="source" value="3"/>'
        '<Interval component="kinds" clock="triggered" interval="1/3" shift="0.5"/>'
        '<Connection startElement="source" startConnector="event" endElement="logger" endConnector="write"/>'
    )
    adaptation = (
        '<SampleAndHold name="hold" period="0.25"/><LevelCrossing name="high" level="2" direction="rising"/>'
        '<Connection startElement="source" startConnector="ramp" endElement="high" endConnector="u"/>'
    )
    fmus = {"source": "EventSource", "logger": "Logger", "kinds": "ClockKinds"}
    text = ssd(
        elements(*(component(n, source=str(reference(f"fmi3/{f}.fmu"))) for n, f in fmus.items()))
        + annotated(
            f'<ssc:Annotation type="{ssp_events.CLOCKS.type}"><Clocks xmlns="{ssp_events.CLOCKS.namespace}" version="1.0">'
            f"{clocks}</Clocks></ssc:Annotation>",
            f'<ssc:Annotation type="{ssp_events.ADAPTATION.type}"><SemanticAdaptation version="1.0" '
            f'xmlns="{ssp_events.ADAPTATION.namespace}">{adaptation}</SemanticAdaptation></ssc:Annotation>',
        )
    )
    path = tmp_path / "system.ssd"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [80, 100])
def test_info_explains_the_clocks_of_an_fmu(run: Run, width: int) -> None:
    out = run("info", reference("fmi3/ClockKinds.fmu"), columns=width).out
    assert all(len(line) <= width for line in lines(out, "Clocks"))
    clocks = section(out, "Clocks")
    for words in (
        "constant constant input every 0.1 s; activates constant.tick",
        "fixed fixed input every 0.25 s, first after 0.05 s; activates fixed.tick",
        "tunable tunable input at an interval that the FMU gives, and may change at events; activates tunable.tick",
        "changing changing input after an interval that the FMU gives at each tick; activates changing.tick",
        "countdown countdown input after an interval that the FMU starts at an event; activates countdown.tick",
        "arm triggered input at ticks of the clock that is connected",
    ):
        assert words in clocks


def test_info_shows_partitions_with_their_priorities(run: Run) -> None:
    clocks = section(run("info", reference("fmi3/Partitions.fmu")).out, "Clocks")
    assert "fast constant input every 1 s, priority 0; activates later, fifth" in clocks
    assert "an event, only together with fast, priority 3; activates" in clocks
    assert (
        "fifth triggered output at events of the FMU, only together with fast, request, later"
        in clocks
    )


def test_info_of_an_fmu_without_clocks_says_nothing_about_them(run: Run) -> None:
    assert "Clocks" not in run("info", reference("fmi3/Dahlquist.fmu")).out


def test_info_shows_the_priorities_of_components(run: Run, system: Path) -> None:
    assert re.search(
        r"source +EventSource +FMI 3\.0 +.*priority 3",
        section(run("info", system).out, "Components"),
    )


@pytest.mark.parametrize("width", [80, 100])
def test_plan_explains_what_makes_clocks_active(run: Run, system: Path, width: int) -> None:
    out = run("plan", system, "--stop-time", "1", columns=width).out
    assert all(len(line) <= width for line in lines(out, "Clocks"))
    clocks = section(out, "Clocks")
    for words in (
        "source.event triggered output at events of the FMU; activates value, text, data",
        "logger.write triggered input by source.event; activates text, data",
        "kinds.triggered triggered input every 1/3 s, first after 0.5 s, given by the user; activates",
        "kinds.arm triggered input nothing makes it active",
        "hold.clock constant input every 0.25 s; activates sample",
    ):
        assert words in clocks
    parts = section(out, "Components")
    assert "hold SampleAndHold semantic adaptation period 1/4 s" in parts
    assert "high LevelCrossing semantic adaptation level 2, direction rising" in parts
    assert "source EventSource FMI 3.0 no tolerance priority 3" in parts


def test_plan_names_the_event_that_makes_a_clock_active(run: Run, system: Path) -> None:
    out = run("plan", system, "--stop-time", "1", "--event-clock", "predictive").out
    assert "high.rising triggered input by the event high.rising" in section(out, "Clocks")


def test_the_json_of_a_plan_has_exact_intervals(run: Run, system: Path) -> None:
    facts = json.loads(run("plan", system, "--stop-time", "1", "--json").out)
    clocks = {c["name"]: c for c in facts["clocks"]}
    scheduled = clocks["kinds.triggered"]
    assert scheduled["exactInterval"] == "1/3"
    assert scheduled["exactShift"] == "1/2"
    assert (scheduled["intervalGiven"], scheduled["activatedBy"]) == (True, "time")
    assert clocks["logger.write"]["activatedBy"] == "connection"
    assert clocks["logger.write"]["activators"] == ["source.event"]
    assert clocks["kinds.arm"]["activatedBy"] == "nothing"
    assert clocks["source.event"]["activatedBy"] == "fmu"
    assert clocks["source.due"]["componentPriority"] == 3
