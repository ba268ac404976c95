"""What a checkpoint says about its run: its settings, what must not have changed meanwhile, and all that changes in a run.

The rows, the events, the steps and the calls of FMUs that cannot save their state are in the file beside the checkpoint
(:mod:`fmimaster.session.checkpoint_file`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import escape
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, TypeVar

from numpy.typing import NDArray

from fmimaster.base.codec import (
    Decoder,
    Encoder,
    NotPlainError,
    UnknownContentError,
)
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, OptionError
from fmimaster.base.files import given_path
from fmimaster.base.installation import installed_version
from fmimaster.configure.input_signals import InputSignals
from fmimaster.configure.setting_kinds import Row
from fmimaster.configure.setting_rows import ROWS
from fmimaster.configure.settings import Settings
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import is_dynamic, structure_note
from fmimaster.record.plain_data import steps_as_bytes
from fmimaster.results.facts import facts_path
from fmimaster.results.files import begins_with
from fmimaster.results.formats import FORMATS
from fmimaster.results.results import Results
from fmimaster.results.statistics import LoopStatistics
from fmimaster.run.rows import RowBlock
from fmimaster.session.checkpoint_file import CheckpointFile, damaged
from fmimaster.session.run_statistics import SessionParts
from fmimaster.system.archive import source_hash
from fmimaster.system.model import DataType

_WRITTEN = {row.name: row.beside for row in ROWS.values() if row.writes}
"""Settings that are files which a run writes → what follows in their names on that of the checkpoint."""

AnySettings = TypeVar("AnySettings", bound=Settings)


@dataclass(frozen=True)
class RunOrigin:
    """What a checkpoint says about its run, besides the state.

    Parameters
    ----------
    fingerprint : what → hash or version
    settings, parts : str, list of bytes
        The settings as written by an Encoder; empty if they cannot be written.
    not_written : str
        Why they cannot.
    output_file : str
    modules : frozenset of str
        Modules of the user whose objects may be in the state.
    """

    fingerprint: dict[str, str]
    settings: str
    parts: list[bytes]
    not_written: str
    output_file: str
    modules: frozenset[str]


def origin_of(
    settings: Settings, structures: Sequence[Prepared], output_file: Path | None
) -> RunOrigin:
    """What the checkpoints of a run say about it; its structure at the start is the first one."""
    encoder, not_written = Encoder(), ""
    try:
        text = encoder.text(
            {name: _portable(row, getattr(settings, name)) for name, row in ROWS.items()}
        )
    except NotPlainError as error:
        text, not_written = "", str(error)
    modules = {type(getattr(settings, name)).__module__ for name in ROWS}
    return RunOrigin(
        fingerprint(settings, structures),
        text,
        encoder.parts if text else [],
        not_written,
        "" if output_file is None else str(output_file),
        frozenset(modules),
    )


def settings_in(
    path: Path,
    file: CheckpointFile,
    kind: type[AnySettings],
    **files: str | os.PathLike[str] | None,
) -> AnySettings:
    """The settings in a checkpoint. The checkpoint can be of another person, so it does not decide which files are
    written: all are beside it, with names that follow from its own.

    Parameters
    ----------
    kind : class
        Of the settings: Simulation.
    files : setting → path or None
        Other places for files that the run writes.

    Raises
    ------
    OptionError
        If it does not contain them, because they contain objects that cannot be written.
    FileError
        If it is damaged.
    """
    if not file.settings:
        raise OptionError(
            f"The checkpoint '{path}' does not contain the settings of its run: {file.not_written} cannot be written to "
            "a file. Continue in Python with the same simulation: fmimaster.resume(path, simulation)."
        )
    try:
        given = Decoder(file.parts).value(file.settings)
        written = [setting for setting in _WRITTEN if given.get(setting) is not None]
        given.update((s, path.with_name(f"{path.name}{_WRITTEN[s]}")) for s in written)
        given.update((setting, place) for setting, place in files.items() if place is not None)
        settings = kind(**given)
    except (UnknownContentError, TypeError, AttributeError) as error:
        raise damaged(path, error) from None
    for setting in written:
        if files.get(setting) is None:
            _refuse_link(given[setting])
    return settings


def results_beside(path: Path, file: CheckpointFile) -> Path | None:
    """The file to which a run writes its results that continues from a checkpoint, unless the user says another one: beside
    the checkpoint, with the name that it had; None if the run wrote none, or to a pipe.

    Raises
    ------
    FileError
        If it is a link, or has the name of a hidden file.
    """
    name = PurePath(file.output_file).name
    if PurePath(name).suffix.lower() not in FORMATS:
        return None
    place = path.with_name(name)
    if name.startswith("."):
        raise _not_replaced(place, "its name is that of a hidden file")
    beside = f"{escape(place.stem)}.intermediate.*{place.suffix}"
    for written in (place, *place.parent.glob(beside)):
        _refuse_link(written)
        _refuse_link(facts_path(written))
    return place


def is_place_of_results(place: Path | None, path: Path, file: CheckpointFile) -> bool:
    """Whether a run writes its results where its checkpoint says."""
    return place is not None and place == path.parent / PurePath(file.output_file).name


def check_is_of_run(place: Path, rows: Results) -> None:
    """Refuse to replace a file of results that does not begin with the rows of the run that continues.

    Raises
    ------
    FileError
    """
    if place.exists() and not begins_with(place, rows):
        raise _not_replaced(place, "it does not begin with the rows of this run")


def _refuse_link(place: Path) -> None:
    if place.is_symlink():  # it could lead to any file
        raise _not_replaced(place, "it is a link")


def _not_replaced(place: Path, why: str) -> FileError:
    return FileError(
        f"'{place}', which the checkpoint names, is not written: {why}. Move it away, or give another file: output_file "
        "(--output-file), fmi_log_file (--fmi-log-file), final_fmu_state (--final-fmu-state-file)."
    )


def _portable(row: Row, value: Any) -> Any:
    """A setting that means the same in another working directory."""
    if row.is_file and isinstance(value, str | os.PathLike):
        return Path(given_path(value)).absolute()
    return value


def fingerprint(settings: Settings, structures: Sequence[Prepared]) -> dict[str, str]:
    """What two runs must have in common so that one can continue the other: what → its version or hash."""
    found = {"version of fmimaster": installed_version()}
    used = {
        p.name: c for s in structures for p, c in zip(s.plan.instances, s.components, strict=True)
    }
    for name, component in used.items():
        is_made = component.python is not None or component.constraint is not None
        if not is_made and component.source.is_file:
            found[f"file of '{name}'"] = source_hash(component.source)
    if isinstance(settings.input, InputSignals):
        found["input"] = settings.input.digest
    text = sha256()
    for part in (part for prepared in structures for part in _facts(settings, prepared)):
        text.update(repr(part).encode())
    if is_dynamic(structures[0].whole):
        text.update(structure_note(structures[0].whole).encode())
    found["system, or other settings"] = text.hexdigest()
    return found


def refuse_unkept(structures: Sequence[Prepared]) -> None:
    """Refuse checkpoints of a system whose structure changes, if a component cannot be continued over a change.

    Raises
    ------
    OptionError
    """
    for prepared in structures:
        for planned, component in zip(prepared.plan.instances, prepared.components, strict=True):
            solver, capabilities = prepared.solvers.get(planned.name), planned.model.capabilities
            if component.constraint is not None:
                why = "a constraint must be met at the start values"
            elif solver is not None and solver.remembers:
                why = "its solver remembers earlier steps"
            elif component.python is None and not capabilities.can_serialize_fmu_state:
                why = "its state cannot be written to a file (canSerializeFMUState is false)"
            else:
                continue
            raise OptionError(
                f"checkpoint is not possible with '{planned.name}' in a system whose structure changes (a component or "
                f"connection has a lifetime): {why}. Leave checkpoint (--checkpoint) out."
            )


def _facts(settings: Settings, prepared: Prepared) -> Iterator[object]:
    """Facts about a run that determine its results, besides the files."""
    plan, programs, schedule = prepared.plan, prepared.programs, prepared.schedule
    for i in plan.instances:
        yield i.name, i.start_values, i.tolerance.value, i.event_mode, i.may_return_early
    yield [(c.constraint, c.adaptation, c.priority) for c in prepared.components]
    yield from ((key, str(slot)) for key, slot in plan.layout.slots.items())
    yield from sorted(map(str, plan.routes.items()))
    yield [(c.name, c.column) for c in plan.recorded], settings.output_interval
    yield schedule.start, schedule.stop, schedule.rule, [*schedule.points]
    yield prepared.completed(settings).event_clock, settings.solver
    for variant in (*programs.variants, *filter(None, [programs.restart])):
        yield [str(instruction) for instruction in variant.attempt.instructions]
    yield [str(instruction) for instruction in programs.initialize.instructions]


# All that changes in a run --------------------------------------------------------------------------------------------

_NOT_SAVED = frozenset({"timeline", "stretch", "asked", "pauses", "step_log", "event_log"})
"""Parts of the state of a run that its preparation gives, that are empty between steps, or that are saved otherwise."""


def snapshot(session: SessionParts) -> dict[str, Any]:
    """The state of a session between two steps, without rows, events, steps, and the states of FMUs."""
    s, executor = session.state, session.executor
    return {
        "state": {n: v for n, v in vars(s).items() if n not in _NOT_SAVED},
        "last steps": steps_as_bytes(s.step_log.part(s.step_log.ended)),
        "last size": s.step_log.size,
        "late": dict(s.event_log.late),
        "delayed": dict(s.event_log.delayed),
        "registers": executor.registers.copy(),
        "store": executor.store.copy(),
        "hooks": [(h.name, h.remembered(), h.solutions) for h in session.programs.hooks],
        "recorder": session.rows.recorder.remembered(),
        "row": last_row(executor.rows),
        "seconds": session.seconds,
        "earlier": vars(session.earlier),
    }


def put_back(session: SessionParts, saved: dict[str, Any]) -> None:
    """Bring an initialized session to the state of :func:`snapshot`; its FMUs and its rows are not changed."""
    s, executor = session.state, session.executor
    for name, value in saved["state"].items():
        setattr(s, name, value)
    earlier = vars(session.earlier)
    earlier.update({name: saved["earlier"][name] for name in earlier})  # what it has, and no more
    s.step_log.size = saved["last size"]
    s.event_log.late = saved["late"]
    s.event_log.delayed = saved["delayed"]
    executor.registers.restore(saved["registers"])
    executor.store.restore(saved["store"])
    hooks = session.programs.hooks
    for hook, (name, numbers, _) in zip(hooks, saved["hooks"], strict=False):
        if hook.name == name and numbers:
            hook.remember(numbers)
    # hooks of programs of events are made when such an event happens first: what they had solved before is kept
    later = (solutions for _, _, solutions in saved["hooks"][len(hooks) :])
    session.earlier.solved += [LoopStatistics(*s) for s in later if s is not None and s.sweeps]
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
