"""Numbers of steps and calls, and wall times, of a run."""

from __future__ import annotations

from dataclasses import dataclass

from fmimaster.visible import in_a_line


@dataclass(frozen=True, slots=True)
class InstanceStatistics:
    """Numbers of calls, and wall time, of one instance during a run."""

    name: str
    calls: int
    """Calls of DoStep."""
    seconds: float
    """Wall time in s inside these calls; with the kernel, an estimate from some of them."""
    restores: int = 0
    """How often it was brought back to a saved FMU state."""
    events: int = 0
    """How often it has entered Event Mode."""


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
    """Wall time in s of the loop over time, without loading and initialization."""
    rows: int = 0
    """Rows that were recorded, kept or written."""
    instances: tuple[InstanceStatistics, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Choices that were made where the user gave none."""
    events: int = 0
    """Events that the run has let happen or located."""

    def lines(self) -> list[str]:
        """Summary for the end of a run: one line of totals, a row per instance, warnings, notes.

        Events, and how often instances were restored, are listed if there were any.

        Shares are of the wall time of the loop, or of the sum over the instances if that is more: they run at the same
        time, or were measured in slow steps. So they never add up to more than 100 %.
        """
        tried = f"{self.attempts} attempts, {self.rejections} rejections"
        happened = f", {self.events} event{'' if self.events == 1 else 's'}" if self.events else ""
        lines = [f"{self.steps} steps{happened} in {self.seconds:.3g} s ({tried})"]
        restored = any(one.restores for one in self.instances)
        rows = [("instance", "calls", "seconds", "share", *(["restores"] if restored else []))]
        whole = max(self.seconds, sum(one.seconds for one in self.instances))
        for one in self.instances:
            share = f"{one.seconds / whole:.1%}" if whole > 0.0 else "-"
            restores = [str(one.restores)] if restored else []
            rows.append(
                (in_a_line(one.name), str(one.calls), f"{one.seconds:.3f}", share, *restores)
            )
        if self.instances:
            first, *others = (max(map(len, cells)) for cells in zip(*rows, strict=True))
            for name, *numbers in rows:
                cells = (f"  {cell:>{w}}" for cell, w in zip(numbers, others, strict=True))
                lines.append(f"{name:<{first}}" + "".join(cells))
        lines += [f"warning: {warning}" for warning in self.warnings]
        return lines + [f"note: {note}" for note in self.notes]


NO_RUN = Statistics(steps=0, attempts=0, rejections=0, seconds=0.0)
"""Of a table that does not come from a run."""
