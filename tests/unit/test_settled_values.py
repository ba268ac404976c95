"""Random systems with loops: after the initialization, all inputs agree with the outputs that feed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_fmu import Bench, PythonFmu

from fmimaster.base.errors import LoopError
from fmimaster.system.model import DataType, Variability

pytestmark = pytest.mark.usefixtures("each_executor")

CLOSE = 1e-6
"""Residuals are below 1e-8; gains are below 2, and there are few units in a row."""


@dataclass(frozen=True)
class Sum:
    """A sum of inputs, or whether it is above a threshold."""

    inputs: Sequence[str]
    gain: float
    constant: float
    is_discrete: bool

    def __call__(self, v: Any) -> Any:
        total = self.constant + self.gain * sum(float(getattr(v, name)) for name in self.inputs)
        return total > 0.5 if self.is_discrete else total


@st.composite
def systems(draw: st.DrawFn) -> tuple[dict[str, Callable[[], PythonFmu]], list[str]]:
    """Some units, each with inputs and outputs that depend on some of them or declare nothing; connected at random."""
    n = draw(st.integers(1, 4))
    shapes = [(draw(st.integers(1, 3)), draw(st.integers(1, 3))) for _ in range(n)]
    outputs = [(i, k) for i, (_, m) in enumerate(shapes) for k in range(m)]
    is_discrete = {o: draw(st.integers(0, 4)) == 0 for o in outputs}
    units: dict[str, Callable[[], PythonFmu]] = {}
    connections: list[str] = []
    for i, (n_inputs, n_outputs) in enumerate(shapes):
        attributes: dict[str, dict[str, Any]] = {}
        inputs: dict[str, Any] = {}
        for k in range(n_inputs):
            source = draw(st.sampled_from(outputs))
            connections.append(f"m{source[0]}.y{source[1]} -> m{i}.u{k}")
            inputs[f"u{k}"] = 0.0
            if is_discrete[source]:
                attributes[f"u{k}"] = {"type": DataType.BOOLEAN}
                inputs[f"u{k}"] = False
        functions = {}
        for k in range(n_outputs):
            used = draw(st.lists(st.sampled_from(sorted(inputs)), max_size=2, unique=True))
            gain = draw(st.sampled_from([0.3, -0.7, 1.7]))
            functions[f"y{k}"] = Sum(used, gain, draw(st.integers(-2, 2)), is_discrete[i, k])
            if is_discrete[i, k]:
                attributes[f"y{k}"] = {"type": DataType.BOOLEAN}
            elif draw(st.integers(0, 4)) == 0:  # a number that the tool declares so
                attributes[f"y{k}"] = {"variability": Variability.DISCRETE}
        undeclared = draw(st.booleans()) and draw(st.booleans())

        def make(
            inputs: Any = inputs,
            functions: Any = functions,
            attributes: Any = attributes,
            undeclared: bool = undeclared,
        ) -> PythonFmu:
            return PythonFmu(
                inputs=inputs,
                outputs=functions,
                depends={y: f.inputs for y, f in functions.items()},
                undeclared=functions if undeclared else (),
                attributes=attributes,
            )

        units[f"m{i}"] = make
    return units, connections


def settled(units: dict[str, PythonFmu], connections: list[str]) -> dict[str, Any] | None:
    """All outputs after the initialization; None if a loop has no solution that was found."""
    bench = Bench(units, connections, outputs=["*"])
    try:
        assert bench.initialize().stopped is None
    except LoopError:
        return None
    for connection in connections:
        (source, output), (target, name) = (e.split(".") for e in connection.split(" -> "))
        given = getattr(bench.instances[target].values, name)
        value = units[source].outputs[output](bench.instances[source].values)
        if isinstance(value, bool):
            assert given == value, connection
        else:
            assert given == pytest.approx(value, rel=CLOSE, abs=CLOSE), connection
    return {f"{n}.{y}": bench.value(f"{n}.{y}") for n, unit in units.items() for y in unit.outputs}


@settings(max_examples=25)
@given(systems(), st.data())
def test_inputs_agree_with_their_sources_and_listing_order_changes_no_bit(
    system: tuple[dict[str, Callable[[], PythonFmu]], list[str]], data: st.DataObject
) -> None:
    """loops.md 7.4."""
    units, connections = system
    found = settled({n: make() for n, make in units.items()}, connections)
    order = data.draw(st.permutations(sorted(units)))
    shuffled = data.draw(st.permutations(connections))
    again = settled({n: units[n]() for n in order}, list(shuffled))
    assert found == again
