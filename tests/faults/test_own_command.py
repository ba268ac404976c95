"""Commands that simulate many times, with an FMU that ends its process or does not return."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from command_line import reference
from forks import Begun, Forks
from misbehaving_fmu import Act, misbehaving
from processes import CRASHED, wait_until_gone

from fmimaster.apart.shared_run import Called, SharedNumber, SharedRun
from fmimaster.run.choice import native_executor

pytestmark = pytest.mark.skipif(native_executor() is None, reason="the kernel is not built")

SYSTEM = """<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" version="1.0"
name="two">
<ssd:System name="two"><ssd:Elements>
<ssd:Component name="a" source="Misbehaving.fmu"><ssd:Connectors><ssd:Connector name="x" kind="output"/>
<ssd:Connector name="u" kind="input"/></ssd:Connectors></ssd:Component>
<ssd:Component name="b" source="Sound.fmu"><ssd:Connectors><ssd:Connector name="x" kind="output"/>
<ssd:Connector name="u" kind="input"/></ssd:Connectors></ssd:Component>
</ssd:Elements><ssd:Connections>
<ssd:Connection startElement="a" startConnector="x" endElement="b" endConnector="u"/>
<ssd:Connection startElement="b" startConnector="x" endElement="a" endConnector="u"/>
</ssd:Connections></ssd:System></ssd:SystemStructureDescription>
"""
COMMANDS = (["stability"], ["optimize"], ["budget"], ["plan", "--compare"])


def begun(forks: Forks, folder: Path, command: Sequence[str], act: Act) -> Begun:
    misbehaving(folder, "fmi3", act, trace=folder / "calls")
    misbehaving(folder, "fmi3", name="Sound")
    (folder / "two.ssd").write_text(SYSTEM, encoding="utf-8")
    return forks.begin(*command, "two.ssd", "--step-size", "1/10", "--stop-time", "1", cwd=folder)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_an_fmu_that_ends_the_process_is_named_with_its_call(
    forks: Forks, command: Sequence[str], tmp_path: Path
) -> None:
    process = begun(forks, tmp_path, command, Act("ExitInitializationMode", "crash"))
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert f"was ended by {CRASHED}, in fmi3ExitInitializationMode of 'a'." in err


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_a_call_that_does_not_return_is_ended_by_a_signal(forks: Forks, tmp_path: Path) -> None:
    process = begun(forks, tmp_path, ["budget"], Act("DoStep", "hang", since=0.5))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while (
        not (tmp_path / "calls").is_file()
        or (tmp_path / "calls").read_text(encoding="utf-8").count("DoStep") < 6
    ):
        time.sleep(0.02)
    found = children.read_text(encoding="utf-8").split()
    for _ in range(3):  # after the third one it waits no longer
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    _, err = process.communicate()
    assert process.returncode == 130
    assert "Interrupted" in err
    for pid in found:
        wait_until_gone(int(pid))


def test_the_output_and_the_status_are_those_of_the_command(forks: Forks) -> None:
    car = reference("systems/quarter-car-a-fmi2.ssp")
    fine, wrong = (forks.run("stability", car, *options) for options in ([], ["--at", "-1"]))
    assert (fine.returncode, wrong.returncode) == (0, 2)
    assert "Largest stable communication step" in fine.stdout
    assert "error" in wrong.stderr


def test_memory_is_used_again() -> None:
    """A command with thousands of runs needs no more of it than one with a few."""
    shared = SharedRun()
    first = shared.take(1000)
    shared.give_back(first)
    assert shared.take(1001) == first  # both are 1024 bytes
    assert shared.take(1000) != first


def test_damaged_names_are_none() -> None:
    shared = SharedRun()
    shared.call([Called("motor", "fmi3", is_isolated=False)])
    assert [one.name for one in shared.called] == ["motor"]
    at, size = shared[SharedNumber.NAMES], shared[SharedNumber.SIZE_OF_NAMES]
    shared.at(at, size)[:2] = b"{["
    assert not shared.called
    shared.numbers[SharedNumber.SIZE_OF_NAMES] = 2**40
    assert not shared.called
