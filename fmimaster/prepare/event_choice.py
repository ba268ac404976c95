"""The treatment of events for a run that names none: a row of the table in docs/events.md, "My FMU has …".

Each component has the row that fits its FMU. A system takes the row, or the two rows, that serve the components whose
events affect others; further rows are for runs that end with an error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.gauss_seidel import LINES, GaussSeidel
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.waveform import Waveform
from fmimaster.algorithms.wrapper import Aligned
from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.configure.requirements import why_not
from fmimaster.configure.settings import Settings
from fmimaster.events.event_clock import EarlyReturn, NoEventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.inputs.polynomial import ADAPTIVE, Polynomial
from fmimaster.plan.events import inputs_of, without_lone_events
from fmimaster.plan.graph import collected
from fmimaster.plan.policy import (
    MOST_NAMED,
    Policy,
    TableRow,
    named,
    row_of,
    stops_at_events,
    stops_itself,
    undoes_events,
)
from fmimaster.steps.locate import Locate
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.declarations import Scope
from fmimaster.system.model import Model
from fmimaster.system.resolved import ResolvedComponent, ResolvedSystem

QUINTIC = Polynomial(2, 2)
ONCE = Jacobi(QUINTIC)
SWEEPS = Waveform(Aligned(ONCE), sweeps=2)
"""For FMUs that stop at their events: extrapolated inputs ("E1" in docs/events.md), and inputs that two sweeps correct
("E2")."""


@dataclass(frozen=True, slots=True)
class FittingRow:
    """A row that fits an FMU or a system.

    Attributes
    ----------
    names : tuple of str
        The names of rows of the table: two if FMUs differ.
    because : str
        The reason, as a clause.
    settings : name of a setting → its value
        Those that a run uses; empty for an FMU alone.
    """

    names: tuple[str, ...]
    because: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"events: {' and '.join(self.names)}, because {self.because}"


def choose_events(settings: Settings, system: ResolvedSystem) -> Sequence[FittingRow]:
    """The rows that fit a system, the best one first; empty if settings decide, or no event affects others.

    No row changes what the settings give, and none would be refused. The last one is a run without an event clock.
    """
    if settings.event_clock is not None or not _is_open(settings):
        return ()
    system, used = (
        without_lone_events(system),
        collected((k.source, k.output.name) for k in system.links),
    )
    fed = collected((k.target, k.input.name) for k in system.links if k.input.is_continuous)
    fitting = {
        i: row_of(c.model, used.get(i, ()))
        for i, c in enumerate(system.components)
        if not c.is_input and (i in used or _depends(c.model, fed.get(i, ())))
    }
    rows = {
        i: row
        for i, (row, _) in fitting.items()
        if row is not TableRow.NONE or system.components[i].model.events
    }
    if not rows:
        return ()
    found = [_with_the_others(row, rows, system) for row in _Rows(settings, system, rows)]
    reasons = [f"'{system.components[i].name}': {fitting[i][1]}" for i in rows]
    because = listed(reasons, MOST_NAMED) if found else _why_none(settings, system, reasons)
    return [
        *found,
        FittingRow((TableRow.NONE.value,), because, {"event_clock": NoEventClock()}),
    ]


def _why_none(settings: Settings, system: ResolvedSystem, reasons: Sequence[str]) -> str:
    """Why no row can be used: what an FMU or the system lacks, else what the FMUs have."""
    fixed = [c.name for c in system.components if not _can_vary_steps(c.model)]
    if fixed:
        return (
            f"{named(fixed)} cannot vary the step size (canHandleVariableCommunicationStepSize is false): events happen at "
            "the ends of steps only"
        )
    has_declared = any(c.model.events for c in system.components)
    reason = why_not(system, Predictive(), settings.event_mode) if has_declared else ""
    return (reason[:1].lower() + reason[1:].rstrip(".")) or listed(reasons, MOST_NAMED)


def _with_the_others(
    fitting: FittingRow, rows: Mapping[int, TableRow], system: ResolvedSystem
) -> FittingRow:
    """The row, which tells of components whose undeclared events it does not find."""
    others = [
        system.components[i].name
        for i, row in rows.items()
        if row.value not in fitting.names and not system.components[i].model.events
    ]
    said = f"; not found, but at the ends of steps: events of {named(others)}" if others else ""
    return replace(fitting, because=fitting.because + said)


def _is_open(settings: Settings) -> bool:
    """Whether an event clock fits what is given: not with inputs that are held, with which predictions are wrong by half a
    step, and 93 of 102 runs warn (docs/events.md)."""
    rule, algorithm = settings.step_size, settings.algorithm
    if isinstance(rule, StepRule) and (rule.holds_inputs or rule.watches_discrete_outputs):
        return False
    if algorithm is None:
        return True
    assert isinstance(algorithm, Algorithm)
    follows = not algorithm.course.is_constant and algorithm.can_go_back
    return follows and not algorithm.finds_events_for_others


def _can_vary_steps(model: Model) -> bool:
    return model.capabilities.can_handle_variable_communication_step_size


def _depends(model: Model, fed: Collection[str]) -> bool:
    """Whether events depend on inputs that change during a step."""
    return any(
        e.scope is not Scope.PRIVATE and not inputs_of(e, model).isdisjoint(fed)
        for e in model.events
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a system can use, from the best one on."""

    settings: Settings
    system: ResolvedSystem
    rows: Mapping[int, TableRow]
    """Index of a component that affects others → the row that fits its FMU."""

    def __iter__(self) -> Iterator[FittingRow]:
        fired = [
            c for c in self._fitting(TableRow.PREDICTIVE) if any(e.trigger for e in c.model.events)
        ]
        located = self._fitting(TableRow.LOCATE) if self._can_locate else []
        if located and fired:
            yield from self._predicted(is_located=True)
        if located and not fired:
            yield from self._located()
        # an FMU that may stop need not have events: those that are declared count more
        yield from self._predicted()
        yield from self._looked_ahead()
        yield from self._stopped()
        if self._fitting(TableRow.EVENT_MODE) and self.settings.event_mode is None:
            members = named(c.name for c in self._fitting(TableRow.EVENT_MODE))
            because = f"{members}: Event Mode, in which discrete outputs change"
            yield FittingRow((TableRow.EVENT_MODE.value,), because, {"event_mode": True})

    def _predicted(self, *, is_located: bool = False) -> Iterator[FittingRow]:
        """Events with indicators, fired by the importer; others are located by discrete outputs."""
        names = [
            f"{c.name}.{e.name}" for c in self._fitting(TableRow.PREDICTIVE) for e in c.model.events
        ]
        because = f"these events have indicators: {named(names)}"
        changed: dict[str, Any] = {"algorithm": Jacobi(ADAPTIVE)}
        if self.settings.algorithm is not None:
            changed = {}
        rows = [TableRow.PREDICTIVE.value]
        if is_located:
            rows.append(TableRow.LOCATE.value)
            because += f"; {self._located_ones}"
            changed = {"step_size": self._locating, "algorithm": GaussSeidel(QUINTIC)}
        for clock in (Predictive(), Predictive(go_back=False)) if names else ():
            if not why_not(self.system, clock, self.settings.event_mode):
                given = {"event_clock": clock, **changed}
                yield FittingRow(tuple(rows), because, given)
            if is_located:
                return

    def _looked_ahead(self) -> Iterator[FittingRow]:
        """Shared events that only their members can execute: in short steps all of them do, at nearly the same time.

        Of 16 runs of random chains and clutches without triggers 9 are right, without an event clock none; the others warn.
        """
        waiting = self._fitting(TableRow.LOOK_AHEAD)
        if not waiting or why_not(self.system, LookAhead(), self.settings.event_mode):
            return
        names = named(f"{c.name}.{e.name}" for c in waiting for e in c.model.events)
        because = f"shared events have no trigger, so steps become short before them: {names}"
        given: dict[str, Any] = {"event_clock": LookAhead()}
        if self.settings.algorithm is None:
            given["algorithm"] = Jacobi(ADAPTIVE)
        yield FittingRow((TableRow.LOOK_AHEAD.value,), because, given)

    def _located(self) -> Iterator[FittingRow]:
        """Changes of discrete outputs; the end values of plants are the inputs of their controllers."""
        given = {"step_size": self._locating, "algorithm": LINES}
        yield FittingRow((TableRow.LOCATE.value,), self._located_ones, given)

    def _stopped(self) -> Iterator[FittingRow]:
        """FMUs that stop: with sweeps, if their inputs can follow polynomials and all can go back."""
        components = self.system.components
        stopping = [i for i, c in enumerate(components) if stops_itself(c.model)]
        if not stopping or why_not(self.system, EarlyReturn(), self.settings.event_mode):
            return
        names = named(self.system.components[i].name for i in stopping)
        follows = all(
            not stops_at_events(components[k.target].model, Policy.ANNOUNCE)
            or not k.input.is_continuous
            or (
                k.output.is_continuous  # else it is held, which sweeps refuse
                and components[k.target].model.takes_polynomial_of(k.input)
            )
            for k in self.system.links
        )
        models = [c.model for c in self.system.components]
        because = f"FMUs stop at their events: {names}"
        clock = {"event_clock": EarlyReturn()}
        if self.settings.algorithm is not None:
            if follows and all(map(undoes_events, models)):
                yield FittingRow((TableRow.EARLY_RETURN.value,), because, clock)
            return
        if follows and all(map(undoes_events, models)):
            swept = f"{because}, and sweeps correct their inputs"
            yield FittingRow((TableRow.EARLY_RETURN.value,), swept, {**clock, "algorithm": SWEEPS})
        if all(undoes_events(m) or _may_stay(m) for m in models):
            yield FittingRow((TableRow.EARLY_RETURN.value,), because, {**clock, "algorithm": ONCE})

    def _fitting(self, row: TableRow) -> Sequence[ResolvedComponent]:
        return [self.system.components[i] for i, its in self.rows.items() if its is row]

    @property
    def _can_locate(self) -> bool:
        """Whether steps can be repeated to locate changes."""
        s = self.settings
        has_rule = isinstance(s.step_size, StepRule) or s.accuracy is not None
        in_order = s.algorithm is None or not s.algorithm_used.is_parallel
        return (
            in_order
            and not has_rule
            and all(
                undoes_events(c.model) and _can_vary_steps(c.model) for c in self.system.components
            )
        )

    @property
    def _locating(self) -> StepRule[Any]:
        return Locate(self.settings.step_size)  # type: ignore[arg-type]

    @property
    def _located_ones(self) -> str:
        located = {c.name for c in self._fitting(TableRow.LOCATE)}
        outputs = (
            f"{source.name}.{k.output.name}"
            for k in self.system.links
            if (source := self.system.components[k.source]).name in located
            and not k.output.is_continuous
        )
        return f"discrete outputs change at events: {named(outputs)}"


def _may_stay(model: Model) -> bool:
    """Whether an FMU that has stepped past an event of others can wait there."""
    is_member = any(e.scope is Scope.SHARED for e in model.events)
    return model.capabilities.has_event_mode and not is_member
