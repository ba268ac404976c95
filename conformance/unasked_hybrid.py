"""The systems of ``unasked.py`` with events, with their exact solutions."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import random_kinds
from event_kinds import build as build_units
from event_kinds import executed
from hybrid_kinds import KINDS
from hybrid_writer import Variant
from random_two_mass import random_system, rewrite
from unasked_case import Case, Columns
from unasked_nets import Array, Piece, states

from fmimaster import Results, SystemBuilder, reference_path
from fmimaster.studies.demos.two_mass import Blocks, TwoMassReference, Wall

SEED = 29
"""Of the random systems; ``event_kinds.py`` has another one."""


Change = Callable[[str, bytes], bytes | None]
"""Name and content of a member of an archive → its new content, None to leave it out."""


def without_suggestion(name: str, content: bytes) -> bytes:
    """A member of an FMU or of a system that suggests no step size."""
    if name == "modelDescription.xml":
        root = ET.fromstring(content)
        for experiment in root.iterfind("DefaultExperiment"):
            experiment.attrib.pop("stepSize", None)
        return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True))
    if name == "SystemStructure.ssd":
        return re.sub(rb' stepSize="[^"]*"', b"", content)
    return content


def without_manifests(name: str, content: bytes) -> bytes | None:
    """A member of an FMU that says nothing of its events and input polynomials."""
    if name == "SystemStructure.ssd":
        content = re.sub(
            rb"<ssd:Annotations>\s*<ssc:Annotation type=\"org.fmimaster.fmi-ls-events\">.*?</ssd:Annotations>",
            b"",
            content,
            flags=re.DOTALL,
        )
    return None if name.endswith("fmi-ls-manifest.xml") else without_suggestion(name, content)


def _shipped(system: str, folder: Path, change: Change) -> Path:
    """A copy of a system of reference FMUs."""
    path = folder / f"{system}.ssp"
    rewrite(reference_path(f"systems/{system}.ssp"), path, change)
    return path


def _version(system: str) -> str:
    return {"fmi2": "2.0", "fmi3": "3.0"}.get(system.rsplit("-", 1)[1], "mixed")


# Random systems of several kinds


def _exact(case: random_kinds.Case, times: Array, _: float) -> Columns:
    """The outputs of all units. Those that are constant in each mode, as a switch of a heating, are left to the events."""
    stretches = case.exact.stretches
    pieces = [Piece(s.begin, s.regime.matrix, s.start) for s in stretches]
    names = [
        (u, y)
        for u, system in case.system.units.items()
        for y in system.outputs
        if any(set(mode.outputs.get(y, {})) - {"1"} for mode in system.modes)
    ]
    found = np.empty((len(times), len(names)))
    rows: dict[int, Array] = {}
    for k, (number, z) in enumerate(states(pieces, times)):
        if number not in rows:
            regime = stretches[number].regime
            rows[number] = np.array([regime.output(u, y) for u, y in names])
        found[k] = rows[number] @ z
    return {f"{u}.{y}": column for (u, y), column in zip(names, found.T, strict=True)}


def _counted(case: random_kinds.Case, results: Results) -> Mapping[str, int]:
    return Counter(f"{e.unit}.{e.event}" for e, _ in executed(case, results))


def _built(case: random_kinds.Case, variant: Variant, by_boolean: bool, folder: Path) -> Any:
    """The system; its FMUs suggest no step size."""
    folder = folder / "units"
    folder.mkdir()
    description = build_units(case, folder, variant, by_boolean=by_boolean)
    for path in folder.glob("*.fmu"):
        rewrite(path, path, without_suggestion)
    return description


def random_case(kind: str, number: int, text: str = "", variant: Variant | None = None) -> Case:
    """A random system of a kind; ``text`` says what its FMUs lack."""
    case = random_kinds.random_case(kind, number, SEED)
    variant = variant or Variant()
    held = case.is_held or not variant.polynomial
    by_boolean = not variant.manifest and bool(case.system.booleans)
    versions = {"fmi2": "2.0", "fmi3": "3.0", "me2": "2.0 ME", "me3": "3.0 ME"}
    return Case(
        f"{kind} {number}{text}",
        kind,
        versions.get(case.version, case.version) + ", inputs held" * held,
        partial(_built, case, replace(variant, polynomial=not held), by_boolean),
        partial(_exact, case),
        Fraction(repr(case.stop_time)),
        Fraction(repr(case.longest)) / 4,
        is_hybrid=True,
        counted=partial(_counted, case),
        due=Counter(f"{e.unit}.{e.event}" for e in case.exact.events),
    )


def random_cases() -> Iterator[Case]:
    """Systems of each kind, some of them with less in their FMUs."""
    bare = Variant(polynomial=False, manifest=False, trigger=False)
    for kind in KINDS:
        for number in range(4):
            yield random_case(kind, number)
        yield random_case(kind, 0, " without triggers", Variant(trigger=False))
    yield random_case("table", 1, " without FMU states", Variant(states=False))
    yield random_case("thermostats", 0, " without manifest", bare)
    yield random_case("thermostats", 2, " without manifest", bare)
    yield random_case("jump table", 1, " without manifest", bare)
    yield random_case("stick-slip", 0, " without manifest", bare)


# Two masses


B2 = Wall(-0.554, 0.554, 4.255, np.pi / 2), Wall(-13.823, 1.024, 3.462, 2.9)
"""Ceiling and floor of the benchmark B2."""


def _masses(exact: TwoMassReference, blocks: Blocks, times: Array, _: float) -> Columns:
    x = exact(times)
    rates = (x - blocks.rest()) @ blocks.matrix().T
    columns = dict(zip(("upper.x", "upper.v", "lower.x", "lower.v"), x.T, strict=True))
    return columns | {"upper.a": rates[:, 1], "lower.a": rates[:, 3]}


def two_mass_cases() -> Iterator[Case]:
    """Two masses that hit each other, a ceiling, and in B2 a floor; both of these move."""
    benchmarks: Mapping[str, tuple[int, tuple[Wall, ...]]] = {
        "b1": (7, ()),
        "b2": (7, B2),
        "b3": (20, ()),
    }
    all_have = [(v, "", without_suggestion) for v in ("fmi2", "fmi3", "mixed")]
    none_has = [("fmi3", " without manifest", without_manifests)]
    for name, (stop, walls) in benchmarks.items():
        exact = TwoMassReference(stop, *walls)
        for version, text, change in all_have + none_has * (name == "b3"):
            system = f"two-mass-{name}-{version}"
            yield Case(
                f"two masses {name} {version}{text}",
                "two masses",
                _version(system),
                partial(_shipped, system, change=change),
                partial(_masses, exact, Blocks()),
                Fraction(stop),
                Fraction(1, 20),
                is_hybrid=True,
            )
    for number in (2, 12):
        yield _random_masses(number)


def _random_masses(number: int) -> Case:
    """Two masses with other parameters."""
    made = random_system(number, SEED)

    def built(folder: Path) -> Any:
        versions = {"mixed": ("fmi2", "fmi3")}.get(made.version, (made.version,) * 2)
        builder = SystemBuilder("two masses")
        for name, version in zip(("Upper", "Lower"), versions, strict=True):
            path = folder / f"{name}.fmu"
            rewrite(reference_path(f"{version}/TwoMass{name}.fmu"), path, without_suggestion)
            builder.add(name.lower(), path)
        for name, value in made.start_values.items():
            builder.set(name, value)
        for one, other in (("upper", "lower"), ("lower", "upper")):
            for output in "xva":
                builder.connect(f"{one}.{output}", f"{other}.u_{output}")
        builder.share_event("collision", "upper.collision", "lower.collision")
        return builder.build()

    return Case(
        f"two masses {number}",
        "two masses",
        {"fmi2": "2.0", "fmi3": "3.0"}.get(made.version, made.version),
        built,
        partial(_masses, made.exact, made.blocks),
        Fraction(repr(made.stop_time)),
        Fraction(repr(made.longest)) / 4,
        is_hybrid=True,
    )


# Cradle, thermostat, ball


def _cradle(times: Array, _: float) -> Columns:
    """Newton's cradle: fmus/CradleBall/readme.md."""
    angle = np.pi * times
    first, last = -0.5 * np.maximum(0, np.cos(angle)), 4 + 0.5 * np.maximum(0, -np.cos(angle))
    speed = 0.5 * np.pi * np.sin(angle)
    moving = {"ball1.x": first, "ball5.x": last}
    moving |= {"ball1.v": speed * (first < 0), "ball5.v": speed * (last > 4)}
    return moving | {f"ball{k}.x": np.full_like(times, k - 1) for k in (2, 3, 4)}


