"""All that changes during a run, between two steps, as plain data; and a run that continues from it.

The rows, the events, the steps and the calls of FMUs that cannot save their state are in the file beside the checkpoint
(:mod:`fmimaster.session.checkpoint.row_log`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.codec import joined, separated
from fmimaster.fmu.instance import Instance
from fmimaster.fmu.journal import packed, unpacked
from fmimaster.instants.instant import Instant
from fmimaster.plan.plan import Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.program.programs import Programs
from fmimaster.results.kept_rows import Block
from fmimaster.run.executor import Executor
from fmimaster.run.rows import RowBlock
from fmimaster.run.state import RunState
from fmimaster.run.stepper import Stepper
from fmimaster.session.fact_keeper import FactKeeper
from fmimaster.session.row_keeper import RowKeeper
from fmimaster.system.model import DataType

_NOT_SAVED = frozenset({"timeline", "stretch", "asked", "pauses", "step_log", "event_log"})
"""Parts of the state of a run that its preparation gives, that are empty between steps, or that are saved otherwise."""


class SessionParts(Protocol):
    """The parts of a session, as those see it that start, save and continue it."""

    prepared: Prepared
    plan: Plan
    programs: Programs
    instances: list[Instance]
    executor: Executor
    state: RunState
    stepper: Stepper
    rows: RowKeeper
    facts: FactKeeper
    start: Instant
    stop: Instant

    @property
    def seconds(self) -> float:
        """Wall time in s of the loop so far."""
        ...

    @property
    def has_ended(self) -> bool:
        """Whether the run has reached its end."""
        ...

    @property
    def warnings_of_run(self) -> tuple[str, ...]:
        """What the run has shown so far: reasons for a loss of accuracy."""
        ...


def snapshot(session: SessionParts) -> dict[str, Any]:
    """The state of a session between two steps, without rows, events, steps, and the states of FMUs."""
    s, executor = session.state, session.executor
    return {
        "state": {n: v for n, v in vars(s).items() if n not in _NOT_SAVED},
        "last step": {n: v for n, v in vars(s.step_log).items() if n not in ("ended", "handed_on")},
        "late": dict(s.event_log.late),
        "delayed": dict(s.event_log.delayed),
        "registers": executor.registers.copy(),
        "store": executor.store.copy(),
        "hooks": [(hook.name, hook.remembered()) for hook in session.programs.hooks],
        "recorder": session.rows.recorder.remembered(),
        "row": last_row(executor.rows),
        "seconds": session.seconds,
    }


def put_back(session: SessionParts, saved: dict[str, Any]) -> None:
    """Bring an initialized session to the state of :func:`snapshot`; its FMUs and its rows are not changed."""
    s, executor = session.state, session.executor
    for name, value in saved["state"].items():
        setattr(s, name, value)
    for name, value in saved["last step"].items():
        setattr(s.step_log, name, value)
    s.event_log.late = saved["late"]
    s.event_log.delayed = saved["delayed"]
    executor.registers.restore(saved["registers"])
    executor.store.restore(saved["store"])
    # hooks of programs of events are made when such an event happens first
    for hook, (name, numbers) in zip(session.programs.hooks, saved["hooks"], strict=False):
        if hook.name == name and numbers:
            hook.remember(numbers)
    executor.rows.take()
    if saved["row"] is not None:
        executor.rows.begin_behind(*saved["row"])
    session.rows.recorder.remember(saved["recorder"])
    session.stepper.indicators.renew()


def last_row(rows: RowBlock) -> tuple[float, dict[DataType, NDArray[Any]]] | None:
    """The last row of a block: an equal one at the same time is not taken again."""
    n = rows.count
    return (
        (rows.times.item(n - 1), {k: v[n - 1].copy() for k, v in rows.values.items()})
        if n
        else None
    )


# Records --------------------------------------------------------------------------------------------------------------


def rows_as_bytes(times: NDArray[np.float64], block: Block) -> bytes:
    """Rows as the content of a record."""
    return joined([times.tobytes(), *(packed(values.ravel()) for values in block.values())])


def rows_of(content: bytes, kinds: Sequence[DataType]) -> tuple[NDArray[np.float64], Block]:
    """The rows of :func:`rows_as_bytes`, whose blocks have these types."""
    parts = separated(content)
    times = np.frombuffer(parts[0])
    columns = zip(kinds, parts[1:], strict=True)
    return times, {k: unpacked(k, part).reshape(len(times), -1) for k, part in columns}
