"""Numbers of steps and calls, and wall times, of a run."""

from __future__ import annotations

from collections.abc import Sequence

from fmimaster.base.data import dataclass
from fmimaster.base.text import count, in_a_line


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """Numbers of calls, and wall time, of one instance during a run."""

    name: str
    calls: int
    """Calls of DoStep."""
    seconds: float
    """Wall time in s inside these calls; the kernel estimates it from some of them."""
    restores: int = 0
    """Number of times that its saved FMU state was restored."""
    events: int = 0
    """Number of times that it entered Event Mode."""


@dataclass(frozen=True, slots=True)
class LoopStatistics:
    """Numbers of solutions and sweeps of an algebraic loop during a run."""

    variables: tuple[str, ...]
    """``"instance.variable"``, in the order of names."""
    solutions: int
    sweeps: int
    most_sweeps: int
    """Largest number of sweeps of a solution."""

    def __add__(self, other: LoopStatistics) -> LoopStatistics:
        """The sum of two statistics of the same loop."""
        return LoopStatistics(
            self.variables,
            self.solutions + other.solutions,
            self.sweeps + other.sweeps,
            max(self.most_sweeps, other.most_sweeps),
        )

    def line(self) -> str:
        """One line for the end of a run."""
        shown = ", ".join(self.variables[:MOST_NAMES])
        more = len(self.variables) - MOST_NAMES
        shown += f" and {more} more" if more > 0 else ""
        times, sweeps = count(self.solutions, "time"), count(self.sweeps, "sweep")
        return f"loop of {in_a_line(shown)}: solved {times} in {sweeps}, at most {self.most_sweeps} for one solution"


@dataclass(frozen=True, slots=True)
class FallBack:
    """What a run has done in a less exact way than intended, because of an FMU or a setting."""

    what: str
    """In words."""
    times: int
    """How often."""

    def line(self) -> str:
        """One line for the end of a run."""
        return f"{in_a_line(self.what)}: {count(self.times, 'time')}"


@dataclass(frozen=True, slots=True)
class RealTimeStatistics:
    """How late the steps of a run in real time were, by wall time.

    A step that was ready in time ends some microseconds late, since the operating system wakes up the run late.
    """

    factor: float
    """Simulated seconds per second of wall time."""
    steps: int
    late: int
    """Steps that were not ready at their time."""
    largest: float
    """The largest lateness of all steps in s."""
    mean: float
    """The mean lateness of all steps in s."""
    waited: float
    """How long steps have waited for their time, in s."""

    def line(self) -> str:
        """One line for the end of a run."""
        late = f"{self.late} of {count(self.steps, 'step')} not ready in time"
        ended = f"ended at most {1e3 * self.largest:.3g} ms after their time, {1e3 * self.mean:.3g} ms on average"
        return f"at {self.factor:g} x real time: {late}; steps {ended}"


@dataclass(frozen=True, slots=True)
class BondStatistics:
    """Energy errors of a power bond during a run.

    Half the residual power is the mean local error of the powers of both ends. It is not a bound of the global error,
    which accumulates.

    Source: Sadjina et al. (2017), eq. (7) to (10).
    """

    name: str
    mean_error: float
    """Mean of half the absolute residual power in W."""
    residual_energy: float
    """In J; positive if the coupling has created energy."""
    transmitted_energy: float
    """In J, from the first component to the second one."""
    largest_residual: float
    """Largest absolute residual power at the end of a step in W."""
    largest_at: float
    """Time of the largest residual power in s."""
    event_energy: float = 0.0
    """Residual energy in J of steps with an event inside that made values jump; the other figures do not include it."""
    scale: float | None = None
    """Energy scale of the system in J."""

    @property
    def share(self) -> float | None:
        """Residual energy as a share of the scale; None if the bond has none."""
        return None if self.scale is None else self.residual_energy / self.scale

    def row(self) -> tuple[str, ...]:
        """For the end of a run, under the titles of :data:`BOND_TITLES`."""
        return (
            in_a_line(self.name),
            f"{self.mean_error:.4g} W",
            f"{self.residual_energy:.4g} J",
            _in_percent(self.share),
            f"{self.largest_residual:.4g} W",
            f"{self.largest_at:.6g} s",
            f"{self.event_energy:.4g} J",
        )


def _in_percent(share: float | None) -> str:
    """With two decimals; a share of a coupling that is unstable is very large, and has three digits."""
    if share is None:
        return "-"
    return f"{share:.2%}" if abs(share) < 10.0 else f"{100.0 * share:.3g}%"


BOND_TITLES = (
    "power bond",
    "mean error",
    "residual energy",
    "of scale",
    "largest",
    "at",
    "at events",
)
"""Titles of the rows of power bonds."""