def _temperature(times: Array, _: float) -> Columns:
    """fmus/ThermostatRoom/readme.md: the heating is on at the start, and 30 K at rest."""
    rate, upper, lower, rest = 0.1, 21.0, 19.0, 30.0
    begin, x, on = 0.0, 20.0, True
    found = np.empty_like(times)
    while True:
        end = begin + (log((rest - x) / (rest - upper)) if on else log(x / lower)) / rate
        inside = (times >= begin) & (times < end)
        decay = np.exp(-rate * (times[inside] - begin))
        found[inside] = rest + (x - rest) * decay if on else x * decay
        if end > times[-1]:
            return {"room.x": found}
        begin, x, on = end, upper if on else lower, not on


def _ball(times: Array, _: float) -> Columns:
    """fmus/BouncingBall/readme.md: h = 1 m, e = 0.7, g = -9.81 m/s2, at rest after bounce 11."""
    g, e, least = 9.81, 0.7, 0.1
    h, v = np.empty_like(times), np.empty_like(times)
    begin, height, speed = 0.0, 1.0, 0.0
    while True:
        end = begin + (speed + np.sqrt(speed**2 + 2 * g * height)) / g
        rests = height == speed == 0.0
        end = np.inf if rests else end
        inside = (times >= begin) & (times < end)
        t = times[inside] - begin
        h[inside] = 0.0 if rests else height + speed * t - g * t**2 / 2
        v[inside] = 0.0 if rests else speed - g * t
        if end > times[-1]:
            return {"h": h, "v": v}
        after = e * (g * (end - begin) - speed)
        begin, height, speed = end, 0.0, after if after >= least else 0.0


