"""Hosts of FMUs that are lost in the middle of a run: killed, or behind a network that has gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pytest
from processes import PATIENCE, is_there

from fmimaster import FmuLostError, Simulation, SystemBuilder, reference_path
from fmimaster.apart.connection import SECRET
from fmimaster.run.choice import native_executor

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="network namespaces, and /proc"),
    pytest.mark.skipif(native_executor() is None, reason="processes of FMUs need the kernel"),
    pytest.mark.in_this_process("the tests say which FMUs are isolated"),
]


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECRET, "a secret that nobody guesses")


class RunningHost:
    """A host as a command."""

    def __init__(self, *options: str, before: Sequence[str] = ()) -> None:
        command = [*before, sys.executable, "-m", "fmimaster", "host", *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def address(self) -> str:
        """Where it listens, as soon as it does."""
        if not hasattr(self, "_address"):
            assert self.process.stdout is not None
            line = self.process.stdout.readline()
            self._address = line.split()[2].rstrip(".")
        return self._address

    def children(self) -> list[int]:
        """The processes below it."""
        found, new = list[int](), [self.process.pid]
        while new:
            pid = new.pop()
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(OSError):
                    new += map(int, task.read_text().split())
            found.append(pid)
        return found[1:]

    def end(self, number: int) -> None:
        """End it by a signal, and wait until nothing of it is left."""
        children = self.children()
        assert children
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        until = monotonic() + PATIENCE
        while any(map(is_there, children)):
            assert monotonic() < until
            sleep(0.01)

    def __enter__(self) -> RunningHost:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def car(isolate: Any, at: float = np.inf, then: Any = None, **settings: Any) -> Simulation:
    """A system with an FMU that is called 'engine'; at a time something happens once."""
    system = SystemBuilder("car")
    system.add("engine", reference_path("fmi3/Dahlquist.fmu"))
    system.add("body", reference_path("fmi3/Dahlquist.fmu"))
    system.connect("engine.x", "body.u")
    left = [then]

    def signal(time: float) -> float:
        if time >= at and left:
            left.pop()()
        return float(np.sin(time))

    return Simulation(
        system,
        input={"engine.u": signal},
        step_size=0.125,
        stop_time=2,
        isolate=isolate,
        **settings,
    )


def check_lost_hosts(first: RunningHost, second: RunningHost) -> None:
    """The first host is killed in a run, which goes on at the second; Ctrl-C ends that in another run."""
    undisturbed = car(False).run()
    where = {"engine": (first.address, second.address)}
    restarted = car(where, 1.0, lambda: first.end(signal.SIGKILL), on_fault="restart").run()
    np.testing.assert_array_equal(restarted["body.x"], undisturbed["body.x"])
    assert any("'engine' was started again" in note for note in restarted.statistics.notes)

    what = rf"'engine' at {second.address} was lost with .*, in fmi3DoStep at t = 0\.875 s"
    with pytest.raises(FmuLostError, match=what) as caught:
        car(where, 1.0, lambda: second.end(signal.SIGINT)).run()
    assert second.process.returncode == 130
    found = caught.value.results
    np.testing.assert_array_equal(found.time, undisturbed.time[:8])
    np.testing.assert_array_equal(found["body.x"], undisturbed["body.x"][:8])


def test_a_host_that_is_killed_is_a_lost_fmu_and_the_run_goes_on_at_another_one() -> None:
    with RunningHost() as first, RunningHost() as second:
        check_lost_hosts(first, second)


# Machines of their own: network namespaces -----------------------------------------------------------------------------


def ip(*words: str) -> None:
    """Call ``ip``; skip the test where that is not permitted."""
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"there is no 'ip': {error}")
    if done.returncode:
        pytest.skip(f"no network namespaces here: {done.stderr.strip()}")


_NUMBERS = count()  # a cable that is removed has its name for a moment


@contextmanager
def machine(number: int) -> Iterator[tuple[str, str]]:
    """A network namespace with a cable to this one: its name, and its address."""
    name, cable = f"fmimaster-{os.getpid()}-{number}", f"fm{os.getpid() % 100000}-{number}"
    here, there = f"10.213.{number}.1", f"10.213.{number}.2"
    ip("netns", "add", name)
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("address", "add", f"{here}/24", "dev", cable)
        ip("link", "set", cable, "up")
        for words in (
            ("address", "add", f"{there}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            ip("-n", name, *words)
        yield name, there
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False)


@contextmanager
def hosts_on_machines(n: int) -> Iterator[list[RunningHost]]:
    with ExitStack() as stack:
        found = []
        for _ in range(n):
            number = next(_NUMBERS)
            name, address = stack.enter_context(machine(number))
            options = ("--listen", f"{address}:7000", "--unencrypted")
            within = ("ip", "netns", "exec", name)
            found.append(stack.enter_context(RunningHost(*options, before=within)))
        yield found


@pytest.mark.thorough
def test_hosts_on_machines_of_their_own_are_lost() -> None:
    with hosts_on_machines(2) as (first, second):
        check_lost_hosts(first, second)


@pytest.mark.thorough
def test_a_network_that_has_gone_is_noticed_on_both_sides() -> None:
    with hosts_on_machines(1) as [host]:
        cable = f"fm{os.getpid() % 100000}-{host.address.split('.')[2]}"
        begun = list[float]()

        def pull() -> None:
            begun.append(monotonic())
            ip("link", "set", cable, "down")

        with pytest.raises(FmuLostError, match=rf"'engine' at {host.address} was lost") as caught:
            car({"engine": host.address}, 1.0, pull).run()
        assert monotonic() - begun[0] < 60.0
        assert caught.value.results.rows == 8
        until = monotonic() + 60.0
        while len(host.children()) > 1 and monotonic() < until:  # one starts the others
            sleep(0.5)
        assert len(host.children()) == 1
