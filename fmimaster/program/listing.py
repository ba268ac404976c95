"""Programs in words: one numbered line per instruction; and the algebraic loops of Step Mode that a program does not solve.

A line has names and the moved values. A loop is named with its delayed inputs and the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.step_groups import Loops
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.program.delays import Delay, course, delays, in_steps
from fmimaster.program.hook import Hook
from fmimaster.program.instructions.base import Program
from fmimaster.program.instructions.inputs import Set
from fmimaster.program.instructions.outputs import Get
from fmimaster.program.instructions.steps import Call, Step, closings

Row = tuple[str, str, str, str]
"""Name of the instruction, of the instance, operand, remark."""


def listing(program: Program, plan: Plan, hooks: Sequence[Hook] = ()) -> str:
    """A program as text, to find the reason of a surprising result.

    Each line has the number of the instruction, its name, the instance, the operand, and the values in words. Repeated
    instructions are indented. With the hooks of the programs, CALL has the name of its hook.

    Examples
    --------
    ::

        0 MOVE  upper  continuous  u_x <- lower.x; u_v <- lower.v
        1 SET   upper  continuous  u_x, u_v
        2 STEP  upper  to 1
    """
    rows = list(_rows(program, plan, hooks))
    widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
    number = len(str(len(rows) - 1))
    lines = []
    for k, row in enumerate(rows):
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        lines.append("  ".join([f"{k:>{number}} {cells[0]}", *cells[1:], row[3]]).rstrip())
    return "\n".join(lines)


def _rows(program: Program, plan: Plan, hooks: Sequence[Hook]) -> Iterator[Row]:
    depth, ends = 0, closings(program.instructions)
    closed = set(ends.values())
    for k, instruction in enumerate(program.instructions):
        depth -= k in closed
        name = "  " * depth + type(instruction).__name__.upper()
        instance = instruction.subject
        who = "" if instance is None else plan.instances[instance].name
        operand, remark = instruction.words(plan)
        match instruction:
            case Call(hook) if hook < len(hooks):
                remark = hooks[hook].name
        yield name, who, operand, remark
        depth += k in ends


# Loops that are not solved --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnsolvedLoop:
    """A loop with inputs that are set before their source has stepped."""

    loop: AlgebraicLoop
    late: tuple[Delay, ...]
    """The connections at which the loop is cut; at least one."""


def unsolved_loops(attempt: Program, plan: Plan) -> tuple[UnsolvedLoop, ...]:
    """The loops of Step Mode that an attempt does not solve."""
    if not plan.step_loops:
        return ()
    late = [d for d in delays(attempt, plan) if not d.is_fresh]
    settled = _settled(attempt)
    found = []
    for loop in plan.step_loops:
        if settled.issuperset(loop.instances):
            continue
        inside = set(loop.variables)
        broken = tuple(
            d
            for d in late
            if {
                (d.route.link.source, d.route.link.output.name),
                (d.route.link.target, d.route.link.input.name),
            }
            <= inside
        )
        if broken:
            found.append(UnsolvedLoop(loop, broken))
    return tuple(found)


def _settled(attempt: Program) -> set[int]:
    """Instances whose outputs are read with new inputs after their last step, in Step Mode or in Event Mode."""
    given, found = set[int](), set[int]()
    for instruction in attempt.instructions:
        match instruction:
            case Step(instance):
                given.discard(instance)
                found.discard(instance)
            case Set(instance, Group.CONTINUOUS | Group.DISCRETE):
                given.add(instance)
            case Get(instance, Group.OUTPUTS) if instance in given:
                found.add(instance)
    return found


def loop_notes(
    attempt: Program,
    plan: Plan,
    loops: Loops,
    hindrance: str = "",
    measured: Collection[int] = (),
) -> tuple[list[str], list[str], list[str]]:
    """Notes about unsolved loops, warnings about results that are less accurate because of them, and notes about loops that
    a measurement at the start decides.

    A loop that exists only by an assumption, or that the settings exclude, gives a note.

    Parameters
    ----------
    hindrance
        The reason why the run solves no loop, with a remedy; empty if it solves loops whose members can go back.
    measured
        Instances whose dependencies are measured at the start.
    """
    notes, warnings, pending = list[str](), list[str](), list[str]()
    for unsolved in unsolved_loops(attempt, plan):
        stuck = without_state(unsolved.loop.instances, plan)
        silent = undeclared(unsolved.loop, plan)
        perhaps = (
            f"may not be a loop: {_names(silent, plan)} {'does' if len(silent) == 1 else 'do'} not declare on which inputs "
            f"{_their(silent)} outputs depend."
        )
        what = f"{_loop(unsolved, plan)} is not solved in Step Mode"
        instead = f"Instead {_broken(unsolved, plan)}."
        remedy = "If the FMUs repeat a step exactly, loops=Loops.ALL (--loops all) solves it."
        is_measured = bool(silent) and {*silent} <= {*measured}
        if is_measured and unsolved.loop.assumed:
            pending.append(
                f"{_loop(unsolved, plan)} {perhaps} This is measured at the start of the run; if it is a loop, it is "
                "solved in Step Mode."
            )
        elif loops is Loops.NONE:
            notes.append(f"{what}, as the settings say (loops). {instead}")
        elif unsolved.loop.assumed and loops is Loops.REAL:
            notes.append(f"{what}, because it {perhaps} {instead} {remedy}")
        elif stuck and not (hindrance and set(unsolved.loop.instances) <= {*plan.settled}):
            warnings.append(
                f"{what}: {_names(stuck, plan)} cannot get and set {_their(stuck)} FMU state "
                f"(canGetAndSetFMUState is false). {instead} Use short steps, an FMU with this capability, or a card "
                "('fmimaster probe FMU', then cards='cached' or --card cached): if it shows that outputs follow inputs "
                "without a step, the loop is solved."
            )
        elif hindrance:
            warnings.append(f"{what}: {hindrance} {instead}")
        elif not is_measured:
            notes.append(f"{what} as a whole, because a part of it {perhaps} {instead} {remedy}")
    return notes, warnings, pending


def _loop(unsolved: UnsolvedLoop, plan: Plan) -> str:
    names = sorted(f"'{plan.instances[i].name}.{name}'" for i, name in unsolved.loop.variables)
    return f"The algebraic loop of {listed(names)}"


def _broken(unsolved: UnsolvedLoop, plan: Plan) -> str:
    """The treatment of each input at which the loop is cut."""
    said = sorted(
        f"the input '{plan.instances[link.target].name}.{link.input.name}' is {in_steps(d)} ({course(d)})"
        for d in unsolved.late
        for link in [d.route.link]
    )
    return listed(said)


def undeclared(loop: AlgebraicLoop, plan: Plan) -> list[int]:
    """Instances with an output in the loop whose dependencies are not declared."""
    return sorted(
        {i for i, name in loop.variables if name in plan.instances[i].model.assumed_dependencies}
    )


def without_state(instances: Iterable[int], plan: Plan) -> list[int]:
    """Those of the instances that cannot save and restore their state."""
    return [
        i for i in instances if not plan.instances[i].model.capabilities.can_get_and_set_fmu_state
    ]


def _names(instances: list[int], plan: Plan) -> str:
    return " and ".join(sorted(f"'{plan.instances[i].name}'" for i in instances))


def _their(instances: list[int]) -> str:
    return "its" if len(instances) == 1 else "their"
