"""FMU states in a file: the initial or final states of a run.

For a single FMU the file contains the bytes of its serialized state, as FMPy writes and reads them. For a system, and for
an FMU with clocks or time events, it is a zip archive: ``states.json`` with the time, the components and what the run
remembers about events, and a member for the state of each component.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from io import BytesIO
from math import inf, isinf
from pathlib import Path
from typing import Any

import numpy as np

from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import (
    check_fits,
    check_is_file,
    decoding,
    open_file,
    parsed_json,
    reason_of,
)
from fmimaster.fmu.instance import Instance
from fmimaster.instants.calendar import Calendar, Period
from fmimaster.plan.layout import Route
from fmimaster.plan.links import is_held
from fmimaster.plan.plan import Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.run.executor import Executor
from fmimaster.session.checkpoint_file import has_member
from fmimaster.system.archive import Archive, open_archive
from fmimaster.system.clocks import Qualifier
from fmimaster.system.model import DataType, Source
from fmimaster.system.zip_entries import ANY_GROWTH

_INDEX = "states.json"
_ZIP = b"PK\x03\x04"
"""The beginning of an archive, also of an incomplete one."""


def refuse_unserializable(prepared: Prepared) -> None:
    """Refuse a run that writes or reads FMU states, if the state of a component cannot be serialized.

    Raises
    ------
    OptionError
    """
    unable = [
        i.name for i in prepared.plan.instances if not i.model.capabilities.can_serialize_fmu_state
    ]
    if unable:
        raise OptionError(
            f"The state of '{unable[0]}' cannot be written to a file (canSerializeFMUState is false). Leave "
            "initial_fmu_state (--initial-fmu-state-file) and final_fmu_state (--final-fmu-state-file) out."
        )


def read_states(path: Path, prepared: Prepared) -> tuple[list[bytes], Any]:
    """The states of all instances, in their order, empty for components that are not FMUs; and what the run before has
    remembered about events, which may be anything, None if the file does not say it.

    Raises
    ------
    FileError
        If the file cannot be read, or is not a file of states of this system.
    OptionError
        If the run does not begin at the time of the states.
    """
    check_is_file(path)
    if not path.stat().st_size:
        raise FileError(f"'{path}' is empty, expected FMU states. Write it again.")
    check_fits(path.stat().st_size, path)
    names = _names(prepared)
    if not zipfile.is_zipfile(path):
        with open_file(path) as stream:
            if stream.read(len(_ZIP)) == _ZIP:
                raise FileError(f"'{path}' is damaged or incomplete FMU states. Write it again.")
        if len(names) > 1:
            raise FileError(
                f"'{path}' has the state of a single FMU, and the system has {len(names)} components. Give a file "
                "from a run of this system."
            )
        with open_file(path) as stream:
            return _in_order(prepared, {names[0]: stream.read()}), None
    with decoding(path, "a file of FMU states"), open_archive(Source(path)) as archive:
        check_fits(archive.size(), path)
        index = parsed_json(archive.read(_INDEX))
        members = dict(index["members"])
        if len(set(members.values())) != len(members):
            raise ValueError("two components have one state")
        found = {name: _content(archive, member) for name, member in members.items()}
        time, memory = float(index["time"]), index.get("events")
        if empty := next((name for name, state in found.items() if not state), None):
            raise FileError(f"'{path}' has an empty state of '{empty}'. Write it again.")
    if found.keys() != set(names):
        differing = ", ".join(sorted(found.keys() ^ set(names)))
        raise FileError(f"'{path}' has states of other components: {differing}.")
    start = float(prepared.schedule.start)
    if time != start:
        raise OptionError(
            f"The FMU states of '{path}' are of t = {time:.12g} s, but the run begins at {start:.12g} s. Give the start "
            f"time {time!r}: start_time (--start-time)."
        )
    return _in_order(prepared, found), memory


def _content(archive: Archive, member: str) -> bytes:
    content = BytesIO()
    archive.copy(member, content)
    return content.getvalue()


def has_states(path: Path) -> bool:
    """Whether a file has FMU states of a system, so that others may replace them."""
    return has_member(path, _INDEX)


def write_states(
    path: Path,
    prepared: Prepared,
    instances: Sequence[Instance],
    time: float,
    memory: dict[str, Any],
) -> None:
    """Write the states of all instances at this time in s, and what the run remembers about events.

    Raises
    ------
    CallError
        If an FMU cannot serialize its state.
    FileError
        If the file cannot be written.
    """
    names = _names(prepared)
    states = {i.name: i.serialized() for i in instances if i.name in names}
    try:
        if len(names) == 1 and not memory:
            path.write_bytes(states[names[0]])
            return
        members = {name: f"states/{k}" for k, name in enumerate(names)}
        index: dict[str, Any] = {"time": time, "members": members, "events": memory}
        # what is very large is not packed: it could grow by more than is plausible when it is read
        is_large = sum(map(len, states.values())) > ANY_GROWTH
        method = zipfile.ZIP_STORED if is_large else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr(_INDEX, json.dumps(index, indent=2))
            for name, member in members.items():
                archive.writestr(member, states[name])
    except OSError as error:
        raise FileError(f"'{path}' cannot be written: {reason_of(error)}.") from error


def _names(prepared: Prepared) -> list[str]:
    """Instances with a state, which are the FMUs: tables and constraints have none."""
    return [
        planned.name
        for planned, component in zip(prepared.plan.instances, prepared.components, strict=True)
        if component.constraint is None and planned.model.instantiation_token
    ]


def _in_order(prepared: Prepared, states: dict[str, bytes]) -> list[bytes]:
    return [states.get(planned.name, b"") for planned in prepared.plan.instances]


def remembered(plan: Plan, executor: Executor, calendar: Calendar) -> dict[str, Any]:
    """What a run remembers about events besides its FMUs, as JSON: clocks, time events, values; empty if there is nothing.

    Times are exact, as [numerator, denominator] in s: another run may count in other units.
    """
    names = {k: f"{plan.instances[t.instance].name}.{t.name}" for k, t in enumerate(plan.triggers)}
    clocks = {names[k]: _clock(calendar, k) for k in calendar.next}
    events = {
        instance.name: float(time)
        for instance, time in zip(plan.instances, executor.next_events, strict=True)
        if not isinf(time)
    }
    held = {
        name: _plain(route, executor.store.values[route.source_type][route.source])
        for name, route in _held(plan)
    }
    memory = {"clocks": clocks, "nextEvents": events, "held": held}
    return memory if any(memory.values()) or has_calendar(plan) else {}


def has_calendar(plan: Plan) -> bool:
    """Whether a clock ticks by time."""
    return any(trigger.clock is not None for trigger in plan.triggers)


def recall(memory: Any, plan: Plan, executor: Executor, calendar: Calendar, time: float) -> None:
    """Go on with the memory of another run of this system.

    Parameters
    ----------
    memory
        From a file: anything.
    time : float
        The present time in s.

    Raises
    ------
    FileError, ValueError, TypeError, LookupError
        If it is no such memory.
    """
    numbers = {
        f"{plan.instances[t.instance].name}.{t.name}": k for k, t in enumerate(plan.triggers)
    }
    clocks = dict(memory["clocks"])
    if strange := sorted(clocks.keys() - numbers.keys()):
        raise FileError(f"The FMU states have other clocks than the system: {', '.join(strange)}.")
    for name, entry in clocks.items():
        _put(calendar, numbers[name], entry, Fraction(time))
    for intervals in executor.store.intervals.values():
        intervals.qualifier[:] = Qualifier.UNCHANGED  # what was told belongs to the initialization
    events = {str(name): float(at) for name, at in dict(memory["nextEvents"]).items()}
    executor.next_events[:] = [events.get(instance.name, inf) for instance in plan.instances]
    held = dict(memory["held"])
    for name, route in _held(plan):
        if name in held:
            place = executor.store.values[route.source_type][route.source]
            place[:] = _values(route, held[name], len(place))


def _clock(calendar: Calendar, k: int) -> Mapping[str, Any]:
    """A clock that ticks again."""

    def seconds(ticks: Any) -> list[int]:
        return list((Fraction(ticks) / calendar.resolution).as_integer_ratio())

    found: dict[str, Any] = {"next": seconds(calendar.exact(calendar.next[k]))}
    if (period := calendar.periods.get(k)) is not None:
        found["interval"] = seconds(period.interval)
    if (told := calendar.told.get(k)) is not None:
        found["told"] = seconds(told)
    return found


def _put(calendar: Calendar, k: int, entry: Any, time: Fraction) -> None:
    def ticks(name: str) -> Any:
        numerator, denominator = entry[name]
        return calendar.in_base(Fraction(int(numerator), int(denominator)))

    first = ticks("next")
    if Fraction(first) / calendar.resolution < time:
        raise ValueError("a clock whose next tick is over")
    calendar.put(k, first)
    if "interval" in entry:
        if (interval := ticks("interval")) <= 0:
            raise ValueError("a clock without a positive interval")
        calendar.periods[k] = Period(first, interval)
    if "told" in entry:
        calendar.told[k] = ticks("told")


def _held(plan: Plan) -> Iterator[tuple[str, Route]]:
    """Clocked outputs whose last values are held by inputs, by name."""
    for routes in plan.routes.values():
        for route in routes:
            if is_held(route.link):
                source = plan.instances[route.link.source].name
                yield f"{source}.{route.link.output.name}", route


def _plain(route: Route, values: Any) -> list[Any]:
    return [v.hex() if isinstance(v, bytes) else v for v in values.tolist()]


def _values(route: Route, given: Any, size: int) -> list[Any]:
    if not isinstance(given, list) or len(given) != size:
        raise ValueError("held values of another shape")
    if route.source_type is DataType.BINARY:
        return [bytes.fromhex(v) for v in given]
    if route.source_type is DataType.STRING:
        return [str(v) for v in given]
    return np.array(given, route.source_type.dtype).tolist()  # type: ignore[no-any-return]
