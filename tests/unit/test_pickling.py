"""What stands above the loop is a value: it goes through pickle, and to another process."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from processes import PATIENCE
from python_fmu import PythonFmu, describe, plan_of

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel
from fmimaster.algorithms.assemble import assemble
from fmimaster.base.errors import CallError
from fmimaster.inputs import Polynomial
from fmimaster.steps import FixedStep
from fmimaster.system.description import SystemDescription


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def pair() -> SystemDescription:
    """Two reference FMUs that feed each other."""
    builder = SystemBuilder("pair")
    builder.add("a", reference_path("fmi2/Dahlquist.fmu"), {"k": 2.0})
    builder.add("b", reference_path("fmi3/Dahlquist.fmu"), {"x": 0.5})
    builder.connect("a.x", "b.u", factor=2.0)
    builder.connect("b.x", "a.u", offset=1.0)
    return builder.build(stop_time=1, step_size=0.01)


def simulation() -> Simulation:
    return Simulation(
        pair(),
        algorithm=GaussSeidel(Polynomial(2, 0)),
        step_size=FixedStep("1/50"),
        start_values={"a.x": 3.0},
        output_variables=["a.*"],
    )


def equal(a: Results, b: Results) -> bool:
    """Whether two tables have the same times, names, units and bits."""
    return (
        np.array_equal(a.time, b.time)
        and a.names == b.names
        and a.units == b.units
        and all(np.array_equal(a[n], b[n]) and a[n].dtype == b[n].dtype for n in a.names)
    )


@pytest.mark.parametrize("make", [pair, simulation], ids=lambda m: m.__name__)
def test_a_copy_is_equal(make: Callable[[], Any]) -> None:
    value = make()
    assert copied(value) == value


def matrices() -> dict[str, PythonFmu]:
    """Units with start values and connections of several elements, and of all kinds."""
    attributes = {"m": {"shape": (2, 2)}, "y": {"shape": (2, 2)}}
    return {
        n: PythonFmu(
            inputs={"m": 0.0},
            outputs={"y": lambda v: v.m},
            depends={"y": ["m"]},
            attributes=attributes,
        )
        for n in "ab"
    }


def test_a_plan_comes_through_with_all_that_programs_need() -> None:
    plan = plan_of(matrices(), ["a.y -> b.m"], {"a.m": [1, 2, 3, 4]})
    copy = copied(plan)
    assert copy == plan
    assert assemble(copy, GaussSeidel()) == assemble(plan, GaussSeidel())
    for name in ("links", "trigger_sequence", "visits", "layout", "routes", "recorded", "notes"):
        assert getattr(copy, name) == getattr(plan, name)
    assert copy.instances[0].model == plan.instances[0].model
    assert copy.instances[0].start_values["m"] == (1, 2, 3, 4)


def test_plans_can_be_compared_also_if_start_values_are_arrays() -> None:
    values = {"a.m": [1, 2, 3, 4]}
    plan = plan_of(matrices(), ["a.y -> b.m"], values)
    assert copied(plan) == plan
    assert plan_of(matrices(), ["a.y -> b.m"], {"a.m": [1, 2, 3, 5]}) != plan


def test_a_copied_simulation_gives_equal_results() -> None:
    assert equal(copied(simulation()).run(), simulation().run())


def test_results_come_through_with_shapes_units_statistics_and_stay_read_only() -> None:
    results = simulation().run()
    copy = copied(results)
    assert equal(copy, results)
    assert copy.statistics == results.statistics
    assert copy.index.tolist() == results.index.tolist()
    with pytest.raises(ValueError, match="read-only"):
        copy["a.x"][0] = 0.0


def test_a_description_of_python_objects_pickles() -> None:
    description = describe({"a": PythonFmu(inputs={"u": 0.0})}, (), {"a.u": 1.0})
    assert copied(description) == description


# In other processes ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Any:
    # forking a process in which other tests have left threads is not safe
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_runs_in_other_processes_give_equal_results(pool: ProcessPoolExecutor) -> None:
    runs = [pool.submit(simulation().run) for _ in range(4)]
    expected = simulation().run()
    assert all(equal(run.result(timeout=PATIENCE), expected) for run in runs)


def test_a_failure_in_another_process_comes_back_with_its_facts_and_rows(
    pool: ProcessPoolExecutor,
) -> None:
    faulty = Simulation(
        reference_path("fmi3/Faulty.fmu"),
        start_values={"fault": 3, "faultTime": 0.5},
        stop_time=1,
        step_size=0.1,
    )
    with pytest.raises(CallError, match="told to return Error") as caught:
        pool.submit(faulty.run).result(timeout=PATIENCE)
    assert caught.value.function == "fmi3DoStep"
    assert caught.value.results is not None
    assert caught.value.results.rows == 6
