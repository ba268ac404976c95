"""Settled: loops of FMUs whose outputs follow their inputs at once are solved at the end of each step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from fmimaster.algorithms.settling import Settling
from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.system.notes import listed


@dataclass(frozen=True, slots=True)
class Settled(Wrapper):
    """Step by the base, then solve loops of FMUs that cannot go back, by setting inputs and reading outputs.

    FMI forbids Get after Set in Step Mode without a step between them, but many FMUs answer with outputs that belong to
    the new inputs. A card shows that an FMU is one of these, and that its later steps do not change.

    Over a step the inputs are those of the base; at its end inputs and outputs agree.

    Parameters
    ----------
    base : Algorithm
    solver : LoopSolver

    Source: fmimaster, as the solution of algebraic loops at communication points in OMSimulator.
    """

    solver: LoopSolver = LoopSolver()

    @property
    def measures_itself(self) -> bool:
        """True: it measures between the steps and the solution."""
        return True

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, and which loops are solved."""
        names = listed(f"'{plan.instances[i].name}'" for i in self._chosen(plan))
        said = (
            f"The algebraic loop of {names} is solved at the end of each step, by setting inputs and reading outputs: by "
            "their cards, outputs follow inputs without a step."
        )
        return (*Wrapper.notes(self, plan, before), *((said,) if names else ()))

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self.base.emit(plan, p)
        if not self.base.measures_itself:
            p.measure()
        if chosen := self._chosen(plan):
            Settling(self.solver).at_an_event(plan, p, chosen, Group.OUTPUTS)
            p.remeasure()

    @staticmethod
    def _chosen(plan: Plan) -> list[int]:
        members = set(plan.members)
        return [i for i in plan.settled if i in members]
