"""Clocks, priorities and elements of semantic adaptation in SSP files: connectors of SSP 2.0, annotations of SSP 1.0."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest
from command_line import reference
from ssd_text import annotated, component, elements, read, ssd

from fmimaster import DescriptionError, FileError, InputError, SystemBuilder
from fmimaster.base.errors import OptionError
from fmimaster.fmu.load import Loader
from fmimaster.plan.clocks import check_clocks
from fmimaster.system import (
    ClockInterval,
    Direction,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    UnitDelay,
    ssp_events,
)
from fmimaster.system.description import Endpoint, SystemDescription
from fmimaster.system.model import DataType
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import ResolvedSystem

KINDS = component("kinds", source=str(reference("fmi3/ClockKinds.fmu")))
LOGGER = component("logger", source=str(reference("fmi3/Logger.fmu")))
SOURCE = component("source", source=str(reference("fmi3/EventSource.fmu")))
ADDER = component("adder", source=str(reference("fmi3/EventAdder.fmu")))

WIRES = """<ssd:Connections>
<ssd:Connection startElement="source" startConnector="event" endElement="adder" endConnector="e1.tick"/>
<ssd:Connection startElement="source" startConnector="value" endElement="adder" endConnector="e1"/>
</ssd:Connections>"""


def clocks(inside: str) -> str:
    text = f'<Clocks xmlns="{ssp_events.CLOCKS.namespace}" version="1.0">{inside}</Clocks>'
    return annotated(f'<ssc:Annotation type="{ssp_events.CLOCKS.type}">{text}</ssc:Annotation>')


def adaptation(inside: str) -> str:
    text = f'<SemanticAdaptation xmlns="{ssp_events.ADAPTATION.namespace}" version="1.0">{inside}</SemanticAdaptation>'
    return annotated(f'<ssc:Annotation type="{ssp_events.ADAPTATION.type}">{text}</ssc:Annotation>')


def resolved(description: SystemDescription, **start_values: object) -> ResolvedSystem:
    with Loader() as loader:
        models = {name: loader.model(part) for name, part in description.components()}
    system = resolve(description, models, overrides=start_values)
    check_clocks(system)
    return system


def intervals(system: ResolvedSystem) -> dict[str, tuple[object, object]]:
    """Full name of an input clock → its interval and its shift."""
    return {
        f"{c.name}.{v.name}": (v.clock.interval, v.clock.shift)
        for c in system.components
        for v in c.model.variables
        if v.clock is not None and v.clock.interval is not None
    }


def notes(system: ResolvedSystem) -> list[str]:
    """All notes, except that FMUs of these tests are outside of the folder."""
    return [note for note in system.notes if "read from outside" not in note]


# SSP 2.0 --------------------------------------------------------------------------------------------------------------


def connectors(*inside: str) -> str:
    return f"<ssd:Connectors>{''.join(inside)}</ssd:Connectors>"


def clock(name: str, attributes: str = "", kind: str = "input") -> str:
    return f'<ssd:Connector name="{name}" kind="{kind}"><ssc:Clock {attributes}/></ssd:Connector>'


def test_clocks_and_clocked_connectors_are_connected(tmp_path: Path) -> None:
    value = '<ssd:Connector name="value" kind="output"><ssc:Float64/><ssd:Clock name="event"/></ssd:Connector>'
    source = component(
        "source",
        connectors(clock("event", 'intervalVariability="triggered"', "output"), value),
        str(reference("fmi3/EventSource.fmu")),
    )
    system = resolved(read(tmp_path, ssd(elements(source, ADDER) + WIRES, version="2.0")))
    assert [(k.output.name, k.input.name) for k in system.links] == [
        ("event", "e1.tick"),
        ("value", "e1"),
    ]
    assert notes(system) == []


def test_clocks_go_through_connectors_of_nested_systems(tmp_path: Path) -> None:
    inner = (
        '<ssd:System name="inner">'
        + connectors(
            clock("go"), '<ssd:Connector name="v" kind="input"><ssc:Float64/></ssd:Connector>'
        )
        + elements(ADDER)
        + '<ssd:Connections><ssd:Connection startConnector="go" endElement="adder" endConnector="e1.tick"/>'
        '<ssd:Connection startConnector="v" endElement="adder" endConnector="e1"/></ssd:Connections></ssd:System>'
    )
    wires = WIRES.replace('"adder"', '"inner"').replace("e1.tick", "go").replace('"e1"', '"v"')
    system = resolved(read(tmp_path, ssd(elements(SOURCE, inner) + wires, version="2.0")))
    assert [(k.output.name, k.input.name) for k in system.links] == [
        ("event", "e1.tick"),
        ("value", "e1"),
    ]


ROOT = (
    connectors(clock("tick", 'intervalCounter="1" resolution="3" shiftDecimal="0.5"'))
    + elements(KINDS, LOGGER)
    + """<ssd:Connections>
