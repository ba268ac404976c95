"""Checks a program against the plan, like a bytecode verifier.

The known state of each instance is its time in the interval, its FMI state, and whether its inputs and outputs are up
to date. The body of each REPEAT is checked twice. The check cannot prove that iterations converge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from fmimaster.plan.plan import Plan
from fmimaster.program.check.knowledge import Knowledge
from fmimaster.program.check.rules import Rules
from fmimaster.program.instructions import (
    MOST_NESTED,
    Align,
    Call,
    Correct,
    Derive,
    Fit,
    Forget,
    Get,
    Instruction,
    Keep,
    Mode,
    Move,
    Parallel,
    Program,
    Recall,
    Remember,
    Repeat,
    Restore,
    Revert,
    Sample,
    Save,
    Set,
    Step,
    Tick,
    Update,
    closings,
)
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
    rules = Rules(program, knowledge, history)
    _Walk(program, rules).run(0, len(program.instructions))
    rules.finish(end)


class _Walk:
    def __init__(self, program: Program, rules: Rules) -> None:
        self.instructions = program.instructions
        self.rules = rules
        self.closings = closings(program.instructions)
        self.depth = 0
        self.cases: dict[type[Instruction], Callable[..., None]] = {
            Move: rules.move,
            Fit: rules.fit,
            Correct: rules.correct,
            Derive: rules.derive,
            Set: rules.set,
            Get: rules.get,
            Step: rules.step,
            Align: rules.align,
            Save: rules.save,
            Restore: rules.restore,
            Keep: rules.keep,
            Recall: rules.recall,
            Revert: rules.revert,
            Mode: rules.mode,
            Parallel: rules.parallel,
            Sample: rules.sample,
            Update: rules.update,
            Tick: rules.tick,
            Call: rules.call_hook,
            Remember: rules.remember,
            Forget: rules.forget,
        }

    def run(self, first: int, last: int) -> None:
        """Walk the instructions from first to before last."""
        at, rules = first, self.rules
        while at < last:
            rules.line = at
            instruction = self.instructions[at]
            case = self.cases.get(type(instruction))
            if case is not None:
                rules.has_instance(instruction)
                case(instruction)
            elif isinstance(instruction, Repeat):
                at = self.repeat(instruction, at)
            else:
                rules.fail("UNTIL without REPEAT")
            at += 1

    def repeat(self, repeat: Repeat, at: int) -> int:
        """Check the repeated instructions twice; returns the index of the UNTIL."""
        least, most, rules = repeat.least, repeat.most, self.rules
        if at not in self.closings:
            rules.fail("REPEAT without UNTIL")
        if self.depth == MOST_NESTED:
            rules.fail(f"more than {MOST_NESTED} REPEATs inside each other")
        if not 1 <= least <= most:
            rules.fail(f"REPEAT {least} {most}: expected 1 <= least <= most")
        until = self.closings[at]
        concerned = self.concerned(at, until)
        self.depth += 1
        self.run(at + 1, until)
        once = {i: (rules.knowledge.repeatable(i), rules.instances[i].at) for i in concerned}
        self.run(at + 1, until)
        self.depth -= 1
        rules.line = until
        for i, (known, stood) in once.items():
            if rules.knowledge.repeatable(i) != known:
                rules.fail(
                    f"a second pass leaves {rules.name(i)} elsewhere than the first: at "
                    f"{rules.instances[i].at:g} instead of {stood:g}, or with other inputs or outputs known"
                )
        return until

    def concerned(self, at: int, until: int) -> Sequence[int]:
        """The instances whose known state can change in a repetition.

        Of all others a second pass changes nothing: what has returned early in the first one, returns in the second one.
        """
        body = self.instructions[at + 1 : until]
        if any(isinstance(i, Recall) for i in body):
            return range(len(self.rules.instances))
        return sorted({i.subject for i in body if i.subject is not None})
