"""Search for a better trigger sequence of a system: the methods, their runs and their results."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.modes import AlongLine
from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.configure.input_signals import InputSignals
from fmimaster.configure.setting_rows import ROWS
from fmimaster.configure.settings import AT_ONCE
from fmimaster.front.simulation import Simulation
from fmimaster.prepare.prepared import Prepared
from fmimaster.sequences.feedback import least_stale
from fmimaster.sequences.graph import UnitGraph
from fmimaster.studies.optimization.alone import Alone
from fmimaster.studies.optimization.runs import KeptRuns, Runs, digest
from fmimaster.studies.optimization.signature import Candidate, Signature
from fmimaster.studies.optimization.trial import Arc, Groups, SimulationTrial, groups_of
from fmimaster.studies.optimization.weights import Input, Weighting

log = logging.getLogger("fmimaster")

Method = Signature | Weighting

NOISE = 0.5
"""Error relative to the size of the outputs from which on sequences are ranked by noise."""


@dataclass(frozen=True, slots=True)
class FoundSequence:
    """A found sequence, and the reasons for it.

    Attributes
    ----------
    components : tuple of str
        Names of all components, in the order of their steps.
    base : tuple of str
        Components in the previous sequence of the system.
    cost, base_cost : float
        Total weight of the stale inputs with the found and with the previous sequence, by the weights of the method.
    weights : mapping
        (source, target) → weight of all connections from source to target.
    candidates : tuple of Candidate
        Sequences of groups with predicted and measured errors, the best one first; for methods with weights only the
        chosen one.
    groups : Groups
        A group is a component, or several that are solved together.
    unknown : tuple of Arc
        For the signature method: arcs without a signature, because runs failed or were not made.
    algorithm : GaussSeidel
        The algorithm for which the sequence was found.
    ranks_noise : bool
        Whether the simulated error of the best or of the previous sequence is about as large as the outputs themselves.
        The reference from which errors are measured is then wrong by as much, and the order of the sequences is chance.
    """

    components: tuple[str, ...]
    base: tuple[str, ...]
    cost: float
    base_cost: float
    weights: Mapping[Arc, float]
    candidates: tuple[Candidate, ...]
    groups: Groups
    algorithm: GaussSeidel
    unknown: tuple[Arc, ...] = ()
    ranks_noise: bool = False


class SequenceSearch:
    """Search for a better trigger sequence by simulations of the system.

    Parameters
    ----------
    simulation : Simulation
        The system and its settings. Default algorithm: Gauss-Seidel with interpolated inputs (``AlongLine()``). The search
        starts from its sequence.
    method : Signature, Propagated or Fuzzy
        Default: Signature.
    folder : path, optional
        A folder in which runs of the signature method are stored. A later search with the same settings reads them and
        makes only the missing runs.
    tell
        Called with a text before each simulation.

    Attributes
    ----------
    runs : Runs
        The simulations of the system so far.
    simulations : int
        Number of simulations so far.
    weights : dict
        (component, input) → weight, if it is known; empty for the signature method.

    Raises
    ------
    InputError
        If the system has no cycle of components, where no input needs to be stale, or if it cannot be simulated.
    """

    def __init__(
        self,
        simulation: Simulation,
        method: Method | None = None,
        *,
        folder: Path | None = None,
        tell: Callable[[str], None] = log.info,
    ) -> None:
        simulation = replace(simulation, **AT_ONCE)
        if simulation.algorithm is None:
            simulation = replace(simulation, algorithm=GaussSeidel(mode=AlongLine()))
        self.simulation, self.method = simulation, method or Signature()
        self.simulations, self._told = 0, tell
        self.prepared = simulation.prepare()
        described = dict(self.prepared.description.components())
        instances = enumerate(self.prepared.plan.instances)
        self.groups = groups_of(
            self.prepared.plan, [i for i, p in instances if p.name in described]
        )
        if not self.groups.arcs:
            raise OptionError(
                f"System '{self.prepared.description.system.name}' has no two components that are connected and not solved "
                "together, so every sequence gives the same results. There is nothing to optimize."
            )
        if isinstance(self.method, Weighting):
            self.method.check([i.name for i in self.prepared.plan.instances])
            if folder is not None:
                raise OptionError(
                    "Runs are kept (--keep-runs) for the signature method only: other methods simulate the system once. "
                    "Leave the folder out."
                )
        kept = None if folder is None else KeptRuns(folder, _facts(simulation, self.prepared))
        self.runs = Runs(simulation, self.prepared, self.groups, kept=kept, tell=self._tell)
        self.weights: dict[Input, float] = {}

    def _tell(self, text: str) -> None:
        self.simulations += 1
        self._told(text)

    @property
    def base(self) -> tuple[str, ...]:
        """The first sequence, of groups."""
        return self.groups.of_instances(self.prepared.plan.trigger_sequence)

    def run(self, others: Iterable[Sequence[str]] = ()) -> FoundSequence:
        """Search, or continue a search that was interrupted or has failed.

        Parameters
        ----------
        others
            Sequences of groups that the signature method simulates as well, for comparison.

        Returns
        -------
        FoundSequence
            The sequence, with its error if it is known.

        Raises
        ------
        SimulationError
            If a necessary run fails, or the search is interrupted. :meth:`so_far` then gives the results up to that
            time.
        """
        if isinstance(self.method, Signature):
            return self._by_signatures(self.method, others)
        return self._by_weights(self.method)

    def so_far(self) -> FoundSequence | None:
        """The best sequence by the runs so far.

        Returns
        -------
        FoundSequence or None
            None if these runs give no result.
        """
        self.runs.closed = True
        try:
            usable = (
                isinstance(self.method, Signature)
                and self.runs(SimulationTrial(self.base)) is not None
            )
            return self.run() if usable else None
        finally:
            self.runs.closed = False

    def _by_signatures(self, method: Signature, others: Iterable[Sequence[str]]) -> FoundSequence:
        base = SimulationTrial(self.base)
        if self.runs(base) is None:  # without it there is nothing to compare with
            raise self.runs.failures[base]
        optimum = method.search(
            self.runs,
            self.groups.arcs,
            self.base,
            self._cheapest,
            order=self.runs.order,
            others=map(tuple, others),
        )
        return self._found(optimum.signatures, optimum.candidates, optimum.unknown)

    def _by_weights(self, method: Weighting) -> FoundSequence:
        self._tell(f"{', '.join(self.base)}: all outputs are recorded")
        plan = self.prepared.plan
        first = replace(
            self.simulation,
            system=self.prepared.description,
            output_variables=(),
            output_interval=None,
        ).run()
        recorded = self.runs.at_grid(first)
        for i in sorted(self.groups.group_of, key=lambda i: plan.instances[i].name):
            name = plan.instances[i].name
            if any(name == component for component, _ in self.weights):
                continue  # before an interruption
            with tempfile.TemporaryDirectory(prefix="fmimaster-") as folder:
                component = Alone(self.simulation, self.prepared, i, recorded, Path(folder))
                self._tell(f"{name} alone, with {len(component.links)} recorded inputs")
                self.weights |= dict(method.weights(component))
        weights = dict.fromkeys(sorted(self.groups.arcs), 0.0)
        for link in sorted(plan.links, key=lambda k: (k.target, k.input.name)):
            arc = self.groups.arc(link.source, link.target)
            if arc in weights:
                weights[arc] += self.weights[plan.instances[link.target].name, link.input.name]
        return self._found(weights, [Candidate(tuple(self._cheapest(weights)))])

    def _cheapest(self, weights: Mapping[Arc, float]) -> tuple[str, ...]:
        graph = self._graph(weights)
        return graph.named(least_stale(graph))

    def _graph(self, weights: Mapping[Arc, float]) -> UnitGraph:
        return UnitGraph.made(self.groups.members, ((a, b, w) for (a, b), w in weights.items()))

    def _found(
        self,
        weights: Mapping[Arc, float],
        candidates: Iterable[Candidate],
        unknown: tuple[Arc, ...] = (),
    ) -> FoundSequence:
        candidates = tuple(candidates)
        chosen, base = candidates[0].sequence, self.base
        algorithm, graph = self.simulation.algorithm_used, self._graph(weights)
        assert isinstance(algorithm, GaussSeidel)  # Runs has refused others
        errors = (c.measured for c in candidates if c.sequence in (chosen, base))
        return FoundSequence(
            self.groups.components(chosen),
            self.groups.components(base),
            graph.cost(graph.indices(chosen)),
            graph.cost(graph.indices(base)),
            weights,
            candidates,
            self.groups,
            algorithm,
            unknown,
            any(error is not None and not error < NOISE for error in errors),
        )


def _facts(simulation: Simulation, prepared: Prepared) -> dict[str, str]:
    """Properties that stored runs must have in common.

    Raises
    ------
    OptionError
        If a component or an input is written in Python: its code may change from one search to the next.
    """
    given = simulation.input
    if isinstance(given, InputSignals) and given.functions:
        raise OptionError(
            f"The input '{next(iter(given.functions))}' is a function, so runs cannot be kept in a folder: a change of its "
            "code would not be noticed. Give values instead, or leave the folder out."
        )
    in_python = [name for name, c in prepared.description.components() if c.python is not None]
    if in_python:
        raise OptionError(
            f"'{in_python[0]}' is written in Python, so runs cannot be kept in a folder: a change of its code would not be "
            "noticed. Leave the folder out."
        )
    settings = {
        name: getattr(simulation, name)
        for name, row in ROWS.items()
        if row.changes_rows and name not in ("system", "sequence")  # compared in another way
    }
    files = sorted({c.source.path for c in prepared.components if c.is_file})
    return {
        **{name: repr(value) for name, value in settings.items()},
        "input": given.digest if isinstance(given, InputSignals) else repr(given),
        "system": repr(prepared.description.system),
        "files": digest(files),
    }
