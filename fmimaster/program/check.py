"""Checks a program against the plan, like a bytecode verifier.

The known state of each instance is its time in the interval, its FMI state, and whether its inputs and outputs are up
to date. The body of each REPEAT is checked twice. The check cannot prove that iterations converge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fmimaster.plan.plan import Plan
from fmimaster.program.checker import Checker
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.outputs import Recall
from fmimaster.program.instructions.steps import MOST_NESTED, Repeat, closings
from fmimaster.program.knowledge import Knowledge
from fmimaster.system.states import State


def check(
    program: Program,
    plan: Plan,
    *,
    begin: State,
    end: State,
    who: Mapping[int, float] | None = None,
    under_way: Collection[int] = (),
    history: bool = False,
    others: Mapping[int, State] | None = None,
) -> None:
    """Check a program.

    Parameters
    ----------
    begin, end : State
        States of all instances before and after it.
    others : instance → State
        Instances that are in another state before it.
    who : instance → fraction
        Time of the instances at the end of the program, as a fraction of the interval. Instances that are missing must
        be at 0, where all of them begin. By default all are missing.
    under_way
        Instances whose step began before the interval: their inputs were moved there.
    history : bool
        Whether there is a history.

    Raises
    ------
    ProgramError
        With the number of the instruction, the name of the instance, and the problem.
    """
    knowledge = Knowledge(plan, begin, {} if who is None else who, under_way)
    for i, state in (others or {}).items():
        knowledge.begins_in(i, state)
    checker = Checker(program.name, program.instructions, knowledge, history)
    _Walk(program, checker).run(0, len(program.instructions))
    checker.finish(end)


class _Walk:
    def __init__(self, program: Program, checker: Checker) -> None:
        self.instructions = program.instructions
        self.checker = checker
        self.closings = closings(program.instructions)
        self.depth = 0

    def run(self, first: int, last: int) -> None:
        """Walk the instructions from first to before last."""
        at, checker, instructions = first, self.checker, self.instructions
        knowledge = checker.knowledge
        while at < last:
            checker.line = at
            instruction = instructions[at]
            if isinstance(instruction, Repeat):
                at = self.repeat(instruction, at)
            else:
                if (subject := instruction.subject) is not None:
                    checker.has_instance(subject)
                instruction.check(checker)
                instruction.effect(knowledge)
            at += 1

    def repeat(self, repeat: Repeat, at: int) -> int:
        """Check the repeated instructions twice; returns the index of the UNTIL."""
        checker = self.checker
        if at not in self.closings:
            checker.fail("REPEAT without UNTIL")
        if self.depth == MOST_NESTED:
            checker.fail(f"more than {MOST_NESTED} REPEATs inside each other")
        repeat.check(checker)
        until = self.closings[at]
        concerned = self.concerned(at, until)
        self.depth += 1
        self.run(at + 1, until)
        once = {i: (checker.knowledge.repeatable(i), checker.instances[i].at) for i in concerned}
        self.run(at + 1, until)
        self.depth -= 1
        checker.line = until
        for i, (known, stood) in once.items():
            if checker.knowledge.repeatable(i) != known:
                checker.fail(
                    f"a second pass leaves {checker.name(i)} elsewhere than the first: at "
                    f"{checker.instances[i].at:g} instead of {stood:g}, or with other inputs or outputs known"
                )
        return until

    def concerned(self, at: int, until: int) -> Sequence[int]:
        """The instances whose known state can change in a repetition.

        Of all others a second pass changes nothing: what has returned early in the first one, returns in the second one.
        """
        body = self.instructions[at + 1 : until]
        if any(isinstance(i, Recall) for i in body):
            return range(len(self.checker.plan.instances))
        return sorted({i.subject for i in body if i.subject is not None})
