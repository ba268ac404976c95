"""A system of ``unasked.py``: how it is built from FMUs, and its exact solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from unasked_nets import Array, Made, Net

from fmimaster import Results

Columns = Mapping[str, Array]
Builder = Callable[[Path], Any]
Exact = Callable[[Array, float], Columns]
"""Times in s and the step size in s → output → its exact values."""

LONGEST = 4
"""Factor of the right step size for one that is too long."""


@dataclass(frozen=True)
class Case:
    """A system, how it is built, and its exact solution."""

    name: str
    kind: str
    fmi: str
    build: Builder
    """Writes FMUs into a folder, and returns the system."""
    exact: Exact
    stop_time: Fraction
    """[s]"""
    step: Fraction
    """[s] The step size that is right."""
    options: Callable[[Path], Mapping[str, Any]] = lambda _: {}
    """Settings that belong to the system: its input file."""
    is_hybrid: bool = False
    counted: Callable[[Results], Mapping[str, int]] = lambda _: {}
    """Event → how often the units have executed it."""
    due: Mapping[str, int] | None = None
    """Event → how often it occurs."""


def whole(time: float, step: Fraction) -> Fraction:
    """[s] About this time; a multiple of the longest step."""
    return max(1, round(time / float(LONGEST * step))) * LONGEST * step


def net_case(
    name: str,
    kind: str,
    net: Net,
    time: float,
    made: Made | None = None,
    step: Fraction | None = None,
) -> Case:
    """A net; without a step that of its fastest mode."""
    made, closed = made or Made(), net.closed()
    step = step or closed.step()
    fmi = {"fmi2": "2.0", "fmi3": "3.0"}.get(made.version, made.version)
    fmi += ", inputs held" if made.holds else ""
    return Case(
        name,
        kind,
        fmi,
        partial(net.system, kind, made),
        lambda times, _: closed.solution(times),
        whole(time, step),
        step,
        (lambda folder: {"input": net.file(folder)}) if net.signal else (lambda _: {}),
    )