MOST_NAMES = 8
"""Most variables of a loop that are named; the others are counted."""

PEAK, SHOWN_PEAK = 5.0, 0.05
"""The largest error in time that is printed beside the root mean square: so many times as large, and at least this one."""

LEAST_SHOWN = 1e-6
"""Smallest coupling error that is printed as a number: smaller ones have rounding errors."""


@dataclass(frozen=True, slots=True)
class OutputError:
    """Estimated coupling error of an output or a state."""

    name: str
    """Of its column; of an element of an array ``"x[1]"``."""
    error: float
    """Root mean square over time, relative to the largest absolute value of the column."""
    largest: float = 0.0
    """The largest error, relative to the same value."""
    time: float = 0.0
    """Its time in s."""


@dataclass(frozen=True, slots=True)
class CouplingError:
    """The error of a run that comes from its communication steps, estimated by a second run with other steps.

    It is that of the coupling: errors of the FMUs' own solvers are the same in both runs, and not seen.

    Source: Richardson (1911).
    """

    outputs: tuple[OutputError, ...] = ()
    """Of each recorded continuous output and state, the largest error first."""
    events: tuple[int, int] = (0, 0)
    """Numbers of events of the run with longer steps and the one with shorter ones, without those that changed inputs
    cause."""
    with_longer: bool = False
    """Whether the other run had steps twice as long, not half as long."""
    until: float | None = None
    """Time in s until which it was measured; None for the whole run."""
    reason: str = ""
    """Why it was not measured, with the remedy; empty if it was."""

    @property
    def worst(self) -> OutputError | None:
        """The output with the largest error; None if it was not measured."""
        return self.outputs[0] if self.outputs else None

    @property
    def estimate(self) -> float | None:
        """The largest error; None if it was not measured."""
        return self.outputs[0].error if self.outputs else None

    @property
    def other_steps(self) -> str:
        """The steps of the other run, in those of the run: ``"half"`` or ``"twice"``."""
        return "twice" if self.with_longer else "half"

    @property
    def origin(self) -> str:
        """How the error was found."""
        run = f"estimated by a second run with steps {self.other_steps} as long"
        if self.until is None:
            return run
        return f"{run} until t = {self.until:.3g} s; --error-estimate measures all of the run"

    def __str__(self) -> str:
        """The line at the end of a run."""
        if self.worst is None:
            return f"coupling error not measured: {in_a_line(self.reason)}"
        if self.worst.error < LEAST_SHOWN:
            return f"coupling error below {100.0 * LEAST_SHOWN:g} % of the largest value in all outputs ({self.origin})"
        return (
            f"coupling error {share_in_words(self.worst.error)} of the largest value{self._peak()}, most in "
            f"{in_a_line(self.worst.name)} ({self.origin})"
        )

    def _peak(self) -> str:
        """A short error that is much larger; those at events only show that these have moved."""
        peak = max(self.outputs, key=lambda output: output.largest)
        if any(self.events) or peak.largest < max(PEAK * self.outputs[0].error, SHOWN_PEAK):
            return ""
        where = f"t = {peak.time:.3g} s in {in_a_line(peak.name)}"
        return f" (root mean square; {share_in_words(peak.largest)} at {where})"