def _bouncing(version: str, _: Path) -> Path:
    return reference_path(f"{version}/BouncingBall.fmu")


def _switches(results: Results) -> Mapping[str, int]:
    q = np.asarray(results["controller.q"], bool)
    return {"controller.q": int(np.count_nonzero(q[1:] != q[:-1]))}


def other_cases() -> Iterator[Case]:
    """Newton's cradle, the thermostat, and a ball alone."""
    for version in ("fmi2", "fmi3", "mixed"):
        system = f"cradle-{version}"
        yield Case(
            f"cradle {version}",
            "cradle",
            _version(system),
            partial(_shipped, system, change=without_suggestion),
            _cradle,
            Fraction(4),
            Fraction(1, 50),
            is_hybrid=True,
        )
    for version in ("fmi2", "fmi3"):
        for text, change in (("", without_suggestion), (" without manifest", without_manifests)):
            system = f"thermostat-{version}"
            yield Case(
                f"thermostat {version}{text}",
                "thermostat",
                _version(system),
                partial(_shipped, system, change=change),
                _temperature,
                Fraction(60),
                Fraction(1, 20),
                is_hybrid=True,
                counted=_switches,
                due={"controller.q": 40},
            )
        yield Case(
            f"ball {version}",
            "ball",
            _version(f"ball-{version}"),
            partial(_bouncing, version),
            _ball,
            Fraction(3),
            Fraction(1, 100),
            is_hybrid=True,
        )


def hybrid_cases() -> list[Case]:
    """All systems with events."""
    return [case for group in (two_mass_cases, other_cases, random_cases) for case in group()]
