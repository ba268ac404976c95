"""What of a prepared run becomes an image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fmimaster.export.image import (
    ImageGrid,
    ImageParts,
    ImageVariable,
    Member,
    StartText,
    write_image,
)
from fmimaster.export.walk import Unknown
from fmimaster.instants.grid import Grid as Points
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.outputs import Sample
from fmimaster.program.instructions.steps import Mode
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.run.native.fmu_entry import FmuEntry
from fmimaster.session.session import Session
from fmimaster.system.model import DataType
from fmimaster.system.states import State

_TEXTS = (DataType.STRING, DataType.BINARY)


def image_of(session: Session, folders: Sequence[str], variables: Sequence[ImageVariable]) -> bytes:
    """The image of a session that has not begun.

    Parameters
    ----------
    folders : sequence of str
        Of each instance: the folder that has its FMU, relative to that of the image, or absolute.
    variables : sequence of ImageVariable
        Those of the system, in the order of the value references; see :func:`variable_of`.

    Raises
    ------
    OptionError
        If something cannot be in an image.
    """
    executor = session.executor
    if not isinstance(executor, NativeExecutor):
        raise Unknown("values are converted in Python, or there is no kernel")
    programs, variants = session.programs, [*session.programs.variants]
    points, pattern = session.prepared.schedule.rule.ahead(session.state.memory), programs.pattern
    if not isinstance(points, Points) or programs.chooses:
        raise Unknown("the steps do not follow a fixed grid")
    members = [*_members(session, executor, folders)]
    attempts = [variants[k].attempt for k in ([0] if pattern is None else pattern.intervals)]
    restart = None if pattern is not None else programs.restart
    parts = ImageParts(
        [
            *_split(programs.initialize),
            attempts[0] if restart is None else restart.attempt,
            programs.commit,
            variants[0].rollback,
            programs.terminate,
        ],
        attempts,
        ImageGrid(points.base.resolution, points.start, points.step, points.offsets),
        members,
        variables,
        [*_texts(session)],
        programs.n_places,
        programs.n_buffers,
    )
    return write_image(executor, parts)


def _members(
    session: Session, executor: NativeExecutor, folders: Sequence[str]
) -> Iterator[Member]:
    for planned, entry, folder in zip(
        session.plan.instances, executor.entries, folders, strict=True
    ):
        if type(entry) is not FmuEntry:
            raise Unknown(f"'{planned.name}' is no Co-Simulation FMU that C calls")
        model = planned.model
        yield Member(
            folder,
            int(model.function_prefix[3:]),
            planned.name,
            model.model_identifier,
            model.instantiation_token,
            entry.requested,
        )


def _split(initialize: Program) -> tuple[Program, Program, Program]:
    """The programs into Initialization Mode, of the values in it, and into Step Mode."""
    parts = enter, settle, begin = list[Instruction](), list[Instruction](), list[Instruction]()
    present = enter
    for instruction in initialize.instructions:
        state = instruction.state if isinstance(instruction, Mode) else None
        if state is State.INITIALIZATION_MODE:
            present = settle  # values are set when all are in this mode
            enter.append(instruction)
        elif not isinstance(instruction, Sample):
            present = begin if state in (State.STEP_MODE, State.EVENT_MODE) else present
            present.append(instruction)
    names = "into Initialization Mode", "in Initialization Mode", "into Step Mode"
    first, second, third = (Program(n, tuple(p)) for n, p in zip(names, parts, strict=True))
    return first, second, third


def variable_of(plan: Plan, component: str, name: str) -> ImageVariable:
    """A variable of a component as the image has it."""
    i = plan.instances.numbers[component]
    variable = plan.instances[i].model.variable(name)
    assert variable is not None
    slots, is_text = plan.layout.slots, variable.type in _TEXTS
    keys = [(i, group, name) for group in (Group.START, Group.INITIAL)]
    starts = [None if is_text else slots.get(key) for key in keys]
    value = None if is_text else slots.get((i, Group.OUTPUTS, name))
    return ImageVariable(i, variable.type, variable.value_reference, variable.size, value, starts)


def _texts(session: Session) -> Iterator[StartText]:
    """Start values of text and binaries, which FMUs get before all else."""
    values = session.executor.store.values
    for i, _ in enumerate(session.plan.instances):
        for segment in session.plan.layout.segments(i, Group.START):
            if segment.type not in _TEXTS:
                continue
            slots = segment.slots()
            for variable in segment.variables:
                found = values[segment.type][slots[variable.name]]
                contents = [v.encode() if isinstance(v, str) else v for v in found]
                yield StartText(i, segment.type, variable.value_reference, contents)
