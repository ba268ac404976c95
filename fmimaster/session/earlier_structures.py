"""What the structures of a system before the present one have left for the statistics of the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from fmimaster.fmu.instance import Instance
from fmimaster.prepare.preparation import Prepared
from fmimaster.results.statistics import InstanceStatistics, LoopStatistics
from fmimaster.run.executor import Executor


class EarlierStructures:
    """Numbers, warnings and notes of all structures before the present one; empty if the structure never changes."""

    def __init__(self) -> None:
        self._instances: dict[str, InstanceStatistics] = {}
        self._loops: list[LoopStatistics] = []
        self.warnings: tuple[str, ...] = ()
        """Of the preparations."""
        self.accuracy_warnings: tuple[str, ...] = ()
        """Those of them that report a loss of accuracy."""
        self.warnings_of_run: tuple[str, ...] = ()
        """Of hooks, and of instances that have ended."""
        self.notes: tuple[str, ...] = ()

    def add(
        self,
        prepared: Prepared,
        instances: Sequence[Instance],
        executor: Executor,
        kept: Collection[str],
    ) -> None:
        """Add the structure that ends; ``kept``: names of its instances that exist in the next one too."""
        ended = [
            instance
            for planned, instance in zip(prepared.plan.instances, instances, strict=True)
            if planned.name not in kept
        ]
        self._instances = {i.name: i for i in self.instances(statistics_of(prepared, executor))}
        self._loops += solved_loops(prepared)
        self.warnings += prepared.warnings
        self.accuracy_warnings += prepared.accuracy_warnings
        self.warnings_of_run += tuple(t for hook in prepared.programs.hooks for t in hook.warnings)
        self.warnings_of_run += tuple(text for instance in ended for text in instance.warnings)
        self.notes += (*prepared.notes, *(text for instance in ended for text in instance.notes))

    def instances(self, present: Iterable[InstanceStatistics]) -> tuple[InstanceStatistics, ...]:
        """Statistics of all instances of all structures; numbers of calls go on from structure to structure."""
        found = dict(self._instances)
        for one in present:
            before = found.get(one.name)
            seconds = 0.0 if before is None else before.seconds
            found[one.name] = replace(one, seconds=one.seconds + seconds)
        return tuple(found.values())

    def loops(self, present: Prepared) -> tuple[LoopStatistics, ...]:
        """Statistics of the solved loops; numbers of the same loop in different programs and structures are added."""
        found: dict[tuple[str, ...], LoopStatistics] = {}
        for one in (*self._loops, *solved_loops(present)):
            before = found.get(one.variables)
            found[one.variables] = one if before is None else before + one
        return tuple(found[variables] for variables in sorted(found))


def statistics_of(
    prepared: Prepared, executor: Executor, seconds: Iterable[float] | None = None
) -> tuple[InstanceStatistics, ...]:
    """Of the instances of one structure.

    Parameters
    ----------
    seconds
        Wall time of each in s. Default: as the executor has it.
    """
    return tuple(
        InstanceStatistics(planned.name, int(calls), spent, int(restores), int(events))
        for planned, spent, calls, restores, events in zip(
            prepared.plan.instances,
            executor.seconds if seconds is None else seconds,
            *executor.calls,
            strict=True,
        )
    )


def solved_loops(prepared: Prepared) -> list[LoopStatistics]:
    """Of each hook that has solved a loop."""
    found = (hook.solutions for hook in prepared.programs.hooks)
    return [LoopStatistics(*s) for s in found if s is not None and s.sweeps]
