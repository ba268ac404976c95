"""A run is prepared: its loader, its checks, and the files that it reads and writes."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from fmimaster.base.errors import AccuracyError, FileError, OptionError
from fmimaster.base.files import check_file_to_write, given_path, refuse_to_overwrite
from fmimaster.configure.setting_rows import ROWS
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.prepare.prepared import Prepared
from fmimaster.prepare.structures import Structures, structures_of
from fmimaster.results.facts_writer import FactsWriter, finish_facts
from fmimaster.results.files import facts_writer, row_writer
from fmimaster.results.row_writer import RowWriter
from fmimaster.session.attendance import Attendance
from fmimaster.session.work_thread import ProgressCallback, Signals

if TYPE_CHECKING:
    from fmimaster.session.checkpoints import Checkpoints

log = logging.getLogger("fmimaster")

AnyAttendance = TypeVar("AnyAttendance", bound=Attendance)

OutputFile = str | os.PathLike[str] | TextIO | None
"""The file that gets the rows during a run: a path, a stream of text, or none."""


def attended_run(
    settings: Settings,
    signals: Signals,
    progress: ProgressCallback,
    output_file: OutputFile,
    files: ExitStack,
    resume_from: str | os.PathLike[str] | None = None,
    *,
    kind: Callable[..., AnyAttendance],
    varied: Collection[str] = (),
) -> AnyAttendance:
    """A run that can be started; its files are complete when ``files`` is closed.

    Parameters
    ----------
    resume_from : path, optional
        A checkpoint from which it continues.
    kind
        The class of what is returned.
    varied
        Names of start values that change from run to run.

    Raises
    ------
    InputError, ProgramError
        If it cannot be simulated so.
    AccuracyError
        With ``strict``, if the results cannot be accurate.
    """
    loader = Loader(
        logging_on=settings.debug_logging,
        logs_calls=settings.logs_calls,
        call_log_file=None if settings.fmi_log_file is None else given_path(settings.fmi_log_file),
    )

    def made(given: Settings) -> tuple[Prepared, Structures | None, Settings]:
        prepared = prepare(given, loader, varied=varied)
        completed = prepared.completed(settings)
        structures = structures_of(completed, prepared, partial(prepare, loader=loader))
        if settings.strict and prepared.accuracy_warnings:
            raise AccuracyError(prepared.accuracy_warnings)
        return prepared, structures, completed

    try:
        prepared, structures, completed = made(settings)
        last = [prepared] if structures is None else structures.last
        _check_states(settings, prepared, last)
        read = files_read(settings, prepared)
        if settings.fmi_log_file is not None:
            refuse_to_overwrite(given_path(settings.fmi_log_file), read)
        if isinstance(output_file, str | os.PathLike):
            # FMUs may change the working directory
            output_file = given_path(output_file).absolute()
            refuse_to_overwrite(output_file, read)
        checkpoints = _checkpoints(settings, prepared, structures, output_file, resume_from)
        if checkpoints is not None and structures is not None:
            past = checkpoints.structure()
            if past.changed_at is not None:
                prepared = structures.at(past.changed_at, past.happened)
        writer = facts = None
        if output_file is not None:
            writer = row_writer(output_file)
            facts = facts_writer(output_file, writer)
    except BaseException:
        loader.close()
        raise

    later = prepared.programs.unsolved if settings.error_estimate is not False else ()
    for text in prepared.warnings:  # at once: the run may take long
        if text not in later:
            log.warning("%s", text)
    run = kind(
        prepared,
        loader,
        completed,
        signals,
        writer=writer,
        facts=facts,
        progress=progress,
        checkpoints=checkpoints,
        structures=structures,
        output_file=output_file if isinstance(output_file, str | os.PathLike) else None,
        again=lambda measured: made(replace(settings, loops=measured)),
    )
    if writer is not None:
        files.enter_context(writer)
    files.enter_context(_facts_written(run, writer, facts))
    return run


def _checkpoints(
    settings: Settings,
    prepared: Prepared,
    structures: Structures | None,
    output_file: OutputFile,
    resume_from: str | os.PathLike[str] | None,
) -> Checkpoints | None:
    """The checkpoints of a run, if it writes any or continues from one; they are checked before an FMU is instantiated.

    Raises
    ------
    FileError, OptionError
        If the file cannot be written or read, or belongs to another run.
    """
    given = settings.checkpoint if resume_from is None else resume_from
    if given is None:
        return None
    from fmimaster.configure.checkpoint_interval import interval_of
    from fmimaster.session.checkpoint_file import CheckpointFile, check_fingerprint  # few runs
    from fmimaster.session.checkpoint_file import is_checkpoint as is_ours
    from fmimaster.session.checkpoints import Checkpoints
    from fmimaster.session.origin import is_place_of_results, origin_of, refuse_unkept

    path = given_path(given).absolute()
    rows = Path(output_file) if isinstance(output_file, str | os.PathLike) else None
    every = [prepared] if structures is None else structures.prepared
    if structures is not None:
        refuse_unkept(every)
    origin, resumed, guarded = origin_of(settings, every, rows), None, None
    if resume_from is not None:
        resumed = CheckpointFile.read(path)
        check_fingerprint(path, resumed.fingerprint, origin.fingerprint)
        guarded = rows if is_place_of_results(rows, path, resumed) else None
    else:
        check_file_to_write(path, "checkpoints", files_read(settings, prepared), is_ours)
    return Checkpoints(path, interval_of(settings.checkpoint_interval), origin, resumed, guarded)


def files_read(settings: Settings, prepared: Prepared) -> list[Path]:
    """The files that a simulation reads."""
    files = [component.source.path for component in prepared.components]
    given = [getattr(settings, r.name) for r in ROWS.values() if r.is_file and not r.writes]
    return files + [Path(f) for f in given if isinstance(f, str | os.PathLike)]


def refuse_one_file_for_two(settings: Settings, output_file: object) -> None:
    """Refuse the same file for two of results, FMU states, and the log of FMI calls."""
    written: dict[Path, str] = {}
    given = [(row.writes, getattr(settings, row.name)) for row in ROWS.values() if row.writes]
    for what, file in [("the results", output_file), *given]:
        if isinstance(file, str | os.PathLike):
            path = given_path(file).resolve()
            # several outputs may go to one device or pipe
            if path in written and not (path.exists() and not path.is_file()):
                raise OptionError(
                    f"'{os.fspath(file)}' is given for {written[path]} and for {what}. Give two files."
                )
            written[path] = what


def _check_states(settings: Settings, prepared: Prepared, last: Sequence[Prepared]) -> None:
    """Refuse files of FMU states that cannot be read or written, before anything is instantiated.

    Parameters
    ----------
    prepared, last
        The structure at the start, and those in which the run can end.
    """
    if settings.initial_fmu_state is None and settings.final_fmu_state is None:
        return
    from fmimaster.session.fmu_states import (  # few runs
        has_states,
        read_states,
        refuse_unserializable,
    )

    if settings.initial_fmu_state is not None:
        refuse_unserializable(prepared)
        read_states(given_path(settings.initial_fmu_state), prepared)
    if settings.final_fmu_state is not None:
        for structure in last:
            refuse_unserializable(structure)
        path = given_path(settings.final_fmu_state).absolute()
        check_file_to_write(
            path, "the final FMU states", files_read(settings, prepared), has_states
        )


@contextmanager
def _facts_written(
    run: Attendance, writer: RowWriter | None, facts: FactsWriter | None
) -> Iterator[None]:
    """Complete the facts beside the file at the end. An exception of the run takes precedence over a failure to
    write."""

    def write() -> None:
        if facts is None or (run.session is None and run.left is None):
            return
        if writer is None or not writer.has_written:
            facts.discard()
        elif run.left is not None:
            finish_facts(facts, *run.left)
        elif run.session is not None:
            finish_facts(facts, *run.session.new_facts, run.session.results())

    try:
        yield
    except BaseException:
        try:
            write()
        except FileError as error:
            log.warning("%s", error)
        raise
    write()
