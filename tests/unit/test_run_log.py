"""The log of a run tells what it does: versions, files, choices, and how it ended."""

from __future__ import annotations

import logging
import re

import pytest

from fmimaster import PythonComponent, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import GaussSeidel
from fmimaster.fmu.shared_library import SUFFIX
from fmimaster.run import Backend


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Each message of the package, without paths of temporary folders."""
    return [re.sub(r"(library of .*: )\S*[/\\]", r"\1…/", m) for m in caplog.messages]


def test_the_log_names_versions_files_choices_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fmimaster")
    fmu = reference_path("fmi2/Dahlquist.fmu")
    system = SystemBuilder("two and one")
    for name in ("a", "b"):
        system.add(name, fmu)
    system.add("constant", PythonComponent(outputs={"y": 1.0}))
    system.connect("constant.y", "a.u")
    system.connect("a.x", "b.u")
    simulate(system, algorithm=GaussSeidel(), stop_time=0.5, backend=Backend.REFERENCE)
    found = messages(caplog)
    assert re.fullmatch(r"fmimaster \S+, Python 3\.\d+\.\d+\S* on \S+", found[0])
    assert found[1] == "system 'two and one': 3 components, 2 connections"
    assert re.fullmatch(
        rf"'a' and 'b': {re.escape(str(fmu))}, Dahlquist, FMI 2\.0 by fmimaster \S+", found[2]
    )
    assert found[3:8] == [
        "'constant': PythonComponent (Python)",
        "0 s to 0.5 s by GaussSeidel, steps of 0.1 s",
        "the components step in the order 'constant', 'a' and 'b'",
        "executed by the interpreter in Python",
        "note: step size 0.1 s from 'a', the smallest that an FMU suggests",
    ]
    assert f"library of '{fmu}': …/Dahlquist{SUFFIX}" in found
    assert re.fullmatch(r"ended at t = 0\.5 s after 5 steps and 0 events in \S+ s", found[-1])


def test_an_fmu_without_debug_messages_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fmimaster")
    fmu = reference_path("fmi3/Dahlquist.fmu")
    simulate(fmu, stop_time=0.1, step_size=0.1, debug_logging=True)
    assert "'Dahlquist' has logged nothing: it has no debug messages." in caplog.messages
    caplog.clear()
    simulate(fmu, stop_time=0.1, step_size=0.1)
    assert not [m for m in caplog.messages if "has logged nothing" in m]
