"""Clocks that the user schedules tick in FMUs: their intervals are start values, in Python and in SSP files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import reference
from ssd_text import annotated, component, elements, read, ssd

from fmimaster import Results, SystemBuilder, simulate
from fmimaster.run import Backend
from fmimaster.system import ClockInterval, ssp_events


def ticks(r: Results, name: str) -> list[float]:
    """Times at which a clocked variable has a value."""
    return [float(t) for t in r.time[~np.ma.getmaskarray(r[name])]]


def kinds(backend: Backend, **start_values: Any) -> Results:
    return simulate(
        reference("fmi3/ClockKinds.fmu"),
        stop_time=1,
        step_size=0.5,
        start_values=start_values,
        backend=backend,
    )


def test_the_importer_activates_a_triggered_clock_every_tenth_of_a_second(backend: Backend) -> None:
    r = kinds(backend, triggered=0.1)
    assert ticks(r, "triggered.tick") == [k / 10 for k in range(11)]
    assert r["triggered.count"][-1] == 11


def test_it_begins_after_its_shift(backend: Backend) -> None:
    r = kinds(backend, triggered=ClockInterval("1/3", shift="1/6"))
    assert ticks(r, "triggered.tick") == [1 / 6, 1 / 2, 5 / 6]


def test_a_fixed_clock_ticks_at_its_declared_interval(backend: Backend) -> None:
    assert ticks(kinds(backend), "fixed.tick") == [0.05, 0.3, 0.55, 0.8]


def test_or_at_the_interval_of_the_user(backend: Backend) -> None:
    """The FMU refuses a tick at another time than by the interval that it was told."""
    r = kinds(backend, fixed=ClockInterval("1/5"))
    assert ticks(r, "fixed.tick") == [0.05, 0.25, 0.45, 0.65, 0.85]
    r = kinds(backend, fixed=ClockInterval("1/5", shift="1/10"))
    assert ticks(r, "fixed.tick") == [0.1, 0.3, 0.5, 0.7, 0.9]


def test_a_connector_of_the_root_system_schedules_all_clocks_that_it_feeds(
    tmp_path: Path, backend: Backend
) -> None:
    """SSP 2.0: one interval for two components; they tick at the same instants."""
    text = (
        '<ssd:Connectors><ssd:Connector name="go" kind="input"><ssc:Clock intervalDecimal="0.25"/></ssd:Connector>'
        "</ssd:Connectors>"
        + elements(
            component("kinds", source=str(reference("fmi3/ClockKinds.fmu"))),
            component("logger", source=str(reference("fmi3/Logger.fmu"))),
        )
        + '<ssd:Connections><ssd:Connection startConnector="go" endElement="kinds" endConnector="triggered"/>'
        '<ssd:Connection startConnector="go" endElement="logger" endConnector="write"/></ssd:Connections>'
    )
    r = simulate(
        read(tmp_path, ssd(text, version="2.0")), stop_time=1, step_size=0.5, backend=backend
    )
    assert ticks(r, "kinds.triggered.tick") == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert r["logger.count"][-1] == 5


def test_a_time_based_clock_drives_a_triggered_clock_of_another_fmu(
    tmp_path: Path, backend: Backend
) -> None:
    """By the annotation for SSP 1.0, in a nested system."""
    connection = '<Connection startElement="kinds" startConnector="constant" endElement="logger" endConnector="write"/>'
    inner = elements(
        component("kinds", source=str(reference("fmi3/ClockKinds.fmu"))),
        component("logger", source=str(reference("fmi3/Logger.fmu"))),
    ) + annotated(
        f'<ssc:Annotation type="{ssp_events.CLOCKS.type}"><Clocks xmlns="{ssp_events.CLOCKS.namespace}" version="1.0">'
        f"{connection}</Clocks></ssc:Annotation>"
    )
    text = ssd(elements(f'<ssd:System name="inner">{inner}</ssd:System>'))
    r = simulate(read(tmp_path, text), stop_time=1, step_size=0.5, backend=backend)
    assert r["inner.logger.count"][-1] == r["inner.kinds.constant.count"][-1] == 11


@pytest.mark.parametrize("first", ["a", "b"])
def test_of_two_units_that_tick_at_one_instant_the_one_with_the_lower_number_is_first(
    backend: Backend, first: str
) -> None:
    """Both sample the ramp every second; they tick one after the other, in two iterations."""
    system = SystemBuilder()
    source = system.add("source", reference("fmi3/EventSource.fmu"), {"count": 0})
    for name in "a", "b":
        given = {"interval.counter": 1, "interval.resolution": 1}
        system.add(name, reference("fmi3/Sampler.fmu"), given, priority=0 if name == first else 1)
        system.connect(f"{source}.ramp", f"{name}.u")
    r = simulate(system, stop_time=2, step_size=0.5, backend=backend)
    rows = {
        name: np.flatnonzero(~np.ma.getmaskarray(r[f"{name}.y"])).tolist() for name in ("a", "b")
    }
    second = "b" if first == "a" else "a"
    assert [r.time[k] for k in rows[first]] == [0.0, 1.0, 2.0]
    assert [r.time[k] for k in rows[second]] == [0.0, 1.0, 2.0]
    assert all(a < b for a, b in zip(rows[first], rows[second], strict=True))
