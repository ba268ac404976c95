"""Isolated FMUs of a level step at the same time, with one message for each step."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from fmimaster.kernel._kernel import ffi

import fmimaster
from fmimaster.run.isolated.hosting import HostedInstance

INSTANCES, STEPS = 3, 1000
IN_TURN = ["do_step"] * INSTANCES
TOGETHER = ["begin_step"] * INSTANCES + ["await_step"] + IN_TURN


class Calls:
    """The calls of the tables of functions: their names, and the number of the message after each do_step by host."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.messages: dict[int, list[int]] = {}
        self._kept: list[Any] = []

    def note_those_of(self, host: HostedInstance) -> None:
        for name in ("begin_step", "await_step", "do_step"):
            function = self._noting(name, getattr(host.table, name), host)
            self._kept.append(ffi.callback(ffi.typeof(getattr(host.table, name)), function))
            setattr(host.table, name, self._kept[-1])

    def _noting(self, name: str, original: Any, host: HostedInstance) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.names.append(name)
            status = original(*arguments)
            if name == "do_step":
                numbers = self.messages.setdefault(id(host), [])
                numbers.append(host.isolated.message.asked.count)
            return status

        return call


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    noted, share = Calls(), HostedInstance._share

    def shared(self: HostedInstance, n_inputs: int) -> None:
        share(self, n_inputs)
        noted.note_those_of(self)

    monkeypatch.setattr(HostedInstance, "_share", shared)
    return noted


def simulate() -> None:
    builder = fmimaster.SystemBuilder()
    for k in range(INSTANCES):
        builder.add(f"d{k}", fmimaster.reference_path("fmi2/Dahlquist.fmu"))
    fmimaster.Simulation(
        builder.build(),
        isolate=True,
        step_size=1.0 / 1024,
        stop_time=STEPS / 1024,
        backend="native",
    ).run()


def test_hosts_get_the_steps_of_a_level_before_one_is_waited_for(calls: Calls) -> None:
    simulate()
    left, together = calls.names, 0
    for _ in range(STEPS):
        is_together = left[0] == "begin_step"
        expected = TOGETHER if is_together else IN_TURN  # steps that are measured are in turn
        assert left[: len(expected)] == expected
        left, together = left[len(expected) :], together + is_together
    assert not left
    assert together > STEPS / 2
    for numbers in calls.messages.values():
        assert [b - a for a, b in pairwise(numbers[1:])] == [1] * (STEPS - 2)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other sessions")
def test_hosts_are_groups_in_the_session_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux shares time between sessions first (autogroups): a host in another one could not let the others run."""
    found, load = [], HostedInstance.load

    def loaded(self: HostedInstance) -> None:
        load(self)
        pid = self._process.pid or 0
        found.append((os.getsid(pid), os.getpgid(pid) == pid))

    monkeypatch.setattr(HostedInstance, "load", loaded)
    simulate()
    assert found == [(os.getsid(0), True)] * INSTANCES
