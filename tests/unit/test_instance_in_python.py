"""An instance written in Python needs only what it does: here an integrator, x' = u, with the output x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster import Simulation
from fmimaster.errors import CallError
from fmimaster.fmu.instance import Instance, InstanceOptions, StepAnswer, Transfer
from fmimaster.run.choice import Backend, native_executor
from fmimaster.system.model import (
    Capabilities,
    Causality,
    DataType,
    Initial,
    Model,
    Variability,
    Variable,
    Version,
)

U, X = 0, 1
"""Value references."""


class Integrator(Instance):
    """x' = u.."""

    def __init__(self, name: str, start: float) -> None:
        inputs = (DataType.FLOAT64, Causality.INPUT, Variability.CONTINUOUS, Initial.EXACT, (0.0,))
        output = (
            DataType.FLOAT64,
            Causality.OUTPUT,
            Variability.CONTINUOUS,
            Initial.EXACT,
            (start,),
        )
        variables = (Variable("u", U, *inputs), Variable("x", X, *output))
        can = Capabilities(can_handle_variable_communication_step_size=True)
        super().__init__(
            name, Model(name, Version("3.0"), name, "", variables, can, {"x": frozenset()})
        )
        self.values = np.array([0.0, start])

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        return lambda: values.put(range(len(values)), self.values[list(references)])

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        return lambda: self.values.put(references, values)

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        self.values[X] += size * self.values[U]
        return None


class File:
    """Stands for the file of an integrator."""

    def __init__(self, name: str, start: float) -> None:
        self.instance = Integrator(name, start)
        self.model = self.instance.model

    def instantiate(self, name: str, options: InstanceOptions) -> Instance:
        return self.instance

    def close(self) -> None:
        self.instance.free()


@pytest.mark.parametrize("backend", Backend)
def test_an_integrator_in_a_loop_gives_the_explicit_euler_method(
    simulation: Callable[..., Simulation], backend: Backend
) -> None:
    if backend is Backend.FASTEST and native_executor() is None:
        pytest.skip("the kernel is not built")
    a, b = File("a", 1.0), File("b", 0.0)
    wired = [("b.x -> a.u", {"factor": -1.0}), "a.x -> b.u"]  # a'' = -a
    run = simulation({"a": a, "b": b}, wired, step_size=0.25, stop_time=1.0, backend=backend)
    results = run.run()
    z = (1 + 0.25j) ** np.arange(5)
    np.testing.assert_allclose(results["a.x"], z.real, rtol=1e-15)
    np.testing.assert_allclose(results["b.x"], z.imag, rtol=1e-15)


def test_what_it_leaves_out_is_named_when_it_is_called() -> None:
    instance = Integrator("a", 1.0)
    with pytest.raises(
        CallError, match="EnterEventMode was called for 'a', which does not have Event Mode"
    ):
        instance.enter_event_mode()
    with pytest.raises(CallError, match="which does not have a state that can be saved"):
        instance.save(0)
    instance.terminate()
    instance.free()
