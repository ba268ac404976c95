"""An FMU alone in this process, as the measurements use it: inputs and outputs as one array each.

It makes exactly the calls of a measurement. A run would mix what the FMU does with what an algorithm does: when outputs are
read, whether steps are repeated. Each measurement has its own process, because some FMUs behave differently as the second
instance of one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError, FmimasterError, ModelError
from fmimaster.cards.measured import Repetition
from fmimaster.fmu.call_log import MESSAGE
from fmimaster.fmu.instance import Instance, InstanceOptions, StepAnswer
from fmimaster.fmu.library import FmuFile, identity, release
from fmimaster.fmu.process_state import ProcessState
from fmimaster.studies.probing.excitation import (
    StepTrace,
    Use,
    VariedValues,
    changeable_inputs,
    differences,
    moved,
    observed_variables,
    start_value,
    times_of,
    varied,
)
from fmimaster.studies.probing.ticks import MeasuredTick, Ticks
from fmimaster.system.model import Variable

TERMINATED = "Terminate"
"""Status of a step in which the FMU has ended the simulation."""
_MOST_UPDATES = 100
"""Most updates of the discrete states at one instant."""
_MOST_PARTS = 1000
"""Most early returns within one step."""
_SAME = 8 * 2.0**-52
"""Two times that differ by less, relative to their size, are one time."""
_MOST_STEPS = 1000
"""More steps than any measurement does; the stop time is not before them."""
_TIME_FOR_STEPS = 2.0
"""Wall time in s after which no further step is made."""


class Subject:
    """An FMU, loaded once in this process. A context manager."""

    def __init__(self, use: Use) -> None:
        self.use = use
        self.state = ProcessState()
        self.file = FmuFile(use.source, interface=use.interface)
        self.model = self.file.model
        self.times = times_of(self.model)
        self.inputs = changeable_inputs(self.model)
        self.observed = observed_variables(self.model)
        self.nominal = np.concatenate(
            [np.full(v.size, abs(v.nominal) or 1.0) for v in self.observed] or [np.zeros(0)]
        )

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def instantiated(self, name: str = "", *, events: bool = False) -> MeasuredUnit:
        """A new instance.

        Parameters
        ----------
        events : bool
            Whether it may return early, and uses Event Mode if it has that. FMUs with clocks always use Event Mode.
        """
        event_mode = self.model.capabilities.has_event_mode and (events or self.model.has_clocks)
        options = InstanceOptions(event_mode=event_mode, early_return=events)
        try:
            instance = self.file.instantiate(f"{self.use.name} {name}".rstrip(), options)
        finally:
            # a second instance is tried although the FMU may declare that it allows only one
            release(identity(self.file.source, self.model))
        return MeasuredUnit(self, instance, event_mode)

    def unit(self, name: str = "", *, events: bool = False) -> MeasuredUnit:
        """A new instance that is ready for its first step."""
        unit = self.instantiated(name, events=events)
        unit.initialize()
        return unit

    def names(self) -> list[str]:
        """The observed variable of each element."""
        return [v.name for v in self.observed for _ in range(v.size)]

    def compared(self, one: StepTrace, other: StepTrace) -> Repetition:
        """Two traces of the same steps."""
        names, rows = self.names(), min(len(one.values), len(other.values))
        return Repetition(
            steps=rows - 1,
            moved=moved(names, one.values[:rows]),
            differences=differences(names, self.nominal, one.values, other.values),
        )


class Moment(NamedTuple):
    """What a unit knows about its instance at a time, beside the FMU state."""

    time: float
    steps: int
    next_event: float
    ticks: dict[int, MeasuredTick]


class MeasuredUnit:
    """One instance, with its time, its clocks, its inputs and its observed variables."""

    def __init__(self, subject: Subject, instance: Instance, event_mode: bool) -> None:
        self.subject, self.instance = subject, instance
        self._event_mode = event_mode
        self.time = subject.times.start
        self.steps = self.early = 0
        self.ticks = Ticks(instance, subject.model)
        self._next_event = inf
        self._splits = subject.model.capabilities.can_handle_variable_communication_step_size
        self._has_failed = False
        self._is_kept = False
        # saved states stay valid: each later step may be undone
        instance.kept_from = lambda: -inf if self._is_kept else inf
        instance.clock = lambda: self.time
        self._observed = VariedValues(subject.observed, instance.getter)
        self._inputs = {v.name: VariedValues([v], instance.setter) for v in subject.inputs}
        chosen = [v for v in subject.inputs if v.is_continuous and subject.use.varied]
        self._varied = VariedValues(chosen, instance.setter)
        self._rest = [start_value(v) for v in chosen]
        self._values = np.zeros(self._varied.size)

    def initialize(
        self, stop: float | None = None, inside: Callable[[], None] | None = None
    ) -> None:
        """Through Initialization Mode, in which ``inside`` is called, to Step Mode."""
        start, usual, size = self.subject.times
        usual = max(usual, start + _MOST_STEPS * size)  # some FMUs do no step after the stop time
        model = self.subject.model
        tolerance = model.default_experiment.tolerance
        self.instance.enter_initialization_mode(start, usual if stop is None else stop, tolerance)
        if inside is not None:
            inside()
        self.time, self.steps, self._next_event = start, 0, inf
        if self._event_mode:
            self.ticks.begin(start)
            self._update()
        else:
            self.instance.enter_step_mode()

    def _update(self) -> None:
        """Event Mode from its start to its end: all clocks tick that are due."""
        instance, ticks = self.instance, self.ticks
        instance.enter_event_mode()
        self._next_event = inf
        for _ in range(_MOST_UPDATES):
            if due := self._ticking():
                ticks.activate(due)
            answer = instance.update_discrete_states()
            ticks.ask(self.time, due)
            if answer.terminate:
                raise self._stopped(StepAnswer(self.time, terminate=True))
            self._next_event = answer.next_event_time
            if not answer.wants_update and not self._ticking():
                break
        instance.enter_step_mode()

    def _ticking(self) -> list[int]:
        """The clocks that tick now."""
        return self.ticks.due(self.time + abs(self.time) * _SAME)

    @property
    def moment(self) -> Moment:
        """What must be known to go on from here when the FMU state is restored."""
        return Moment(self.time, self.steps, self._next_event, dict(self.ticks.next))

    def save(self, place: int) -> None:
        """Save the FMU state."""
        self._is_kept = True
        self.instance.save(place)

    def go_to(self, moment: Moment) -> None:
        """Go on from a moment whose FMU state has been restored."""
        self.time, self.steps, self._next_event, ticks = moment
        self.ticks.next = dict(ticks)

    def read(self) -> NDArray[np.float64]:
        """The observed variables."""
        return self._observed.read()

    def set_input(self, variable: Variable, values: NDArray[np.float64]) -> None:
        """Set one input."""
        self._inputs[variable.name].write(values)

    @property
    def is_varied(self) -> bool:
        """Whether it has inputs that vary."""
        return self._varied.size > 0

    def vary(self) -> None:
        """Set the inputs for the next step."""
        if self._varied.size:
            inputs = zip(self._varied.variables, self._rest, strict=True)
            parts = [varied(v, rest, self.steps, k) for k, (v, rest) in enumerate(inputs)]
            self._values = np.concatenate(parts)
            self._varied.write(self._values)

    def set_again(self) -> None:
        """Set the varied inputs to their present values."""
        self._varied.write(self._values)

    def step(self, size: float) -> None:
        """One step: see :meth:`step_to`."""
        self.step_to(self.time + size)

    def step_to(self, end: float) -> None:
        """One step to a time in s: in parts if the FMU returns early, or has an event or a tick before the end.

        Raises
        ------
        CallError
            If the step fails, is discarded, or ends the simulation.
        """
        early = 0
        while early < _MOST_PARTS:
            stop = self._next_stop(end)
            answer = self.instance.do_step(self.time, stop - self.time)
            if answer is not None and (answer.discarded or answer.terminate):
                raise self._stopped(answer)
            is_early = answer is not None and answer.early
            early += is_early
            self.time = answer.last_successful_time if answer and is_early else stop
            if self._event_mode and ((answer is not None and answer.event) or self._is_due()):
                self._update()
            if end - self.time <= abs(end) * _SAME:
                break
        self.early += early
        self.time = end
        self.steps += 1

    def _next_stop(self, end: float) -> float:
        """The end, or the event or the tick before it, for an FMU whose steps can have any size."""
        if not (self._event_mode and self._splits):
            return end
        stop = min(self._next_event, self.ticks.first)
        return stop if self.time < stop < end - abs(end) * _SAME else end

    def _is_due(self) -> bool:
        return min(self._next_event, self.ticks.first) <= self.time + abs(self.time) * _SAME

    def _stopped(self, answer: StepAnswer) -> CallError:
        what = "ended the simulation" if answer.terminate else "was discarded"
        said = "".join(f" Message: {m}" for m in answer.messages[-1:])
        return CallError(
            f"A step from t = {self.time:g} s {what}.{said}",
            instance=self.instance.name,
            function="DoStep",
            status=TERMINATED if answer.terminate else "Discard",
            time=self.time,
        )

    def trace(self, steps: int, *, reads: bool = True, between: bool = False) -> StepTrace:
        """Steps with varied inputs, and the observed variables after each.

        Parameters
        ----------
        reads : bool
            Whether they are read after each step; otherwise only at the end, and the trace has one row.
        between : bool
            Whether they are also read after the inputs were set, before the step.
        """
        rows = [self.read()] if reads else []
        ended, terminated = "", False
        until = time.monotonic() + _TIME_FOR_STEPS
        begin, size = self.time, self.subject.times.size
        for k in range(steps):
            if reads and time.monotonic() > until:
                break  # traces are compared as far as both go
            self.vary()
            if between:
                self.read()
            try:
                self.step_to(begin + (k + 1) * size)  # a sum would drift off the grid
            except CallError as error:
                ended, terminated = " ".join(str(error).split()), error.status == TERMINATED
                self._has_failed = error.status not in (TERMINATED, "Discard")
                break
            if reads:
                rows.append(self.read())
        return StepTrace(np.array(rows if reads else [self.read()]), ended, terminated)

    def free(self) -> None:
        """Terminate and free the instance."""
        if not self._has_failed:  # FMI does not allow it then
            with suppress(FmimasterError):  # it is freed in any case
                self.instance.terminate()
        self.instance.free()


def refusal(act: Callable[[], object]) -> str:
    """Why an FMU refuses something; empty if it does not."""
    try:
        act()
    except (CallError, ModelError) as error:
        return " ".join(str(error).split())
    return ""


class Messages(logging.Handler):
    """Collects the messages of FMUs, and keeps all messages from the standard error. A context manager."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._log = logging.getLogger("fmimaster")
        self._before = self._log.level, self._log.propagate

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message of an FMU, without the name of its instance."""
        if record.msg == MESSAGE and isinstance(record.args, tuple):
            _, status, text = record.args
            self.texts.append(f"[{status}] {text}")

    def __enter__(self) -> Messages:
        self._log.addHandler(self)
        self._log.setLevel(logging.INFO)
        self._log.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
        self._log.setLevel(self._before[0])
        self._log.propagate = self._before[1]
