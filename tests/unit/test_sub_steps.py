"""SubSteps: several steps of some components within a communication step, the slowest component first."""

from __future__ import annotations

from collections.abc import Callable
from math import cos
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.algorithms import AtMiddle, GaussSeidel, Jacobi, SubSteps
from fmimaster.base.errors import OptionError
from fmimaster.front.simulation import Simulation
from fmimaster.plan.step_groups import Loops
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

Make = Callable[..., Simulation]


def clock() -> PythonFmu:
    """Its output is the time."""
    return PythonFmu(outputs={"y": lambda v: v.t})


def integrator(**capabilities: Any) -> PythonFmu:
    """x' = u by Euler's method, with the input as it is at the start of a step."""

    def add(v: Any, h: float) -> None:
        v.x += h * v.u

    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 0.0},
        outputs={"x": lambda v: v.x},
        step=add,
        **capabilities,
    )


def sum_of_inputs() -> PythonFmu:
    """x' = a + b, exactly for held inputs."""

    def add(v: Any, h: float) -> None:
        v.x += h * (v.a + v.b)

    return PythonFmu(
        inputs={"a": 0.0, "b": 0.0}, states={"x": 0.0}, outputs={"x": lambda v: v.x}, step=add
    )


def test_inputs_of_a_fast_component_are_interpolated_over_the_step_of_the_slow_one(
    simulation: Make,
) -> None:
    units = {"slow": clock(), "fast": integrator(max_input_derivative_order=1)}
    algorithm = SubSteps(counts={"fast": 4})
    run = simulation(units, ["slow.y -> fast.u"], algorithm=algorithm, step_size=1, stop_time=2)
    # the left Riemann sum of t with steps of 1/4
    assert run.run()["fast.x"].tolist() == [0.0, 0.375, 1.75]
    steps = units["fast"].instances[0].called(FmiCall.DO_STEP)
    assert steps == [(k / 4, 0.25) for k in range(8)]
    assert len(units["slow"].instances[0].called(FmiCall.DO_STEP)) == 2


def test_an_fmu_that_takes_no_polynomials_gets_the_value_in_the_middle_of_each_sub_step(
    simulation: Make,
) -> None:
    units = {"slow": clock(), "fast": integrator()}
    algorithm = SubSteps(counts={"fast": 4})
    run = simulation(units, ["slow.y -> fast.u"], algorithm=algorithm, step_size=1, stop_time=2)
    assert run.run()["fast.x"].tolist() == [0.0, 0.5, 2.0]
    assert units["fast"].instances[0].was_set("u")[-8:] == [(k + 0.5) / 4 for k in range(8)]


def test_three_rates_are_nested_and_each_takes_the_line_of_the_next_slower_step(
    simulation: Make,
) -> None:
    """The fastest sees the middle one over half a communication step, not over the whole of it."""
    units = {
        "slow": clock(),
        "middle": PythonFmu(
            inputs={"u": 0.0}, outputs={"y": lambda v: v.t**2}, max_input_derivative_order=1
        ),
        "fast": integrator(),
    }
    run = simulation(
        units,
        ["slow.y -> middle.u", "middle.y -> fast.u"],
        algorithm=SubSteps(counts={"middle": 2, "fast": 4}),
        step_size=1,
        stop_time=1,
    )
    run.run()
    # t**2 at 0, 1/2 and 1, with lines between
    assert units["fast"].instances[0].was_set("u")[-4:] == [0.0625, 0.1875, 0.4375, 0.8125]
    assert units["middle"].instances[0].called(FmiCall.DO_STEP) == [(0.0, 0.5), (0.5, 0.5)]


def test_without_sub_steps_it_is_its_base_bit_by_bit(simulation: Make) -> None:
    def run(algorithm: Any) -> list[float]:
        units = {"c": clock(), "p": sum_of_inputs(), "q": sum_of_inputs()}
        ring = ["c.y -> p.a", "p.x -> q.a", "q.x -> p.b"]
        found = simulation(units, ring, algorithm=algorithm, step_size="1/10", stop_time=1).run()
        return [*found["p.x"], *found["q.x"]]

    base = GaussSeidel(mode=AtMiddle())
    assert run(SubSteps(base)) == run(base) == run(SubSteps(base, {"p": 1, "q": 1}))


