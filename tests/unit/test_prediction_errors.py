"""The outputs by which the error of a step is judged."""

from __future__ import annotations

from python_fmu import PythonFmu, plan_of

from fmimaster.steps.prediction_errors import judged_outputs


def unit(nominal: float) -> PythonFmu:
    """y = x, from an input u."""
    return PythonFmu(
        inputs={"u": 0.0},
        states={"x": 1.0},
        outputs={"y": lambda v: v.x, "unused": lambda v: v.x},
        attributes={"y": {"nominal": nominal}},
    )


def test_outputs_that_feed_others_are_judged_by_their_nominal_values() -> None:
    """A nominal value of 0, which FMI forbids, counts as 1; of a negative one its magnitude counts."""
    units = {name: unit(value) for name, value in (("c", 0.0), ("b", -5.0), ("a", 2.0))}
    plan = plan_of(units, ["a.y -> b.u", "b.y -> c.u", "c.y -> a.u"])
    found = [(output.name, output.nominal) for output in judged_outputs(plan)]
    assert found == [("a.y", 2.0), ("b.y", 5.0), ("c.y", 1.0)]
