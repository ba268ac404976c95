"""Simulation of one component alone, with its inputs from a run of the system."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.modes import AlongLine
from fmimaster.base.errors import AccuracyWarning, OptionError
from fmimaster.configure.settings import AT_ONCE
from fmimaster.front.simulation import Simulation
from fmimaster.prepare.prepared import Prepared
from fmimaster.results.results import Results
from fmimaster.results.table import Table
from fmimaster.steps.step_rule import FixedStep
from fmimaster.studies.optimization.trial import is_number
from fmimaster.system.description import (
    Component,
    Connection,
    Connector,
    Endpoint,
    Parameter,
    System,
    SystemDescription,
)
from fmimaster.system.model import Causality, Source, Variability
from fmimaster.system.resolved import Link

_OUTPUT = "y"
"""Column of the table that feeds an input."""


class Alone:
    """Runs one component with recorded values of its sources; single values can be changed.

    Each input has its own table, interpolated between the communication points.

    Parameters
    ----------
    simulation, prepared
        Of the system.
    instance : int
        Of the component.
    recorded : Table
        The outputs of all components at the grid points of the system's step.
    folder
        For the tables.

    Attributes
    ----------
    links : input → Link
        The connections to the component.
    step_size : float
        Of the system, in s.

    Raises
    ------
    OptionError
        If an array, a text, a binary value or a clock is connected to it.
    """

    def __init__(
        self,
        simulation: Simulation,
        prepared: Prepared,
        instance: int,
        recorded: Table,
        folder: Path,
    ) -> None:
        plan = prepared.plan
        self._instances, self._planned = plan.instances, plan.instances[instance]
        self.name = self._planned.name
        self.links = {k.input.name: k for k in plan.links if k.target == instance}
        self._sources = {
            n: f"{plan.instances[k.source].name}.{k.output.name}" for n, k in self.links.items()
        }
        for source in self._sources.values():
            # arrays, texts, binary values and clocks have no single column of numbers
            if source not in recorded or not is_number(recorded[source]):
                raise OptionError(
                    f"'{source}' is not a number at each point, so '{self.name}' cannot be simulated alone "
                    "with recorded inputs. Use the signature method, which needs no such runs (--method signature)."
                )
        schedule = prepared.schedule
        self.step_size = float(schedule.rule.exact_size)
        self._simulation = replace(
            simulation,
            algorithm=GaussSeidel(mode=AlongLine()),
            start_time=schedule.start,
            stop_time=schedule.stop,
            step_size=FixedStep(schedule.rule.exact_size),
            sequence=None,
            event_clock=None,
            start_values={},
            input=None,
            output_variables=(),
            output_interval=None,
            **AT_ONCE,
        )
        self._component = prepared.components[instance]
        self._recorded, self._folder = recorded, folder

    def run(
        self, *, stale: str | None = None, shifted: Mapping[str, float] | None = None
    ) -> NDArray[np.float64]:
        """Its outputs at the grid points, shape (points, outputs).

        Parameters
        ----------
        stale
            An input that is held at its value at the start of each step.
        shifted
            Input → values that are added to the recorded values of the connected output.
        """
        return self._outputs_of(self._simulated(stale, shifted or {}))

    @cached_property
    def fresh(self) -> NDArray[np.float64]:
        """Its outputs with the recorded inputs, shape (points, outputs)."""
        return self._outputs_of(self._unchanged)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Columns of its outputs that are numbers or Booleans, in the system and alone."""
        alone = self._unchanged
        return tuple(n for n in alone.names if n in self._recorded and is_number(self._recorded[n]))

    @cached_property
    def _unchanged(self) -> Table:
        return self._simulated(None, {})

    def _simulated(self, stale: str | None, shifted: Mapping[str, float]) -> Table:
        late = frozenset({(self._table(stale), self.name)}) if stale is not None else frozenset()
        simulation = replace(
            self._simulation,
            system=self._system(shifted),
            algorithm=GaussSeidel(mode=AlongLine(), stale=late),
            error_estimate=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", AccuracyWarning
            )  # the run of the system has given these warnings
            results = simulation.run().expand()
        rows = np.searchsorted(results.time, self._recorded.time, "right") - 1
        prefix = f"{self.name}."
        names = sorted(n for n in results.names if n.startswith(prefix))
        return Table(time=self._recorded.time, columns={n: results[n][rows] for n in names})

    def recorded_outputs(self) -> NDArray[np.float64]:
        """Its outputs in the run of the system, shape (points, outputs)."""
        return self._outputs_of(self._recorded)

    def _outputs_of(self, table: Table) -> NDArray[np.float64]:
        columns = [table[name].astype(float) for name in self.outputs]
        return np.stack(columns, axis=1) if columns else np.zeros((table.rows, 0))

    def recorded_input(self, name: str) -> NDArray[np.float64]:
        """An input in the run of the system, shape (points,)."""
        change, values = self.links[name].transformation, self._recorded[self._sources[name]]
        converted: NDArray[np.float64] = change.factor * values.astype(float) + change.offset
        return converted

    def is_discrete(self, name: str) -> bool:
        """Whether an input changes at events only."""
        link = self.links[name]
        kinds = (link.input, link.output)
        return any(v.variability is not Variability.CONTINUOUS for v in kinds)

    def passes_on(self, name: str) -> bool:
        """Whether an output depends directly on an input."""
        return any(name in inputs for inputs in self._planned.model.dependencies.values())

    def source_of(self, name: str) -> tuple[str, float | None]:
        """The source component of an input, and its internal step size in s if it is published."""
        source = self._instances[self.links[name].source]
        return source.name, source.model.capabilities.fixed_internal_step_size

    def _table(self, name: str) -> str:
        """Component that feeds an input."""
        return f"{self.name} {name}"

    def _system(self, shifted: Mapping[str, float]) -> SystemDescription:
        parameters = tuple(
            Parameter(name, values) for name, values in self._planned.start_values.items()
        )
        # its connectors are those of its own system
        component = replace(self._component, name=self.name, parameters=parameters, connectors=())
        inputs = sorted(self.links)
        return SystemDescription(
            System(
                self.name,
                (*(self._source(name, shifted.get(name, 0.0)) for name in inputs), component),
                connections=tuple(self._connection(self.links[name]) for name in inputs),
            )
        )

    def _source(self, name: str, shift: float) -> Component:
        kind = self.links[name].output.type
        values = self._recorded[self._sources[name]]
        path = self._folder / f"{sorted(self.links).index(name)}.csv"
        table = Results(
            time=self._recorded.time, columns={_OUTPUT: values + shift if shift else values}
        )
        table.write(path)
        return Component(
            self._table(name), Source(path), (Connector(_OUTPUT, Causality.OUTPUT, kind),)
        )

    def _connection(self, link: Link) -> Connection:
        return Connection(
            Endpoint(self._table(link.input.name), _OUTPUT),
            Endpoint(self.name, link.input.name),
            link.transformation,
            suppress_unit_conversion=True,
        )
