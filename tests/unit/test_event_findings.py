"""What validate and info say of events: those of an FMU, and those that a system shares."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome, command
from event_fmus import ATTRIBUTES, EVENTS, EXTRA, event_fmu, event_system, manifest

from fmimaster.front.validation import Finding, Severity, validate
from fmimaster.system.description import SharedEvent
from fmimaster.system.ssp_events import write_shared_events

COLLISION = SharedEvent("collision", (("upper", "collision"), ("lower", "collision")))
Run = Callable[..., Outcome]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: command(capfd, *arguments)


# Validation -----------------------------------------------------------------------------------------------------------


def about_events(findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.what.startswith(("Event", "Shared event"))]


def test_a_system_that_links_its_events_has_no_finding(tmp_path: Path) -> None:
    path = event_system(tmp_path, write_shared_events([COLLISION]))
    assert about_events(validate(path)) == []


def test_a_shared_event_that_is_not_linked_is_a_warning_with_the_line_to_add(
    tmp_path: Path,
) -> None:
    path = event_system(tmp_path)
    [finding] = about_events(validate(path))
    assert (finding.severity, finding.place) == (
        Severity.WARNING,
        "upper.collision, lower.collision",
    )
    assert "is shared, but the system does not declare its members" in finding.what
    assert 'system.share_event("collision", "upper.collision", "lower.collision")' in finding.advice
    line = re.search(r"<ssc:Annotation.*</ssc:Annotation>", finding.advice)
    assert line is not None
    assert about_events(validate(event_system(tmp_path, line[0]))) == []


def test_a_shared_event_without_any_partner_is_a_warning_too(tmp_path: Path) -> None:
    [finding] = about_events(validate(event_system(tmp_path, components="upper")))
    assert finding.place == "upper.collision"
    assert 'system.share_event("collision", "upper.collision", "other.event")' in finding.advice


def test_a_shared_event_without_trigger_is_noted(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", EVENTS.replace(' trigger="collision.in"', ""))
    [finding] = about_events(validate(path))
    assert finding.severity is Severity.NOTE
    assert "Event 'collision' is shared and has no trigger" in finding.what
    assert "Algorithms with an event clock refuse it" in finding.advice


def test_each_problem_of_a_manifest_is_a_warning(tmp_path: Path) -> None:
    inside = EVENTS.replace("lookahead.next", "next").replace("collision.w", "collision.ww")
    findings = validate(event_fmu(tmp_path / "a.fmu", inside))
    first, second = [f for f in findings if "fmi-ls-manifest.xml, line" in f.what]
    assert first.severity is second.severity is Severity.WARNING
    assert (
        "input='collision.ww' is not a variable of the FMU. Did you mean 'collision.w'"
        in first.what
    )
    assert (
        "LookAhead: next='next' is not a variable of the FMU. Did you mean 'lookahead"
        in second.what
    )
    assert "runs without the layered standard 'org.fmimaster.fmi-ls-events'" in first.advice


def test_notes_of_a_manifest_are_warnings_told_once(tmp_path: Path) -> None:
    later = manifest(EVENTS + "<Unheard/>", ATTRIBUTES.replace("0.2.0", "0.4.0"))
    event_fmu(tmp_path / "a.fmu", members={EXTRA: later})
    findings = validate(event_system(tmp_path, write_shared_events([COLLISION])))
    [finding] = [f for f in findings if "element Unheard is not known" in f.what]
    assert (finding.severity, finding.place) == (Severity.WARNING, "a.fmu")


def test_every_wrong_shared_event_is_told(tmp_path: Path) -> None:
    wrong = [
        SharedEvent("one", (("upper", "colision"), ("lower", "collision"))),
        SharedEvent("two", (("upper", "ceiling"), ("lower", "collision"))),
    ]
    findings = validate(event_system(tmp_path, write_shared_events([*wrong, COLLISION])))
    errors = [f.what for f in about_events(findings) if f.severity is Severity.ERROR]
    assert [e.partition(":")[0] for e in errors] == ["Shared event 'one'", "Shared event 'two'"]


# Info -----------------------------------------------------------------------------------------------------------------


def test_info_shows_the_events_of_an_fmu(run: Run, tmp_path: Path) -> None:
    page = run("info", event_fmu(tmp_path / "a.fmu")).out
    lines = [" ".join(line.split()) for line in page.splitlines()]
    for expected in (
        "ceiling private when ceiling.z[1] <= 0",
        "collision shared when collision.z[1] <= 0, derivative collision.dz[1]",
        "and collision.z[2] <= 0, derivative collision.dz[2]",
        "announces collision.out",
        "triggered by collision.in",
        "sends v",
        "receives collision.w",
        "eventPolicy execute 0, announce 1, ignore 2",
        "lookahead.next",
        "u_x u_poly[0] ... u_poly[2], derivative to u_v if inputOrder = 5",
    ):
        assert expected in lines


def test_the_events_of_an_fmu_in_json_are_stable(run: Run, tmp_path: Path) -> None:
    facts = json.loads(run("info", event_fmu(tmp_path / "a.fmu"), "--json").out)
    assert facts["events"][1] == {
        "name": "collision",
        "scope": "shared",
        "indicators": [
            {"name": "collision.z[1]", "derivative": "collision.dz[1]", "tolerance": None},
            {"name": "collision.z[2]", "derivative": "collision.dz[2]", "tolerance": None},
        ],
        "announce": "collision.out",
        "trigger": "collision.in",
        "payload": [{"output": "v", "input": "collision.w", "member": None}],
        "rightLimitsWithoutStep": True,
        "active": None,
        "contact": None,
    }
    assert facts["eventPolicy"] == {
        "parameter": "eventPolicy",
        "execute": 0,
        "announce": 1,
        "ignore": 2,
    }
    assert facts["lookAhead"] == "lookahead.next"
    assert facts["inputPolynomials"] == [
        {
            "input": "u_x",
            "coefficients": ["u_poly[0]", "u_poly[1]", "u_poly[2]"],
            "derivative": "u_v",
            "parameter": "inputOrder",
            "value": 5,
        }
    ]


def test_info_shows_the_shared_events_of_a_system(run: Run, tmp_path: Path) -> None:
    path = event_system(tmp_path, write_shared_events([COLLISION]))
    assert re.search(
        r"\nShared events\n  collision  upper.collision, lower.collision\n", run("info", path).out
    )
    assert json.loads(run("info", path, "--json").out)["sharedEvents"] == [
        {
            "name": "collision",
            "members": [
                {"component": "upper", "event": "collision"},
                {"component": "lower", "event": "collision"},
            ],
        }
    ]