<ssd:Connection startConnector="tick" endElement="kinds" endConnector="triggered"/>
<ssd:Connection startConnector="tick" endElement="logger" endConnector="write"/>
</ssd:Connections>"""
)
"""A connector of the root system that schedules two clocks."""


def test_the_interval_of_a_root_connector_is_that_of_all_clocks_that_it_feeds(
    tmp_path: Path,
) -> None:
    found = intervals(resolved(read(tmp_path, ssd(ROOT, version="2.0"))))
    expected = (Fraction(1, 3), Fraction(1, 2))
    assert (found["kinds.triggered"], found["logger.write"]) == (expected, expected)


def test_a_start_value_overrides_it(tmp_path: Path) -> None:
    description = read(tmp_path, ssd(ROOT, version="2.0"))
    found = intervals(resolved(description, tick=0.2, **{"logger.write": 0.3}))
    assert found["kinds.triggered"] == (Fraction(1, 5), 0)
    assert found["logger.write"] == (Fraction(3, 10), 0)


def test_the_interval_of_a_connector_schedules_a_clock_of_its_component(tmp_path: Path) -> None:
    inside = connectors(
        clock("triggered", 'intervalDecimal="0.1"'), clock("fixed", 'intervalDecimal="0.5"')
    )
    kinds = component("kinds", inside, str(reference("fmi3/ClockKinds.fmu")))
    system = resolved(read(tmp_path, ssd(elements(kinds), version="2.0")))
    assert intervals(system)["kinds.triggered"] == (Fraction(1, 10), 0)
    assert intervals(system)["kinds.fixed"] == (Fraction(1, 2), Fraction(1, 20))
    assert notes(system) == []


def test_another_interval_than_that_of_the_fmu_is_noted(tmp_path: Path) -> None:
    inside = connectors(
        clock("constant", 'intervalDecimal="0.2"'), clock("changing", 'intervalDecimal="1"')
    )
    kinds = component("kinds", inside, str(reference("fmi3/ClockKinds.fmu")))
    system = resolved(read(tmp_path, ssd(elements(kinds), version="2.0")))
    assert intervals(system)["kinds.constant"] == (Fraction(1, 10), 0)
    [note] = notes(system)
    assert "declared with another interval than in the FMU, whose declaration is used" in note
    assert "'kinds.constant' (every 1/5 s; the FMU: constant 1/10 s)" in note
    assert "'kinds.changing' (every 1 s; the FMU: changing)" in note


def test_other_clocks_of_a_connector_are_noted(tmp_path: Path) -> None:
    value = '<ssd:Connector name="value" kind="output"><ssc:Float64/><ssd:Clock name="due"/></ssd:Connector>'
    source = component("source", connectors(value), str(reference("fmi3/EventSource.fmu")))
    [note] = notes(resolved(read(tmp_path, ssd(elements(source), version="2.0"))))
    assert "another clock than in the FMU" in note
    assert "'source.value' (due; the FMU: event)" in note


@pytest.mark.parametrize("attributes", ['intervalDecimal="0"', 'intervalDecimal="-0.1"'])
def test_the_interval_of_a_connector_is_above_0(tmp_path: Path, attributes: str) -> None:
    with pytest.raises(DescriptionError, match=r"line 4: The interval of a clock is .* above 0"):
        read(tmp_path, ssd(connectors(clock("tick", attributes)) + elements(KINDS), version="2.0"))


# SSP 1.0 --------------------------------------------------------------------------------------------------------------


def test_an_annotation_has_priorities_intervals_and_connections(tmp_path: Path) -> None:
    inside = """
