"""Delays of connections, read off programs: those of the algorithms, and some that no algorithm writes yet."""

import pytest
from python_fmu import PythonFmu, parse, plan_of

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.algorithms.assemble import assemble
from fmimaster.inputs.polynomial import FIRST_ORDER, Polynomial
from fmimaster.plan.plan import Plan
from fmimaster.program.delays import Delay, course, delays, in_steps, reason


def unit(**settings: object) -> PythonFmu:
    return PythonFmu(
        inputs={"u": 0.0, "w": 0.0},
        outputs={"y": lambda v: 0.0, "dy": lambda v: 0.0},
        attributes={"dy": {"derivative_of": "y"}},
        **settings,  # type: ignore[arg-type]
    )


def ring(**settings: object) -> Plan:
    units = {"a": unit(**settings), "b": unit(**settings)}
    return plan_of(units, ["a.y -> b.u", "b.y -> a.u"])


def by_target(found: tuple[Delay, ...], plan: Plan) -> dict[str, float]:
    return {plan.instances[d.route.link.target].name: d.steps for d in found}


def words(algorithm: Algorithm, plan: Plan) -> dict[str, tuple[str, str, str]]:
    return {
        plan.instances[d.route.link.target].name: (in_steps(d), course(d), reason(d, plan))
        for d in delays(assemble(plan, algorithm).attempt, plan)
    }


def of_text(text: str) -> dict[str, float]:
    """Delays in a program of a ring, by the target."""
    plan = ring()
    return by_target(delays(parse(text, plan), plan), plan)


def test_jacobi_makes_each_connection_late_by_a_step() -> None:
    late = "value of the last communication point"
    assert words(Jacobi(), ring()) == {
        "a": ("1 step late", "held", f"'a' is set (0) before 'b' steps (6): {late}"),
        "b": ("1 step late", "held", f"'b' is set (2) before 'a' steps (5): {late}"),
    }


def test_gauss_seidel_is_late_against_its_order_only() -> None:
    late = "value of the last communication point"
    assert words(GaussSeidel(), ring()) == {
        "a": ("1 step late", "held", f"'a' is set (0) before 'b' steps (6): {late}"),
        "b": ("not late", "held", "'a' steps (2) before 'b' is set (4)"),
    }


@pytest.mark.parametrize(
    ("polynomial", "expected"),
    [
        (FIRST_ORDER, "linear, with the derivative of the source"),
        (Polynomial(2, 1), "polynomial of degree 3 through 2 points"),
    ],
)
def test_a_polynomial_is_late_but_goes_on(polynomial: Polynomial, expected: str) -> None:
    found = words(Jacobi(polynomial), ring(provides_intermediate_update=True))
    assert found["a"][:2] == ("1 step late", expected)


def test_an_input_is_held_if_its_source_has_too_few_derivatives() -> None:
    settings = {"provides_intermediate_update": True}
    units = {"a": unit(**settings), "b": unit(**settings)}
    plan = plan_of(units, ["a.dy -> b.u", "a.y -> b.w"])
    found = delays(assemble(plan, Jacobi(FIRST_ORDER)).attempt, plan)
    assert [course(d) for d in found] == ["held", "linear, with the derivative of the source"]


def test_an_input_is_held_at_the_mean_if_the_fmu_cannot_interpolate() -> None:
    found = words(Jacobi(FIRST_ORDER), ring())["a"][1]
    assert found == "held at the mean of the polynomial of degree 1 through 1 point"


def test_of_several_steps_the_largest_delay_counts() -> None:
    assert of_text(
        """
        MOVE a CONTINUOUS
        STEP a 0.5
        STEP a 1
        GET a outputs
        MOVE b continuous
        STEP b 0.5
        STEP b 1
        """
    ) == {"a": 1.0, "b": 0.0}


def test_halves_that_exchange_in_between_are_late_by_half_a_step() -> None:
    plan = ring()
    half = "MOVE a CONTINUOUS\nMOVE b continuous\nSTEP a {0}\nSTEP b {0}\nGET a outputs\nGET b outputs\n"
    found = delays(parse(half.format(0.5) + half.format(1), plan), plan)
    assert by_target(found, plan) == {"a": 0.5, "b": 0.5}
    assert {in_steps(d) for d in found} == {"0.5 steps late"}


def test_a_value_from_the_middle_of_the_interval_is_told_with_its_place() -> None:
    plan = ring()
    program = "STEP a 0.5\nGET a outputs\nMOVE b continuous\nSTEP b 1\nSTEP a 1"
    [found] = [d for d in delays(parse(program, plan), plan) if d.steps]
    assert (found.steps, found.read) == (0.5, 0.5)
    assert (
        reason(found, plan)
        == "'b' is set (2) to the value at 0.5 of the interval, and uses it until 1"
    )


def test_steps_that_are_undone_do_not_count() -> None:
    first = "SAVE a 0\nSAVE b 1\nMOVE a CONTINUOUS\nMOVE b continuous\nSTEP a 1\nSTEP b 1\n"
    again = "GET a outputs\nGET b outputs\nRESTORE a 0\nRESTORE b 1\n"
    assert of_text(first) == {"a": 1.0, "b": 1.0}
    corrected = "MOVE a CONTINUOUS\nMOVE b continuous\nSTEP a 1\nSTEP b 1\n"
    assert of_text(first + again + corrected) == {"a": 0.0, "b": 0.0}


def test_a_recalled_output_is_as_old_as_when_it_was_kept() -> None:
    begin = "KEEP 0\nSTEP a 1\nGET a outputs\n"
    assert of_text(begin + "MOVE b continuous\nSTEP b 1") == {"b": 0.0}
    assert of_text(begin + "RECALL 0\nMOVE b continuous\nSTEP b 1") == {"b": 1.0}


def test_a_reverted_output_is_as_old_as_when_it_was_kept() -> None:
    begin, end = "KEEP 0\nSTEP a 1\nGET a outputs\n", "MOVE b continuous\nSTEP b 1"
    assert of_text(f"{begin}REVERT a 0\n{end}") == {"b": 1.0}
    assert of_text(f"{begin}REVERT b 0\n{end}") == {"b": 0.0}


def test_the_second_pass_of_a_repetition_counts() -> None:
    assert of_text(
        """
        SAVE a 0
        SAVE b 1
        REPEAT 2 10
        RESTORE a 0
        RESTORE b 1
        MOVE a CONTINUOUS
        MOVE b continuous
        STEP a 1
        STEP b 1
        GET a outputs
        GET b outputs
        UNTIL 1e-6
        """
    ) == {"a": 0.0, "b": 0.0}


def test_a_source_that_never_steps_has_no_step_to_name() -> None:
    plan = ring()
    [found] = delays(parse("MOVE b continuous\nSTEP b 1", plan), plan)
    assert reason(found, plan) == "'a' never steps"
