"""Algebraic loops: how they are solved, as pure functions of what sweeps gave, and as hooks of programs."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.loops.solver import LoopSolver as LoopSolver
    from fmimaster.plan.step_groups import Loops as Loops
else:
    __getattr__, __dir__ = public_names(__name__)
