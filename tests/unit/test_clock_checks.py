"""Clocks and clocked variables that cannot work are refused before the run: who drives a clock, and which clocks tick
together."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command_line import changed, reference

from fmimaster import DescriptionError, OptionError, Simulation, SystemBuilder
from fmimaster.fmu.load import Loader
from fmimaster.plan.clocks import Clock, Rhythm, check_clocks
from fmimaster.plan.links import is_held
from fmimaster.plan.plan import Plan
from fmimaster.system import ClockInterval, SampleAndHold
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import Link

UNITS = ("EventSource", "EventAdder", "EventDelay", "Sampler", "Logger", "ClockKinds")


@pytest.fixture
def system() -> SystemBuilder:
    """One of each unit with events, not connected: ``source``, ``adder``, ``delay``, ``sampler``, ``logger``, ``kinds``."""
    built = SystemBuilder()
    for unit in UNITS:
        built.add(
            unit.removeprefix("Event").removeprefix("Clock").lower(), reference(f"fmi3/{unit}.fmu")
        )
    return built


def checked(system: SystemBuilder) -> tuple[Link, ...]:
    """The links of a system whose clocks were checked."""
    description = system.build()
    with Loader() as loader:
        models = {name: loader.model(component) for name, component in description.components()}
    resolved = resolve(description, models)
    check_clocks(resolved)
    return resolved.links


def refused(system: SystemBuilder, match: str) -> None:
    with pytest.raises(DescriptionError, match=match):
        checked(system)


def test_events_are_connected_with_their_clocks(system: SystemBuilder) -> None:
    system.connect("source.event", "adder.e1.tick")
    system.connect("source.value", "adder.e1")
    system.connect("adder.s.tick", "delay.in.tick")
    system.connect("adder.s", "delay.in")
    assert len(checked(system)) == 4


def test_a_clock_has_one_driver(system: SystemBuilder) -> None:
    system.connect("source.event", "adder.e1.tick")
    system.connect("delay.out.tick", "adder.e1.tick")
    refused(system, r"'adder\.e1\.tick' is already fed by .* one source only")


@pytest.mark.parametrize("kind", ["constant", "fixed", "tunable", "changing", "countdown"])
def test_a_time_based_clock_takes_no_connection(system: SystemBuilder, kind: str) -> None:
    system.connect("source.event", f"kinds.{kind}")
    refused(system, rf"'kinds\.{kind}' ticks by time \(intervalVariability={kind}\)")


def test_a_clock_with_an_interval_takes_no_connection(system: SystemBuilder) -> None:
    system.connect("source.event", "logger.write")
    system.set("logger.write", 0.1)
    refused(system, r"'logger\.write' has a start value too, so it ticks every 1/10 s")


def test_a_time_based_clock_can_drive_a_triggered_one(system: SystemBuilder) -> None:
    system.connect("kinds.constant", "logger.write")
    [link] = checked(system)
    assert (link.output.name, link.input.name) == ("constant", "write")


def test_a_clock_is_connected_to_a_clock_only(system: SystemBuilder) -> None:
    system.connect("source.event", "sampler.u")
    refused(system, "Clock to Float64 cannot be converted")


def test_a_value_does_not_drive_a_clock(system: SystemBuilder) -> None:
    system.connect("source.done", "logger.write")
    refused(system, "Int32 to Clock cannot be converted")


def test_an_input_that_always_has_a_value_holds_an_event_signal(system: SystemBuilder) -> None:
    system.connect("source.value", "sampler.u")
    [link] = checked(system)
    assert is_held(link)


def test_the_clock_of_a_held_event_signal_must_tick(system: SystemBuilder) -> None:
    system.connect("kinds.triggered.tick", "sampler.u")
    refused(
        system, r"'kinds\.triggered\.tick' has a value only .* nothing makes 'triggered' active"
    )


def test_it_can_be_held_in_between(system: SystemBuilder) -> None:
    system.add("hold", SampleAndHold(clocked=True))
    system.connect("source.event", "hold.clock")
    system.connect("source.value", "hold.u")
    system.connect("hold.y", "sampler.u")
    assert len(checked(system)) == 3


def test_the_clock_of_a_connected_event_signal_must_tick(system: SystemBuilder) -> None:
    system.connect("source.value", "adder.e1")
    refused(
        system,
        r"'adder\.e1' has a value only while its clock ticks, and nothing makes 'e1\.tick' active",
    )


def test_the_clock_of_its_source_must_tick(system: SystemBuilder) -> None:
    system.connect("kinds.triggered.tick", "adder.e1")
    system.connect("source.event", "adder.e1.tick")
    refused(
        system, r"'kinds\.triggered\.tick' has a value only .* nothing makes 'triggered' active"
    )


def test_a_connection_over_different_clocks_is_warned_of(system: SystemBuilder) -> None:
    """Events of two units may happen at one instant, as a tick of a periodic clock and an event (SD8)."""
    system.connect("delay.out.tick", "adder.e1.tick")
    system.connect("source.value", "adder.e1")
    [warning] = Simulation(system, stop_time=1, step_size=0.1).prepare().plan.warnings
    assert (
        "'source.value -> adder.e1' passes a value only at instants at which both clocks happen"
        in warning
    )
    assert (
        "'source.value' has a value while 'event' ticks, 'adder.e1' takes one while 'e1.tick' ticks"
        in warning
    )


def test_clocks_with_one_driver_tick_together(system: SystemBuilder) -> None:
    """The clock of the logger is driven by the event of the source, as the clock of the adder, whose output it logs."""
    system.add("kinds2", reference("fmi3/ClockKinds.fmu"))
    system.connect("source.event", "kinds.triggered")
    system.connect("source.event", "adder.e1.tick")
    system.connect("kinds.triggered.tick", "adder.e1")
    assert len(checked(system)) == 3


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (ClockInterval("1/10"), ClockInterval("1/3"), True),
        (ClockInterval("1/10"), ClockInterval("1/5", shift="1/10"), True),
        (ClockInterval("1/5"), ClockInterval("1/5", shift="1/10"), False),
        (ClockInterval("1/10"), ClockInterval("1/15", shift="1/60"), False),
    ],
)
def test_periodic_clocks_may_meet(
    system: SystemBuilder, first: ClockInterval, second: ClockInterval, together: bool
) -> None:
    system.set("kinds.triggered", first)
    system.set("adder.e1.tick", second)
    system.connect("kinds.triggered.tick", "adder.e1")
    if together:
        assert len(checked(system)) == 1
    else:
        refused(system, "never tick together")


@pytest.mark.parametrize("a", [Fraction(1, 4), Fraction(2, 3), Fraction(3)])
@pytest.mark.parametrize("b", [Fraction(1, 6), Fraction(1, 2), Fraction(4)])
@pytest.mark.parametrize("shift", [Fraction(0), Fraction(1, 12), Fraction(5, 6), Fraction(1)])
def test_periodic_clocks_meet_if_and_only_if_their_ticks_do(
    a: Fraction, b: Fraction, shift: Fraction
) -> None:
    first = Rhythm(Clock(0, "a"), False, True, a)
    second = Rhythm(Clock(1, "b"), False, True, b, shift)
    ticks = {k * a for k in range(1000)} & {shift + k * b for k in range(1000)}
    assert first.meets(second) == second.meets(first) == bool(ticks)


def _without_interval(text: str) -> str:
    return text.replace(
        'intervalVariability="constant" intervalDecimal="0.1"', 'intervalVariability="constant"'
    )


def _not_above_0(text: str) -> str:
    return text.replace('intervalDecimal="0.1"', 'intervalDecimal="0.0"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_interval, r"'a\.constant' is constant .* declares no interval"),
        (_not_above_0, "interval that is not above 0 s"),
    ],
)
def test_a_constant_clock_has_an_interval_above_0(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    path = changed(reference("fmi3/ClockKinds.fmu"), tmp_path / "a.fmu", description=change)
    with pytest.raises(Exception, match=message) as caught:
        Simulation(path, stop_time=1).prepare()
    assert type(caught.value).__name__ in ("DescriptionError", "ModelError", "FileError")


# What is recorded -----------------------------------------------------------------------------------------------------


def kinds(*outputs: str, **settings: Any) -> Plan:
    path = reference("fmi3/ClockKinds.fmu")
    return (
        Simulation(path, stop_time=1, step_size=0.1, output_variables=outputs, **settings)
        .prepare()
        .plan
    )


def test_what_never_has_a_value_is_not_recorded_and_noted() -> None:
    plan = kinds()
    assert "constant.tick" in [c.name for c in plan.recorded]
    assert "triggered.tick" not in [c.name for c in plan.recorded]
    [note] = [note for note in plan.notes if "not recorded" in note]
    assert "nothing makes their clocks active: 'triggered.tick' ('triggered')" in note


def test_what_never_has_a_value_cannot_be_recorded_by_its_name() -> None:
    for name in "triggered.tick", "triggered":
        with pytest.raises(
            OptionError, match=rf"'{name}' has no value, because nothing makes 'triggered' active"
        ):
            kinds(name)


def test_with_an_interval_it_can() -> None:
    plan = kinds("triggered.tick", start_values={"triggered": 0.1})
    assert [c.name for c in plan.recorded] == ["triggered.tick"]