<Priority component="kinds" value="2"/><Priority component="logger" value="-1"/>
<Interval component="kinds" clock="triggered" interval="1/3" shift="0.5"/>
<Interval component="kinds" clock="fixed" interval="0.1"/>
<Connection startElement="kinds" startConnector="constant" endElement="logger" endConnector="write"/>"""
    system = resolved(read(tmp_path, ssd(elements(KINDS, LOGGER) + clocks(inside))))
    assert [c.priority for c in system.components] == [2, -1]
    assert intervals(system)["kinds.triggered"] == (Fraction(1, 3), Fraction(1, 2))
    assert intervals(system)["kinds.fixed"] == (Fraction(1, 10), Fraction(1, 20))
    assert [(k.output.name, k.input.name) for k in system.links] == [("constant", "write")]
    assert notes(system) == []


def test_an_interval_without_component_belongs_to_a_connector_of_the_system(tmp_path: Path) -> None:
    inside = """<Interval clock="tick" interval="0.25"/>
<Connection startConnector="tick" endElement="logger" endConnector="write"/>
<Connection startConnector="tick" endElement="kinds" endConnector="triggered"/>"""
    system = resolved(read(tmp_path, ssd(elements(KINDS, LOGGER) + clocks(inside))))
    assert intervals(system)["logger.write"] == (Fraction(1, 4), 0)
    assert intervals(system)["kinds.triggered"] == (Fraction(1, 4), 0)


def test_priorities_of_components_in_nested_systems(tmp_path: Path) -> None:
    priority = clocks('<Priority component="logger" value="7"/>')
    inner = f'<ssd:System name="inner">{elements(LOGGER)}{priority}</ssd:System>'
    description = read(tmp_path, ssd(elements(KINDS, inner)))
    assert {name: c.priority for name, c in description.components()} == {
        "kinds": None,
        "inner.logger": 7,
    }


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        (
            '<Priority component="log" value="1"/>',
            r"line 4: there is no component 'log' .*'logger'",
        ),
        ('<Priority component="logger" value="1.5"/>', "expected a whole number"),
        (
            '<Priority component="logger" value="1"/><Priority component="logger" value="2"/>',
            "two priorities",
        ),
        (
            '<Interval component="logger" clock="write" interval="0"/>',
            "expected a time above 0 in s",
        ),
        (
            '<Interval component="logger" clock="write" interval="1/0"/>',
            "expected a time above 0 in s",
        ),
        (
            '<Interval component="logger" clock="write" interval="1" shift="-1"/>',
            "expected a time in s, 0 or more",
        ),
        (
            '<Interval component="logger" clock="right" interval="1"/>',
            r"no variable 'right'.*'write'",
        ),
        ('<Interval component="logger" clock="u" interval="1"/>', "is not a value of type Float64"),
        ('<Interval clock="nothing" interval="1"/>', "'nothing' is neither"),
        (
            '<Interval component="kinds" clock="constant" interval="1"/>',
            "the FMU decides when the clock",
        ),
        (
            '<Connection startElement="k" startConnector="x" endElement="logger" endConnector="write"/>',
            "no element 'k'",
        ),
        ('<Period component="logger"/>', "element Period is not known"),
    ],
)
def test_a_wrong_annotation_of_clocks_is_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises((FileError, DescriptionError), match=message):
        resolved(read(tmp_path, ssd(elements(KINDS, LOGGER) + clocks(inside))))


ELEMENTS = """<SampleAndHold name="hold" period="1/10" shift="0.05" start="2"/>
<SampleAndHold name="held" clocked="true" type="Int32"/>
<UnitDelay name="delay" period="0.25"/>
<UnitDelay name="next" microstep="true" type="Boolean" start="true"/>
<LevelCrossing name="hot" level="21" direction="rising"/>
<EventCounter name="count"/>
<Quantizer name="steps" step="0.1" hysteresis="0.01"/>
<Connection startElement="hot" startConnector="tick" endElement="count" endConnector="clock"/>
<Connection startElement="hold" startConnector="y" endElement="hot" endConnector="u" factor="2" offset="-1"/>"""
LINES = ELEMENTS.split("\n")
SWAPPED = "\n".join([*LINES[:2], *LINES[4:7], *LINES[2:4], *LINES[7:]])
"""In the order of the schema."""


def test_an_annotation_has_elements_of_semantic_adaptation(tmp_path: Path) -> None:
    system = resolved(read(tmp_path, ssd(elements(LOGGER) + adaptation(SWAPPED))))
    description = read(tmp_path, ssd(elements(LOGGER) + adaptation(SWAPPED)))
    found = {name: c.adaptation for name, c in description.components() if c.adaptation is not None}
    assert found == {
        "hold": SampleAndHold(period="1/10", shift=0.05, start=2),
        "held": SampleAndHold(clocked=True, type=DataType.INT32),
        "delay": UnitDelay(period=0.25),
        "next": UnitDelay(microstep=True, type=DataType.BOOLEAN, start=True),
        "hot": LevelCrossing(21, Direction.RISING),
        "count": EventCounter(),
        "steps": Quantizer(0.1, 0.01),
    }
    links = [(k.output.name, k.input.name, k.transformation.factor) for k in system.links]
    assert sorted(links) == [("tick", "clock", 1.0), ("y", "u", 2.0)]


def test_ordinary_connections_may_lead_to_them(tmp_path: Path) -> None:
    wires = (
        '<ssd:Connections><ssd:Connection startElement="hold" startConnector="y" endElement="logger" endConnector="u"/>'
        "</ssd:Connections>"
    )
    hold = adaptation('<SampleAndHold name="hold" period="1"/>')
    system = resolved(read(tmp_path, ssd(elements(LOGGER) + wires + hold)))
    assert [str(Endpoint("hold", k.output.name)) for k in system.links] == ["hold.y"]


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<SampleAndHold name="logger" period="1"/>', "several elements with the name 'logger'"),
        ('<SampleAndHold name="h" period="0"/>', "expected a time above 0 in s"),
        ('<SampleAndHold name="h" shift="1"/>', "without a period"),
        ('<SampleAndHold name="h" type="String"/>', "attribute 'type'"),
        ('<SampleAndHold name="h" type="Int32" start="1.5"/>', "expected a value of type Int32"),
        ('<UnitDelay name="d" period="1" microstep="true"/>', "has no period"),
        ('<LevelCrossing name="l"/>', "attribute 'level' of LevelCrossing 'l' is missing"),
        (
            '<LevelCrossing name="l" level="1" direction="up"/>',
            "expected rising or falling or both",
        ),
        ('<Quantizer name="q" step="0"/>', "step=0.0, expected a number above 0"),
        ('<Quantizer name="q" step="1" hysteresis="-1"/>', "expected 0 or more"),
        (
            '<EventCounter name="c"/>'
            '<Connection startElement="x" startConnector="y" endElement="c" endConnector="clock"/>',
            "no element 'x'",
        ),
        ('<Counter name="c"/>', "Counter is not known.* Did you mean 'EventCounter'"),
    ],
)
def test_a_wrong_element_is_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolved(read(tmp_path, ssd(elements(LOGGER) + adaptation(inside))))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SampleAndHold(period=-1), "interval of a clock is -1"),
        (lambda: SampleAndHold(start="x"), "expected a value of type Float64"),
        (lambda: SampleAndHold(type=DataType.STRING), "expected a numeric DataType"),
        (lambda: LevelCrossing(float("nan")), "level=nan, expected a finite number"),
        (lambda: LevelCrossing(1, cast("Direction", "rising")), r"expected Direction\.RISING"),
        (lambda: Quantizer(True), "step=True, expected a number"),
    ],
)
def test_a_wrong_element_is_refused_in_python(make: Callable[[], object], message: str) -> None:
    with pytest.raises((DescriptionError, OptionError), match=message):
        make()


def test_elements_have_priorities(tmp_path: Path) -> None:
    system = SystemBuilder()
    system.add("count", EventCounter(), priority=4)
    assert dict(system.build().components())["count"].priority == 4
    inside = clocks('<Priority component="count" value="4"/>') + ""
    both = adaptation('<EventCounter name="count"/>').removesuffix("</ssd:Annotations>")
    both += inside.removeprefix("<ssd:Annotations>")
    description = read(tmp_path, ssd(elements(LOGGER) + both))
    assert dict(description.components())["count"].priority == 4
    assert ClockInterval(0.1) == ClockInterval("1/10")
