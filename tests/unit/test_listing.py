"""Listings: what a reader sees of a program, line by line."""

from textwrap import dedent

from python_fmu import PythonFmu, parse, plan_of

from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.algorithms.assemble import assemble
from fmimaster.inputs.polynomial import FIRST_ORDER, Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.program.instructions.base import Program
from fmimaster.program.listing import listing


def mass(**settings: object) -> PythonFmu:
    """With an output, its derivative, and two inputs."""
    return PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: 0.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
        **settings,  # type: ignore[arg-type]
    )


def pair(**settings: object) -> Plan:
    return plan_of(
        {"left": mass(**settings), "right": mass(**settings)},
        [
            "left.y -> right.u",
            "left.dy -> right.w",
            ("right.y -> left.u", {"factor": -2.0, "offset": 0.5}),
        ],
    )


def text(expected: str) -> str:
    return dedent(expected).strip("\n")


def test_each_line_has_a_number_names_and_what_is_moved() -> None:
    plan = pair()
    assert listing(assemble(plan, Jacobi()).attempt, plan) == text(
        """
        0 MOVE      left   continuous  u <- -2 * right.y + 0.5
        1 SET       left   continuous  u
        2 MOVE      right  continuous  u <- left.y; w <- left.dy
        3 SET       right  continuous  u, w
        4 PARALLEL         the next 2  in any order, or at the same time
        5 STEP      left   to 1
        6 STEP      right  to 1
        7 GET       left   outputs     y, dy
        8 GET       right  outputs     y, dy
        """
    )


def test_a_polynomial_says_where_and_through_what_it_goes() -> None:
    plan = pair(provides_intermediate_update=True)
    lines = listing(assemble(plan, GaussSeidel(FIRST_ORDER)).attempt, plan).splitlines()
    assert lines[4] == (
        "4 FIT   right  continuous  u <- left.y; w <- left.dy (at 0 through 1 point with 1, 0 derivatives)"
    )
    lines = listing(assemble(plan, Jacobi(Polynomial(2, 0))).attempt, plan).splitlines()
    assert lines[0].endswith(
        "(at 0 through 2 points with 0 derivatives, from the outputs and the history)"
    )


def test_what_is_repeated_is_indented() -> None:
    plan = plan_of({"a": mass()})
    program = parse(
        """
        SAVE 0 3
        REPEAT 2 10
          RESTORE 0 3
          STEP 0 0.5
          GET 0 OUTPUTS
          KEEP 1
        UNTIL 1e-10
        RECALL 1
        MODE 0 TERMINATED
        SAMPLE
        """,
        plan,
    )
    assert listing(program, plan) == text(
        """
        0 SAVE       a  place 3
        1 REPEAT        2 to 10 times
        2   RESTORE  a  place 3
        3   STEP     a  to 0.5
        4   GET      a  outputs        y, dy
        5   KEEP        buffer 1
        6 UNTIL         1e-10          until the relative change of each output is at most this
        7 RECALL        buffer 1
        8 MODE       a  Terminated
        9 SAMPLE
        """
    )


def test_outputs_of_one_instance_that_are_as_they_were() -> None:
    line = listing(parse("KEEP 1\nREVERT 0 1", plan := plan_of({"a": mass()})), plan)
    assert line.splitlines()[1] == "1 REVERT  a  buffer 1  its outputs as they were kept"


def test_of_many_variables_the_number_is_told() -> None:
    plan = plan_of({"a": PythonFmu(outputs={f"y{k}": lambda v: 0.0 for k in range(12)})})
    line = listing(parse("GET 0 OUTPUTS", plan), plan)
    assert line == "0 GET  a  outputs  y0, y1, y2, y3, y4, y5, y6, y7, and 4 more"


def test_an_empty_program_is_an_empty_text() -> None:
    assert listing(Program("empty", ()), plan_of({"a": mass()})) == ""
