"""An instance written in Python needs only what it does: here an integrator, x' = u, with the output x."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fmimaster import Simulation
from fmimaster.fmu.instance import Instance, InstanceOptions, Transfer
from fmimaster.run import Backend
from fmimaster.system.declarations import Capabilities, Version
from fmimaster.system.model import Causality, DataType, Model, Variability, Variable

FLOAT64, CONTINUOUS = DataType.FLOAT64, Variability.CONTINUOUS


class Integrator(Instance):
    """x' = u, by the explicit Euler method; it also stands for the file that it comes from."""

    def __init__(self, start: float) -> None:
        u = Variable("u", 0, FLOAT64, Causality.INPUT, CONTINUOUS, None, (0.0,))
        x = Variable("x", 1, FLOAT64, Causality.OUTPUT, CONTINUOUS, None, (start,))
        can = Capabilities(can_handle_variable_communication_step_size=True)
        model = Model("integrator", Version("3.0"), (u, x), can, {"x": frozenset()})
        super().__init__("integrator", model)
        self.values = np.array([0.0, start])

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        return lambda: values.put(range(len(values)), self.values[list(references)])

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        return lambda: self.values.put(references, values)

    def do_step(self, time: float, size: float) -> None:
        self.values[1] += size * self.values[0]

    def instantiate(self, name: str, options: InstanceOptions) -> Instance:
        return self

    def close(self) -> None: ...


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.FASTEST], ids=lambda b: b.value)
def test_two_integrators_in_a_loop(simulation: Callable[..., Simulation], backend: Backend) -> None:
    units = {"a": Integrator(1.0), "b": Integrator(0.0)}  # a'' = -a
    links = [("b.x -> a.u", {"factor": -1.0}), "a.x -> b.u"]
    settings: dict[str, Any] = {"step_size": 0.25, "stop_time": 1, "algorithm": "Jacobi"}
    results = simulation(units, links, backend=backend, **settings).run()
    z = (1 + 0.25j) ** np.arange(5)
    np.testing.assert_allclose([results["a.x"], results["b.x"]], [z.real, z.imag], rtol=1e-15)
