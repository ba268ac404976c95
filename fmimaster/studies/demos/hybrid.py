"""Discrete-event units: the traffic light and the police officer.

A trace has what happens at which superdense time (t, n). Event iteration n at a time stands in row n + 1 of this time;
row 0 is the left limit.

Source: Gomes et al. (2017), Co-simulation: state of the art, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import SystemDescription

COLOURS = ("off", "red", "yellow", "green")
"""Of the traffic light, by their numbers."""
MODES = ("idle", "working")
"""Of the police officer."""
MESSAGES = ("toIdle", "toWork")
LIGHT, POLICE = "light", "police"


def _fmu(model: str) -> Path:
    return reference_path(f"fmi3/{model}.fmu")


# Traffic light and police officer -------------------------------------------------------------------------------------


def traffic(idle: int = 100, working: int = 200, first: str = LIGHT) -> SystemDescription:
    """The officer switches the light off at work; both are units of DEVS.

    Parameters
    ----------
    idle, working
        In s: how long the officer is in each mode.
    first
        The unit that ticks first if both are to tick at one superdense time.
    """
    builder = SystemBuilder("traffic")
    builder.add(LIGHT, _fmu("TrafficLight"), priority=int(first != LIGHT))
    officer = {"idle": idle, "working": working}
    builder.add(POLICE, _fmu("PoliceOfficer"), officer, priority=int(first != POLICE))
    builder.connect("police.toWork", "light.toOff")
    builder.connect("police.toIdle", "light.toAuto")
    return builder.build()


@dataclass(frozen=True, slots=True)
class Transition:
    """What happens in one event iteration: the unit that ticks, its output, and the states after it."""

    time: float
    """In s."""
    iteration: int
    imminent: str
    output: str
    external: str
    """The input of the light, if the officer ticks."""
    light: str
    police: str


def transitions(results: Results) -> list[Transition]:
    """The trace of the traffic light and the officer."""
    found = []
    lights, messages = (np.ma.asarray(results[n]) for n in ("light.next", "police.message"))
    for k, (time, row) in enumerate(zip(results.time, results.index, strict=True)):
        states = COLOURS[int(results["light.colour"][k])], MODES[int(results["police.mode"][k])]
        if lights[k] is not np.ma.masked:
            output = COLOURS[int(lights[k])]
            found.append(Transition(float(time), int(row) - 1, LIGHT, output, "", *states))
        if messages[k] is not np.ma.masked:
            output = MESSAGES[int(messages[k])]
            external = "light<-" + {"toWork": "toOff", "toIdle": "toAuto"}[output]
            found.append(Transition(float(time), int(row) - 1, POLICE, output, external, *states))
    return found


def run_traffic() -> list[tuple[str, Results]]:
    """What is shown, with titles: the survey's times; and an officer who begins to work when the light turns yellow."""

    def run(stop_time: float, **parameters: Any) -> Results:
        return Simulation(traffic(**parameters), stop_time=stop_time, step_size=50).run()

    return [
        ("Idle for 100 s, at work for 200 s", run(1000.0)),
        ("Idle for 110 s: the light is first", run(700.0, idle=110)),
        ("Idle for 110 s: the officer is first", run(700.0, idle=110, first=POLICE)),
    ]


HEADER = ("t in s", "n", "imminent", "output", "external", "light", "police")


def table(results: Results) -> list[tuple[str, ...]]:
    """The trace, with the header."""
    rows = [
        (f"{t.time:g}", str(t.iteration), t.imminent, t.output, t.external, t.light, t.police)
        for t in transitions(results)
    ]
    return [HEADER, *rows]
