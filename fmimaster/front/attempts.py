"""All runs for one result: repeated where what was chosen does not do, and with a number on the error of the coupling.

Only what was chosen is changed, never what the user gives. All runs but those that write the results are hidden.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

from fmimaster.base.errors import (
    CallError,
    FileError,
    FmimasterError,
    FmuLostError,
    InputError,
    Interrupted,
    ProgramError,
    SimulationError,
)
from fmimaster.base.files import given_path
from fmimaster.base.text import listed
from fmimaster.configure.named import setting_text
from fmimaster.configure.settings import Settings
from fmimaster.front.single_run import Ran, hidden, judge, measured, simulated, within
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.files import write_metadata
from fmimaster.results.results import NotComparableError, Results
from fmimaster.results.statistics import CouplingError
from fmimaster.session.launch import OutputFile
from fmimaster.session.work_thread import ProgressCallback

if TYPE_CHECKING:
    from fmimaster.front.accuracy_pair import Pair
    from fmimaster.front.chosen_steps import ChosenSteps

log = logging.getLogger("fmimaster")

MOST_SECONDS = 2.0
"""CPU time in s of a run up to which a second one is not asked for: it takes twice as long."""

MOST_HIDDEN = 20_000_000
"""Values that a run may have to be tried with other couplings: hidden runs keep their rows in memory."""

PATIENCE = 10.0
"""Times :data:`MOST_SECONDS`: of a run that takes longer, no shorter steps are tried."""

BEGINNING_SECONDS, BEGINNING_SHARE = 1.0, 0.03
"""Wall time in s after which the second run of a longer one ends; or this share of the CPU time of the first one, if it is
more."""

BEGINNING_STEPS = 12
"""Number of steps of the first run that the second one must reach."""


class RunsForResult:
    """The runs for one result.

    Parameters
    ----------
    resume_from
        A checkpoint from which a run continues.
    take
        Gets both runs by which the error was estimated.
    """

    def __init__(
        self,
        settings: Settings,
        progress: ProgressCallback,
        output_file: OutputFile = None,
        resume_from: str | os.PathLike[str] | None = None,
        take: Callable[[Pair], None] = lambda _: None,
    ) -> None:
        self._given = self._settings = settings
        self._progress, self._output_file, self._resume_from = progress, output_file, resume_from
        self._take = take
        self._first: Prepared | None = None
        """By the settings that were given; None before they are prepared."""
        self._instead: list[Mapping[str, Any]] = []
        """Methods that are tried next, if a run ends with an error."""
        self._plainer: list[Mapping[str, Any]] = []
        """Couplings that are tried next, if outputs grow without bound."""
        self._next: Settings | None = None
        """Those of the next run; None after the last one."""
        self._told: list[str] = []
        """Why there is more than one run, and what the others have shown."""
        self._is_interrupted = False
        """Whether a hidden run was, whose process has handled it."""
        self._chooses_steps = False
        """Whether neither the user nor the system gives a step size, and runs can be repeated."""

    def run(self) -> Results:
        """Run until nothing has to be repeated; the warnings are those of the last run, and why it is not the first."""
        failed: SimulationError | None = None
        while True:
            self._next = None
            try:
                ran = simulated(
                    self._settings,
                    self._progress,
                    self._output_file,
                    self._resume_from,
                    self._begun,
                    self._complete,
                )
            except (SimulationError, InputError, ProgramError) as error:
                # what is tried next may be impossible
                failed = error if isinstance(error, SimulationError) else failed
                if failed is None or isinstance(error, Interrupted):
                    raise
                self._next = self._after(failed)
                if self._next is None:
                    raise failed from failed.__cause__
            if self._is_interrupted:
                late = Interrupted("Interrupted when the simulation had ended.")
                late.results = ran.results
                raise late
            if self._next is None:
                judge(self._given, ran.found, ran.results)
                return ran.results
            self._settings = self._next

    def _begun(self, prepared: Prepared) -> None:
        if self._first is None:
            self._first = prepared
            self._instead = list(prepared.chosen.instead)
            self._plainer = list(prepared.chosen.plainer)
            schedule, may_repeat = prepared.schedule, self._given.checkpoint is None
            is_open = self._given.step_size is None and (
                schedule.is_chosen or schedule.is_suggested
            )
            self._chooses_steps = is_open and may_repeat and not self._why_once()

    @cached_property
    def _steps(self) -> ChosenSteps | None:
        """Their choice, if steps are chosen."""
        if not self._chooses_steps:
            return None
        from fmimaster.front.chosen_steps import ChosenSteps  # not for a component alone

        assert self._first is not None
        return ChosenSteps(self._first.schedule, PATIENCE * MOST_SECONDS)

    # Repeated with another method

    def _after(self, error: SimulationError) -> Settings | None:
        """The next method, if a run has ended with an error; None if there is none."""
        results = error.results
        if results is not None and results.statistics.diverging:
            found = self._not_growing(results)
            if found is not None:
                return found
        words = f"the run has ended with an error ({first_sentence(error)})"
        other = self._first and self._first.other_loops(error, self._settings)
        if other and not self._is_last(words):
            self._tell(f"{words}, so it was repeated {other[1]}")
            return replace(self._given, loops=other[0])
        if (whole := self._undivided(error)) and not self._is_last(words):
            self._tell(f"{words}, so it was repeated with undivided steps")
            return whole
        if not self._instead or self._is_last(words):
            return None
        change = self._instead.pop(0)
        self._tell(f"{words}, so it was repeated with {_in_words(change)}")
        return replace(self._given, **change)

    def _undivided(self, error: SimulationError) -> Settings | None:
        """The settings without parts of steps, if they were chosen, and an FMU that did them has failed."""
        if self._first is None or self._settings.algorithm is not None:
            return None
        from fmimaster.algorithms.gauss_seidel import undivided  # not for a component alone

        completed = self._first.completed(self._settings)
        name = error.instance if isinstance(error, CallError) else ""
        algorithm = undivided(completed.algorithm_used, self._first.plan, name)
        return replace(completed, algorithm=algorithm) if algorithm else None

    def _not_growing(self, results: Results) -> Settings | None:
        """The first plainer coupling by which outputs do not grow without bound; None if there is none."""
        plainer, self._plainer = self._plainer, []
        names = listed([f"'{name}'" for name in results.statistics.diverging], 3)
        what = f"outputs grew without bound ({names})"
        is_large = results.statistics.rows * max(1, len(results.names)) > MOST_HIDDEN
        if not plainer or is_large or self._is_last(what):
            return None
        assert self._first is not None
        completed = self._first.completed(self._settings)
        for change in plainer:
            try:
                found = hidden(completed, **change)
            except Interrupted:
                return None  # so is the run before it
            except FmimasterError:
                continue
            if not found.statistics.diverging:
                self._tell(f"{what}, so the run was repeated with {_in_words(change)}")
                return replace(completed, **change)
        return None

    def _tell(self, why: str) -> None:
        self._told.append(why)
        log.warning("%s", why)

    def _is_last(self, why: str) -> bool:
        """Whether the run cannot be repeated, which is logged."""
        reason = self._why_once()
        if reason:
            log.warning("%s; it is not repeated with another method, because %s", why, reason)
        return bool(reason)

    def _why_once(self) -> str:
        """Why a run cannot be repeated; empty if it can."""
        assert self._first is not None
        outside = _acting_outside([self._first])
        if self._given.real_time_factor is not None:
            return "it is a run in real time"
        if self._resume_from is not None:
            return "it continues from a checkpoint"
        if not isinstance(self._output_file, str | os.PathLike | None):
            return "its rows were written to a stream"
        return f"'{outside}' acts outside of the run" if outside else ""

    # What is known when a run has ended

    def _complete(self, ran: Ran) -> Ran:
        """The run with its number; or the settings of the next run are set."""
        is_whole = ran.reaches(ran.results.metadata["end_time"])
        if ran.results.statistics.diverging and is_whole:
            shorter = self._steps and self._steps.shorter(self._settings, ran)
            self._next = shorter or self._not_growing(ran.results)
            if self._next is not None:
                return ran
        found, notes = None, tuple[str, ...]()
        if self._given.error_estimate is not False and any(s.couples for s in ran.structures):
            try:
                found, notes = self._measured(ran)
            except NotComparableError as error:
                found = CouplingError(reason=str(error))
            except Exception as error:  # whatever it is, the run is complete
                found = CouplingError(reason=f"the second run has failed ({first_sentence(error)})")
                self._is_interrupted = isinstance(error, Interrupted)
        return ran if self._next is not None else self._noted(ran, found, notes)

    def _measured(self, ran: Ran) -> tuple[CouplingError, tuple[str, ...]]:
        """The error of the coupling, and notes; if it is too large for steps that are chosen, shorter ones come next."""
        from fmimaster.front.accuracy_pair import Pair, half
        from fmimaster.front.coupling_error import coupling_error, order_of

        if reason := self._why_not_measured(ran):
            return CouplingError(reason=reason), ()
        seconds, rows = self._seconds_of_second(ran), ran.whole(self._output_file)
        completed, rule = ran.completed(self._settings), ran.prepared.schedule.rule
        order = order_of(completed, holds_some=ran.holds_some)
        recorded = ran.recorded
        if rows is None:  # the beginning once more takes less time than to read the file
            if self._given.error_estimate is None:
                seconds = min(seconds, BEGINNING_SECONDS)
            rows = hidden(completed, within(seconds), step_size=rule)
        names = [name for name, column in recorded.items() if column.is_comparable]
        pair = None
        steps = self._steps if seconds == inf else None
        longer = steps and self._given.error_estimate is None and steps.longer(self._settings, rule)
        if longer:
            try:
                pair = Pair(hidden(completed, step_size=longer), rows, names)
            except (FmimasterError, NotComparableError):
                log.info("steps twice as long cannot be compared")
        of_fine = pair is not None
        if pair is None:
            try:
                second = hidden(completed, within(seconds), step_size=half(rule, rows))
                pair = Pair(rows, second, names)
            except (
                CallError
            ) as error:  # an FMU may take steps of its own size only, or multiples of it
                if seconds < inf or isinstance(error, FmuLostError):
                    raise
                second = hidden(completed, step_size=replace(rule, size=2 * rule.exact_size))
                pair, of_fine = Pair(second, rows, names), True
        if pair.explodes:
            why = "an output grows without bound, faster with shorter steps"
            self._tell(f"{why}: the coupling is not stable, as in loops that are not solved")
            raise NotComparableError(why)
        self._take(pair)
        found = coupling_error(pair, recorded, order, of_fine=of_fine)
        if found.until is None and not ran.reaches(rows.time[-1]):
            found = replace(found, until=float(rows.time[-1]))  # of a file of rows
        if steps is None:
            return found, ()
        self._next, notes = steps.judged(self._settings, ran, found.estimate or 0.0, order)
        return found, notes

    def _why_not_measured(self, ran: Ran) -> str:
        """Why there is no second run; empty if there is one."""
        prepared = ran.prepared
        if self._resume_from is not None:
            return "the run continues from a checkpoint"
        if self._given.used.on_fault.isolates:
            return "a second run may have other faults (--on-fault)"
        if not ran.reaches(ran.results.metadata["end_time"]):
            return "the run has ended before its stop time"
        if self._given.output_interval is not None and prepared.schedule.rule.halved() is None:
            return "only some of the communication points are recorded (--output-interval)"
        asks = "--check-step (error_estimate=True) measures it"
        outside = _acting_outside(ran.structures)
        if outside and self._given.error_estimate is None:
            return f"'{outside}' acts outside of the run (can_go_back is False); {asks}"
        share = self._seconds_of_second(ran) / (2.0 * ran.seconds)
        is_short = ran.results.statistics.steps * share < BEGINNING_STEPS
        return f"the run took {ran.seconds:.2g} s; {asks}" if is_short else ""

    def _seconds_of_second(self, ran: Ran) -> float:
        """Wall time in s after which the second run ends; infinite if it is whole."""
        most = MOST_SECONDS if self._steps is None else self._steps.most_seconds
        is_whole = self._given.error_estimate is True or ran.seconds <= most
        return inf if is_whole else max(BEGINNING_SECONDS, BEGINNING_SHARE * ran.seconds)

    def _noted(self, ran: Ran, found: CouplingError | None, notes: tuple[str, ...]) -> Ran:
        """The run with its number, and with why it is not the first one; also in its files."""
        if found is None and not self._told:
            return self._with_loops_told(ran)
        from fmimaster.front.coupling_error import AIM, warnings_of

        size, completed = ran.prepared.schedule.rule.exact_size, ran.completed(self._settings)
        of_bonds = tuple[str, ...]()
        of_number = () if found is None else (*warnings_of(completed, float(size), found),)
        if found is not None and found.outputs:
            if found.until is None:
                ran = measured(ran, is_small=not of_number and (found.estimate or 0.0) <= AIM)
            if ran.prepared.plan.power_bonds:
                from fmimaster.front.bond_directions import reversed_bonds  # few systems have them

                of_bonds = tuple(reversed_bonds(completed, ran.prepared, hidden))
        warnings = (*self._told, *of_number, *of_bonds)
        statistics = replace(
            ran.results.statistics,
            coupling_error=found,
            warnings=(*ran.results.statistics.warnings, *warnings),
            notes=(*ran.results.statistics.notes, *notes),
        )
        metadata = {
            **ran.results.metadata,
            "notes": [*ran.results.metadata["notes"], *notes],
            "warnings": list(statistics.warnings),
        }
        if found is not None:
            errors = {output.name: output.error for output in found.outputs}
            metadata["coupling_error"] = errors or f"not measured: {found.reason}"
            if found.until is not None:
                metadata["coupling_error_until"] = found.until
        if isinstance(self._output_file, str | os.PathLike):
            try:
                write_metadata(given_path(self._output_file), metadata)
            except (FileError, OSError) as error:
                log.warning("The coupling error is not in '%s': %s", self._output_file, error)
        results = replace(ran.results, statistics=statistics, metadata=metadata)
        return self._with_loops_told(replace(ran, results=results, found=(*ran.found, *warnings)))

    def _with_loops_told(self, ran: Ran) -> Ran:
        """The run; warnings about its loops are in the log, if no measured error has replaced them."""
        if self._given.error_estimate is not False:  # else they were there at once
            for text in ran.unsolved:
                if text in ran.results.statistics.warnings:
                    log.warning("%s", text)
        return ran


def _acting_outside(structures: Sequence[Prepared]) -> str:
    """A component in Python whose steps have effects that cannot be undone; empty if there is none."""
    every = (c for structure in structures for c in structure.components)
    return next((c.name for c in every if c.python and not c.python.can_go_back), "")


def _in_words(change: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={setting_text(value)}" for name, value in change.items())


def first_sentence(error: Exception) -> str:
    """Of the message of an error; its type, if it is none of fmimaster."""
    text = str(error).partition("\n")[0]
    if isinstance(error, FmimasterError):
        return text.partition(". ")[0].rstrip(".")
    return f"{type(error).__name__}: {text}"
