"""Simulations of one FMU that can be done again: an experiment, and an instance in Step Mode. Needs FMPy."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from math import floor
from operator import itemgetter
from pathlib import Path
from typing import Any

from fmpy.fmi1 import FMICallException
from fmu_under_test import GETTERS, EndlessStops, Event, Fmu, StepFails, StopsUntilTriggered

DISCARD = 2
LAST_SUCCESSFUL_TIME = 2
MOST_STOPS = 50
"""Stops of the FMU without progress before a simulation is given up."""


@dataclass(frozen=True)
class Experiment:
    """How to bring an FMU to its events, from the author of the FMU."""

    stop: float = 3.0
    step: float = 0.01
    set: Mapping[str, float] = field(default_factory=dict)
    """Start values."""
    inputs: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    """Rows of time and value, linear between; two rows of one time are a jump."""
    payload: Mapping[str, float | str] = field(default_factory=dict)
    """Value of each payload input: a number, or the name of a variable of the FMU whose left limit it is."""
    jump: Mapping[str, Any] | None = None
    """``{"event": name, "at": time, "set": {input: value}}``: inputs that make this event occur."""

    def names(self) -> list[str]:
        """All variables that it names."""
        told = [v for v in self.payload.values() if isinstance(v, str)]
        jump = self.jump["set"] if self.jump else ()
        return [*self.set, *self.inputs, *self.payload, *told, *jump]

    @classmethod
    def read(cls, path: Path | None, **given: Any) -> Experiment:
        """From a JSON file with these keys; what is given in the command line comes on top.

        Raises
        ------
        ValueError
            If the file is no JSON object, or has a key that is not known or misses one.
        """
        read = json.loads(path.read_text(encoding="utf-8")) if path else {}
        known = [f.name for f in fields(cls)]
        unknown = [k for k in read if k not in known]
        if unknown:
            raise ValueError(
                f"the experiment has the key '{unknown[0]}'. Known are {', '.join(known)}"
            )
        if "jump" in read and set(read["jump"]) != {"event", "at", "set"}:
            raise ValueError(
                f"'jump' has the keys {', '.join(read['jump'])}, expected event, at, set"
            )
        start = read.pop("set", {}) | given.pop("set")
        return cls(**read | {k: v for k, v in given.items() if v is not None}, set=start)

    def problems(self, fmu: Fmu) -> list[str]:
        """What it names and the FMU does not have."""
        found = [f"the FMU has no variable '{n}'" for n in self.names() if n not in fmu.variables]
        events = [e.name for e in fmu.events]
        if self.jump and not 0.0 < self.jump["at"] < self.stop:
            found.append(f"'jump' is at {self.jump['at']:g} s, not before stop = {self.stop:g} s")
        if self.jump and events and self.jump["event"] not in events:
            found.append(
                f"'jump': the FMU has no event '{self.jump['event']}', only {', '.join(events)}"
            )
        return found


@dataclass
class Stop:
    """How a step ended: where, and whether the FMU has stopped there at an event."""

    time: float
    at_event: bool
    early: bool


def _at(rows: Sequence[Sequence[float]], time: float) -> float:
    """The value of an input at a time; after a jump where two rows have this time."""
    k = bisect_right(rows, time, key=itemgetter(0))
    if k == 0 or k == len(rows):
        return rows[min(k, len(rows) - 1)][1]
    (begin, first), (end, last) = rows[k - 1][:2], rows[k][:2]
    return first + (time - begin) / (end - begin) * (last - first)


@dataclass(frozen=True)
class Options:
    """What a simulation may have that others do not.

    Parameters
    ----------
    event_mode
        Whether Event Mode is used, if the FMU has it. None: if a trigger or an announcement is a Clock.
    early_return
        Whether it is allowed, if the FMU has it.
    inputs
        Values of inputs in Initialization Mode, after those of the experiment.
    observed
        Variables that are read at the end of Initialization Mode.
    """

    event_mode: bool | None = None
    early_return: bool = True
    inputs: Mapping[str, float] = field(default_factory=dict)
    observed: Sequence[str] = ()


USUAL = Options()


class Run:
    """One instance in Step Mode, and its time."""

    def __init__(
        self, fmu: Fmu, experiment: Experiment, policy: int | None, more: Mapping[str, float],
        options: Options,
    ) -> None:  # fmt: skip
        self.fmu, self.experiment, self.policy, self.time = fmu, experiment, policy, 0.0
        wanted = options.event_mode
        self.event_mode = fmu.event_mode if wanted is None else wanted and fmu.has_event_mode
        self.counts: dict[str, int] = {}
        self.is_stepping, self._discrete = False, dict[str, float]()
        self.binary = fmu.binary()
        if fmu.is_fmi3:
            self.binary.instantiate(
                eventModeUsed=self.event_mode,
                earlyReturnAllowed=options.early_return
                and bool(fmu.can.mightReturnEarlyFromDoStep),
                logMessage=lambda *_: None,
            )
        else:
            self.binary.instantiate()
        if not fmu.is_fmi3:
            self.binary.setupExperiment(startTime=0.0)
        start = dict(experiment.set) | dict(more)
        if policy is not None and fmu.policy:
            start[fmu.policy["parameter"]] = policy
        for name, value in start.items():
            self.set(name, value)
        self.binary.enterInitializationMode(**({"startTime": 0.0} if fmu.is_fmi3 else {}))
        self.set_inputs()
        for name, value in options.inputs.items():
            self.set(name, value)
        self.initial = self.read(options.observed)
        self.binary.exitInitializationMode()
        if self.event_mode:
            self.update()
            self.binary.enterStepMode()
        self.is_stepping = True

    def close(self) -> None:
        """End the simulation."""
        with suppress(FMICallException):
            self.binary.terminate()
        self.fmu.free(self.binary)

    def get(self, name: str) -> float:
        """The value of a scalar variable."""
        variable = self.fmu.variables[name]
        return float(getattr(self.binary, GETTERS[variable.type])([variable.valueReference])[0])

    def read(self, names: Sequence[str]) -> dict[str, float]:
        """Values of several variables."""
        return {name: self.get(name) for name in names}

    def set(self, name: str, value: float | Sequence[float]) -> None:
        """Set a variable; an array takes a sequence."""
        variable = self.fmu.variables[name]
        kind = GETTERS[variable.type].replace("get", "set")
        values = list(value) if isinstance(value, Sequence) else [value]
        if variable.type in ("Integer", "Int32", "Int64"):
            values = [int(v) for v in values]
        elif variable.type in ("Boolean", "Clock"):
            values = [bool(v) for v in values]
        getattr(self.binary, kind)([variable.valueReference], values)

    def set_inputs(self, time: float | None = None) -> None:
        """Set the inputs of the experiment to their values at the present time, or at another one."""
        discrete = {}
        for name, rows in self.experiment.inputs.items():
            value = _at(rows, self.time if time is None else time)
            if (
                self.is_stepping
                and self.event_mode
                and self.fmu.variables[name].variability != "continuous"
            ):
                discrete[name] = value  # FMI 3.0: these are set in Event Mode
            else:
                self.set(name, value)
        discrete = {n: v for n, v in discrete.items() if v != self._discrete.get(n)}
        if discrete:
            self._discrete |= discrete
            self.binary.enterEventMode()
            for name, value in discrete.items():
                self.set(name, value)
            self.update()
            self.binary.enterStepMode()

    def step(self, until: float) -> Stop:
        """One call of DoStep; inputs are set before by the caller."""
        h = until - self.time
        if self.fmu.is_fmi3:
            with self._told(h):
                needed, _, early, last = self.binary.doStep(self.time, h)
            self.time = last if early else until
            return Stop(self.time, bool(needed), bool(early))
        state = self.binary.getFMUState() if self.fmu.saves_states else None
        try:
            with self._told(h):
                self.binary.doStep(self.time, h)
        except StepFails as error:
            if error.status != DISCARD or state is None:
                raise
            last = float(self.binary.getRealStatus(LAST_SUCCESSFUL_TIME))
            self._again(state, last)
            return Stop(self.time, True, True)
        finally:
            if state is not None:
                self.binary.freeFMUState(state)
        self.time = until
        return Stop(until, False, False)

    @contextmanager
    def _told(self, h: float) -> Iterator[None]:
        """An error of DoStep says where it is, and with which policy."""
        try:
            yield
        except FMICallException as error:
            names = [k for k, v in (self.fmu.policy or {}).items() if v == str(self.policy)]
            told = f"{str(error).rstrip('.')} at t = {self.time:.9g} s, step size {h:.3g} s"
            told += f", policy {names[0] if names else 'as it starts'}"
            raise StepFails(told, error.status) from error

    def restore(self, state: Any, time: float) -> None:
        """Set an FMU state that was got at a time."""
        self.binary.setFMUState(state)
        self.time = time

    def _again(self, state: Any, until: float) -> None:
        """FMI 2.0: a step that was discarded is made again up to the time that the FMU has reached."""
        self.binary.setFMUState(state)
        if until > self.time:
            self.binary.doStep(self.time, until - self.time)
            self.time = until

    def _past(self, until: float) -> Stop:
        """FMI 2.0: go on where the FMU has stopped with a step of length zero.

        The FMU state from before this step does not know that the event was announced, so it is not set again.
        """
        state, end = self.binary.getFMUState(), until
        try:
            for _ in range(MOST_STOPS):
                try:
                    self.binary.doStep(self.time, end - self.time)
                except FMICallException as error:
                    if error.status != DISCARD:
                        self.binary.setFMUState(state)
                        raise StopsUntilTriggered(*self._endless()) from error
                    last = float(self.binary.getRealStatus(LAST_SUCCESSFUL_TIME))
                    if last > self.time:  # another event: up to it
                        self.binary.setFMUState(state)
                        end = last
                else:
                    self.time = end
                    return Stop(end, end < until, end < until)
        finally:
            self.binary.freeFMUState(state)
        raise EndlessStops(*self._endless())

    def _endless(self) -> tuple[str, int | None]:
        return f"it stops at t = {self.time:.9g} s again and again", self.policy

    def go(self, until: float, *, inputs: bool = True) -> list[Stop]:
        """Go on to a time, through the stops of the FMU; in Event Mode where it asks for it. Returns these stops."""
        stops: list[Stop] = []
        while self.time < until:
            if inputs:
                self.set_inputs()
            is_stuck = len(stops) > 1 and stops[-1].time == stops[-2].time
            stop = self._past(until) if is_stuck and not self.fmu.is_fmi3 else self.step(until)
            if not stop.at_event and not stop.early:
                break
            if stop.at_event:
                stops.append(stop)
                self.handle()
            if len(stops) > MOST_STOPS and stop.time == stops[-MOST_STOPS].time:
                raise EndlessStops(*self._endless())
        return stops

    def go_in_steps(self, until: float) -> None:
        """Go on to a time on the grid of the experiment's step size."""
        h = self.experiment.step
        while self.time < until:
            following = (floor(self.time / h + 1e-6) + 1) * h
            self.go(min(following, until))

    def handle(self, trigger: Event | None = None) -> bool:
        """Event Mode, if it is used: with a trigger by a Clock, or without. Whether the FMU announced `trigger`."""
        if not self.event_mode:
            return False
        payload = self._payload(trigger) if trigger else {}
        self.binary.enterEventMode()
        announced = bool(trigger and trigger.announce and self.get(trigger.announce))
        if trigger is not None:
            self._set_trigger(trigger, payload)
        self.update()
        self.binary.enterStepMode()
        return announced

    def update(self) -> None:
        """Update discrete states until no further update is needed."""
        for _ in range(100):
            if not self.binary.updateDiscreteStates()[0]:
                return
        raise EndlessStops(
            f"fmi3UpdateDiscreteStates needs another update at t = {self.time:.9g} s again and again",
            self.policy,
        )

    def trigger(self, event: Event, by: int = 1) -> None:
        """Trigger an event at the present time, by its Clock or its counter."""
        if self.event_mode:
            self.handle(event)
        else:
            self._set_trigger(event, self._payload(event), by)

    def set_payload(self, event: Event) -> None:
        """Set the inputs of the payloads of an event, and do not trigger it."""
        for name, value in self._payload(event).items():
            self.set(name, value)

    def _payload(self, event: Event) -> dict[str, float]:
        """The payload of an event: from the experiment, else the input's start value."""
        told = {}
        for _, name in event.payload:
            value = self.experiment.payload.get(name)
            if value is not None:
                told[name] = self.get(value) if isinstance(value, str) else value
        return told

    def _set_trigger(self, event: Event, payload: Mapping[str, float], by: int = 1) -> None:
        assert event.trigger is not None
        is_clock = self.fmu.variables[event.trigger].type == "Clock"
        if is_clock:
            self.set(event.trigger, 1)
        for name, value in payload.items():
            self.set(name, value)
        if not is_clock:
            start = int(self.fmu.variables[event.trigger].start or 0)
            self.counts[event.trigger] = self.counts.get(event.trigger, start) + by
            self.set(event.trigger, self.counts[event.trigger])


@contextmanager
def run(
    fmu: Fmu,
    experiment: Experiment,
    policy: int | None,
    more: Mapping[str, float] | None = None,
    options: Options = USUAL,
) -> Iterator[Run]:
    """A new simulation from the start.

    Parameters
    ----------
    policy
        Value of the policy parameter; None leaves its start value.
    more
        More start values.
    """
    instance = Run(fmu, experiment, policy, more or {}, options)
    try:
        yield instance
    finally:
        instance.close()