def test_sub_steps_of_a_fast_oscillator_are_as_accurate_as_short_steps_of_all(
    simulation: Make,
) -> None:
    """v' = w^2 (y - x) and x' = v are two units, which a slow one drives by y = cos t."""
    w = 20.0

    def error(algorithm: Any, step: str) -> float:
        units = {
            "slow": PythonFmu(outputs={"y": lambda v: cos(v.t)}),
            "v": sum_of_inputs(),
            "x": sum_of_inputs(),
        }
        connections = [
            ("slow.y -> v.a", {"factor": w**2}),
            ("x.x -> v.b", {"factor": -(w**2)}),
            "v.x -> x.a",
        ]
        run = simulation(
            units, connections, algorithm=algorithm, step_size=step, stop_time=1, loops=Loops.NONE
        )
        found = run.run()
        ratio = w**2 / (w**2 - 1)
        exact = [ratio * (cos(t) - cos(w * t)) for t in found.time]
        return max(abs(float(x) - e) for x, e in zip(found["x.x"], exact, strict=True))

    together = error(GaussSeidel(mode=AtMiddle()), "1/500")
    divided = error(SubSteps(counts={"v": 10, "x": 10}), "1/50")
    coarse = error(GaussSeidel(mode=AtMiddle()), "1/50")
    assert divided < 0.2 * coarse
    assert divided == pytest.approx(together, rel=0.1)


def test_a_loop_within_one_rate_is_solved_in_each_sub_step(simulation: Make) -> None:
    def factor(k: float) -> PythonFmu:
        return PythonFmu(
            inputs={"u": 0.0, "w": 0.0},
            outputs={"y": lambda v: k * v.u + v.w},
            depends={"y": ["u", "w"]},
        )

    units = {"slow": clock(), "a": factor(0.5), "b": factor(-0.5)}
    loop = ["a.y -> b.u", "b.y -> a.u", "slow.y -> a.w"]
    algorithm = SubSteps(counts={"a": 2, "b": 2})
    results = simulation(units, loop, algorithm=algorithm, step_size=1, stop_time=3).run()
    # a = b/2 + t, b = -a/2
    assert results["a.y"].tolist() == pytest.approx([0.8 * t for t in (0, 1, 2, 3)], abs=1e-6)
    assert results.statistics.loops[0].solutions >= 6


def test_a_loop_across_rates_is_refused(simulation: Make) -> None:
    units = {
        n: PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.5 * v.u}, depends={"y": ["u"]})
        for n in "ab"
    }
    options: dict[str, Any] = {
        "algorithm": SubSteps(counts={"a": 2}),
        "step_size": 1,
        "stop_time": 1,
    }
    loop = ["a.y -> b.u", "b.y -> a.u"]
    with pytest.raises(OptionError, match=r"'a' and 'b' share an algebraic loop"):
        simulation(units, loop, **options).prepare()
    simulation(units, loop, loops=Loops.NONE, **options).prepare()


def test_a_base_that_does_not_interpolate_is_refused() -> None:
    with pytest.raises(OptionError, match=r"Jacobi.* does not interpolate .* Use GaussSeidel"):
        SubSteps(Jacobi(), {"a": 2})


def test_numbers_that_do_not_nest_are_refused() -> None:
    with pytest.raises(OptionError, match=r"3 sub-steps are not a multiple of 2 .* MultiRate"):
        SubSteps(counts={"a": 2, "b": 3})


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"a": 0}, "expected names of components with numbers"),
        ({"a": 1.5}, r"counts\['a'\]=1.5, expected a whole number"),
        ({"a": True}, r"counts\['a'\]=True, expected a whole number"),
        (["a"], r"counts=\['a'\], expected a mapping"),
    ],
)
def test_what_is_no_number_of_sub_steps_is_refused(counts: Any, expected: str) -> None:
    with pytest.raises(OptionError, match=expected):
        SubSteps(counts=counts)


def test_a_component_that_is_not_there_is_named(simulation: Make) -> None:
    run = simulation(
        {"slow": clock()}, algorithm=SubSteps(counts={"slo": 2}), step_size=1, stop_time=1
    )
    with pytest.raises(OptionError, match=r"no component 'slo'.* Did you mean 'slow'"):
        run.prepare()