def share_in_words(share: float) -> str:
    """``"about 0.3 %"``; an error above 100 % has no size that could be trusted."""
    return f"about {float(f'{100.0 * share:.2g}'):g} %" if share <= 1.0 else "more than 100 %"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers of steps and calls, wall times, warnings and notes of a run."""

    steps: int
    """Communication steps that were accepted."""
    attempts: int
    """Communication steps that were tried."""
    rejections: int
    """Communication steps that were tried and not accepted."""
    seconds: float
    """Wall time in s of the loop over time and of its rows, without loading and initialization."""
    rows: int = 0
    """Rows that were recorded, kept or written."""
    instances: tuple[InstanceStatistics, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Choices for settings that the user did not give."""
    events: int = 0
    """Events that were processed or located."""
    methods: tuple[str, ...] = ()
    """How the run was computed: algorithm, step sizes, location of events, loops, semantic adaptation."""
    fall_backs: tuple[FallBack, ...] = ()
    """What was done in a less exact way than intended, and how often."""
    loops: tuple[LoopStatistics, ...] = ()
    """Statistics of the solved algebraic loops, each for all modes together."""
    power_bonds: tuple[BondStatistics, ...] = ()
    """Sorted by mean error, the worst one first."""
    diverging: tuple[str, ...] = ()
    """Outputs that grow exponentially until the end of the run."""
    leaping: tuple[str, ...] = ()
    """A warning about outputs that change too much within steps; a measured error of the coupling replaces it."""
    suspected: tuple[str, ...] = ()
    """Warnings which show only that events may be wrong: they were found late, or inputs were predicted badly. Where the
    measured error of the coupling is small, they are notes."""
    coupling_error: CouplingError | None = None
    """The error of the coupling; None if nothing is coupled, or it was not asked for."""
    simulated: float = 0.0
    """Time in s that was simulated."""
    start_seconds: float = 0.0
    """Wall time in s until the first step: FMUs loaded, instantiated and initialized."""
    recording_seconds: float = 0.0
    """Wall time in s in which rows were checked and kept, without those in which they were written."""
    writing_seconds: float = 0.0
    """Wall time in s in which rows were written to a file during the run."""
    is_estimated: bool = False
    """Whether the times of the instances are estimates."""
    is_parallel: bool = False
    """Whether instances may have stepped at the same time."""
    real_time: RealTimeStatistics | None = None
    """How late steps were; None for a run that did not wait for a wall clock."""

    @property
    def real_time_factor(self) -> float | None:
        """Simulated seconds per second of wall time; None if the run was too short to be timed."""
        return self.simulated / self.seconds if self.seconds > 0.0 and self.simulated else None

    def lines(self) -> list[str]:
        """Summary for the end of a run: totals, a table of wall times, power bonds, methods, loops, fall-backs, warnings,
        notes, the coupling error.

        Numbers of events and restorations are listed if there were any.

        Shares are of the wall time of the run, or of the sum over the instances if that is more: they may step at the same
        time. So they never add up to more than 100 %.
        """
        happened = f", {count(self.events, 'event')}" if self.events else ""
        factor = self.real_time_factor
        speed = "" if factor is None else f", real-time factor {float(f'{factor:.3g}'):g}"
        tried = f"{self.attempts} attempts, {self.rejections} rejections"
        lines = [f"{self.steps} steps{happened} in {self.seconds:.3g} s{speed} ({tried})"]
        if self.instances:
            lines += _aligned(self._rows_of_times())
        if self.start_seconds:
            lines.append(
                f"before the first step: {self.start_seconds:.3g} s to load and initialize"
            )
        if self.power_bonds:
            lines += _aligned([BOND_TITLES, *(bond.row() for bond in self.power_bonds)])
        lines += [f"method: {in_a_line(method)}" for method in self.methods]
        lines += [] if self.real_time is None else [self.real_time.line()]
        lines += [loop.line() for loop in self.loops]
        lines += [f"fall-back: {fall_back.line()}" for fall_back in self.fall_backs]
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines += [f"note: {note}" for note in self.notes]
        return lines + ([] if self.coupling_error is None else [str(self.coupling_error)])

    def _rows_of_times(self) -> list[tuple[str, ...]]:
        """The wall time of the run: instances, recording, writing, and the rest."""
        title = "seconds (estimated)" if self.is_estimated else "seconds"
        restored = any(one.restores for one in self.instances)
        whole = max(self.seconds, sum(one.seconds for one in self.instances))
        rows = [("instance", "calls", title, "share", *(["restores"] if restored else []))]

        def row(name: str, calls: str, seconds: float, *more: str) -> None:
            share = f"{seconds / whole:.1%}" if whole > 0.0 else "-"
            rows.append((name, calls, f"{seconds:.3g}", share, *more))

        for one in self.instances:
            restores = [str(one.restores)] if restored else []
            row(in_a_line(one.name), str(one.calls), one.seconds, *restores)
        blank = [""] if restored else []
        if self.recording_seconds:
            row("(recording)", "", self.recording_seconds, *blank)
        if self.writing_seconds:
            row("(writing)", "", self.writing_seconds, *blank)
        if self.waited:
            row("(waiting)", "", self.waited, *blank)
        if not self.is_parallel and (rest := self._rest) > 0.0:
            row("(rest)", "", rest, *blank)
        return rows

    @property
    def _rest(self) -> float:
        """Wall time in s of the run that is neither in DoStep nor spent on rows."""
        in_steps = sum(one.seconds for one in self.instances)
        return self.seconds - in_steps - self.recording_seconds - self.writing_seconds - self.waited

    @property
    def waited(self) -> float:
        """Wall time in s in which the run has waited for a wall clock."""
        return 0.0 if self.real_time is None else self.real_time.waited


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as lines: the first cells to the left, all others to the right."""
    first, *others = (max(map(len, cells)) for cells in zip(*rows, strict=True))
    lines = []
    for name, *numbers in rows:
        cells = (f"  {cell:>{w}}" for cell, w in zip(numbers, others, strict=True))
        lines.append((f"{name:<{first}}" + "".join(cells)).rstrip())
    return lines


NO_RUN = Statistics(steps=0, attempts=0, rejections=0, seconds=0.0)
"""Statistics of a table that does not come from a run."""
