"""Programs that break FMI or forget something are refused before any FMU is called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from python_fmu import PythonFmu, parse, plan_of

from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.errors import ProgramError
from fmimaster.plan.plan import Plan
from fmimaster.plan.policy import EventUse, Policy
from fmimaster.program.check import check
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.system.declarations import EventPolicy
from fmimaster.system.model import Causality, DataType
from fmimaster.system.states import State

HERE = Path(__file__).parent

# name of a program → states before and after, and where all instances stand at the end
RULES = {
    "initialize": (State.INSTANTIATED, State.STEP_MODE, 0.0),
    "attempt": (State.STEP_MODE, State.STEP_MODE, 1.0),
    "commit": (State.STEP_MODE, State.STEP_MODE, 0.0),
    "event": (State.STEP_MODE, State.STEP_MODE, 0.0),
    "terminate": (State.STEP_MODE, State.TERMINATED, 0.0),
}


def plain() -> Plan:
    """a can do everything and has all kinds of inputs, b can neither be restored nor take polynomials, but be corrected, c
    has no inputs."""
    integer = {"type": DataType.INT32}
    a = PythonFmu(
        parameters={"size": 1, "k": 1.0},
        inputs={"u": 0.0, "n": 0},
        outputs={"y": lambda v: 0.0},
        attributes={
            "n": integer,
            "size": {"type": DataType.UINT64, "causality": Causality.STRUCTURAL_PARAMETER},
        },
        provides_intermediate_update=True,
    )
    b = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0, "m": lambda v: 0},
        attributes={"m": integer},
        depends={"y": ["u"]},
        partials={"y": {"u": 1.0}},
        can_get_and_set_fmu_state=False,
    )
    c = PythonFmu(outputs={"y": lambda v: 0.0})
    connections = ["a.y -> b.u", "b.y -> a.u", "b.m -> a.n"]
    return plan_of({"a": a, "b": b, "c": c}, connections, {"a.k": 2.0, "a.size": 1})


def events() -> Plan:
    """s has Event Mode and may return early, its clock triggers t, which has Event Mode; d discards steps at events."""
    integer, clock = {"type": DataType.INT32}, {"type": DataType.CLOCK}
    s = PythonFmu(
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0, "m": lambda v: 0, "tick": lambda v: False},
        attributes={"m": integer, "tick": clock},
        has_event_mode=True,
        might_return_early_from_do_step=True,
    )
    t = PythonFmu(
        inputs={"u": 0.0, "n": 0, "tick": False},
        outputs={"y": lambda v: 0.0},
        attributes={"n": integer, "tick": clock},
        has_event_mode=True,
    )
    d = PythonFmu(
        parameters={"policy": 0},
        inputs={"u": 0.0},
        outputs={"y": lambda v: 0.0},
        attributes={"policy": integer},
        event_policy=EventPolicy("policy", execute=0, announce=1),
    )
    return plan_of(
        {"s": s, "t": t, "d": d},
        ["s.y -> t.u", "s.m -> t.n", "s.tick -> t.tick", "t.y -> d.u", "d.y -> s.u"],
        use=EventUse(policy=Policy.ANNOUNCE, early_return=True, event_mode=True),
    )


def hidden() -> Plan:
    """a has a recorded variable that FMI 2.0 does not let be read in Initialization Mode."""
    a = PythonFmu(
        states={"x": 0.0},
        outputs={"y": lambda v: 0.0},
        attributes={"x": {"get_in_initialization": False}},
    )
    return plan_of({"a": a}, outputs=["a.x", "a.y"])


PLANS = {"plain": plain(), "events": events(), "hidden": hidden()}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return PLANS["plain"]


@dataclass(frozen=True)
class Case:
    """A program in a file, with what its head says."""

    program: str
    expected: str
    text: str
    plan: Plan

    @classmethod
    def read(cls, path: Path) -> Case:
        text = path.read_text(encoding="utf-8")
        head = dict(re.findall(r"^# (why|expected|program|plan): (.+)$", text, re.MULTILINE))
        assert head["why"], "each wrong program says why it is wrong"
        plan = PLANS[head.get("plan", "plain")]
        return cls(head["program"], head.get("expected", ""), text, plan)

    def parsed(self) -> Program:
        return parse(self.text, self.plan, self.program)


def checked(program: Program, plan: Plan) -> None:
    begin, end, at = RULES[program.name]
    who = dict.fromkeys(range(len(plan.instances)), at)
    check(program, plan, begin=begin, end=end, who=who, history=True)


def files(folder: str) -> list[Path]:
    found = sorted((HERE / folder).glob("*.txt"))
    assert found
    return found


@pytest.mark.parametrize("path", files("wrong"), ids=lambda p: p.stem)
def test_a_wrong_program_is_refused_with_instance_and_instruction(path: Path) -> None:
    case = Case.read(path)
    with pytest.raises(ProgramError) as caught:
        checked(case.parsed(), case.plan)
    message = str(caught.value)
    assert message.startswith(f"Program '{case.program}', instruction ")
    assert case.expected in message


@pytest.mark.parametrize("path", files("right"), ids=lambda p: p.stem)
def test_a_right_program_is_accepted(path: Path) -> None:
    case = Case.read(path)
    checked(case.parsed(), case.plan)


def test_text_and_instructions_say_the_same() -> None:
    for path in files("wrong") + files("right"):
        case = Case.read(path)
        program = case.parsed()
        text = "\n".join(map(str, program.instructions))
        assert parse(text, case.plan, case.program) == program


def test_every_instruction_is_in_a_right_program() -> None:
    programs = [Case.read(path).parsed() for path in files("right")]
    found = {type(i).__name__ for program in programs for i in program.instructions}
    assert found == {kind.__name__ for kind in Instruction.__subclasses__()}


def test_the_history_needs_no_keep_and_without_one_nothing_is_remembered(plan: Plan) -> None:
    program = parse("REMEMBER", plan, "commit")
    checked(program, plan)
    for text in ("REMEMBER", "FORGET"):
        with pytest.raises(ProgramError, match="there is no history"):
            check(parse(text, plan), plan, begin=State.STEP_MODE, end=State.STEP_MODE)


class Forgetful(Jacobi):
    """Steps all instances and reads none."""

    __slots__ = ()

    def emit(self, plan: Plan, p: Emitter) -> None:
        for i in range(len(plan.instances)):
            p.inputs(i, self.inputs)
            p.step(i)


def test_programs_of_an_algorithm_are_checked_when_they_are_assembled(plan: Plan) -> None:
    with pytest.raises(
        ProgramError, match=r"Program 'attempt'.* outputs of 'a' have not been read"
    ):
        assemble(plan, Forgetful())
