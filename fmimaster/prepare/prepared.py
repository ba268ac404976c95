"""A simulation before any FMU is instantiated, as a value: the plan, the programs, the times; the metadata of its run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timezone
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmuLostError, LoopError, SimulationError
from fmimaster.base.installation import installed_version
from fmimaster.base.text import count
from fmimaster.cards.use import CardUse
from fmimaster.configure.named import setting_text
from fmimaster.configure.settings import Settings
from fmimaster.fmu.model_exchange.integrator import exchange_notes
from fmimaster.fmu.shared_library import FMI3
from fmimaster.plan.corrections import late_indicators
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.plan.step_groups import Loops
from fmimaster.plan.variables import moves_steadily
from fmimaster.program.programs import Programs
from fmimaster.steps.schedule import Schedule
from fmimaster.system.archive import file_hash
from fmimaster.system.description import Component, SystemDescription
from fmimaster.system.model import DataType, Model
from fmimaster.system.resolved import OpenInput, Varied

if TYPE_CHECKING:
    from fmimaster.cards.measured import MeasuredAtStart
    from fmimaster.configure.requirements import Unclocked
    from fmimaster.fmu.model_exchange.integrator import Integrator
    from fmimaster.prepare.accuracy_choice import Choice
    from fmimaster.run.loop import InputJump

AnySettings = TypeVar("AnySettings", bound=Settings)


@dataclass(frozen=True, slots=True)
class OwnProcess:
    """The process of its own that an FMU has."""

    note: str = ""
    """Why; empty if the user has requested it."""
    addresses: tuple[str, ...] = ()
    """Of hosts on other machines, of which the first that can be reached starts it; none for this machine."""


Isolated: TypeAlias = Mapping[str, OwnProcess]
"""Name of a component whose FMU has a process of its own → that."""


@dataclass(frozen=True, slots=True)
class ChosenSettings:
    """Settings that were not given, as they are chosen for a system.

    Attributes
    ----------
    settings : name of a setting → its value
    notes : tuple of str
        What was chosen, and why.
    instead : tuple of such mappings
        What is tried next, in this order, if the run ends with an error.
    plainer : tuple of such mappings
        What is tried next, in this order, if outputs grow without bound.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    instead: tuple[Mapping[str, Any], ...] = ()
    plainer: tuple[Mapping[str, Any], ...] = ()

    def with_setting(self, name: str, value: object) -> ChosenSettings:
        """With another setting."""
        return replace(self, settings={**self.settings, name: value})


NOTHING = ChosenSettings()
ALONE = ChosenSettings({"algorithm": Jacobi()})
"""For a component alone: nothing is coupled."""


@dataclass(frozen=True, repr=False)
class Prepared:
    """A simulation before any FMU is instantiated."""

    description: SystemDescription
    """What exists at the start."""
    whole: SystemDescription
    """With all that exists at any time."""
    plan: Plan
    programs: Programs
    schedule: Schedule
    components: tuple[Component, ...]
    """The component from which each instance of the plan is made."""
    input_jumps: Mapping[Fraction, InputJump] = field(default_factory=dict)
    """Time in s → the jump of inputs there. Jumps that are not events are left out, unless lines through several instants
    or step-size control must restart there."""
    chosen: ChosenSettings = NOTHING
    """Settings that were not given."""
    choice: Choice | None = None
    """The controller and the inputs for a requested accuracy; the schedule and the programs are those of its first
    run."""
    open_inputs: tuple[OpenInput, ...] = ()
    """Open inputs."""
    solvers: Mapping[str, Integrator] = field(default_factory=dict)
    """Name of a component → its solver, for Model Exchange FMUs for which the user has chosen one."""
    cards: CardUse = CardUse()
    """What the cards of the FMUs have changed."""
    isolated: Isolated = field(default_factory=dict)
    """The FMUs that have processes of their own."""
    left_out: Sequence[str] = ()
    """Signals of the input that have no open input here."""
    unclocked: Sequence[Unclocked] = ()
    """Events that need an event clock, in a run without one."""
    varied: Mapping[str, tuple[Varied, ...]] = field(default_factory=dict)
    """Name of a start value that changes from run to run → the variables that it sets."""

    def __repr__(self) -> str:
        start, stop = float(self.schedule.start), float(self.schedule.stop)
        size = f"{float(self.schedule.rule.exact_size):g}"
        instances = count(len(self.plan.instances), "instance")
        times = f"t = {start:g} s to {stop:g} s, steps of at most {size} s"
        return f"<Prepared {self.description.system.name!r}: {instances}, {times}>"

    def completed(self, settings: AnySettings) -> AnySettings:
        """The settings of the run: those that are given, with those that were chosen."""
        return replace(settings, **self.chosen.settings)

    @property
    def couples(self) -> bool:
        """Whether a continuous output of a component feeds another one; signals that the user gives are none."""
        return any(
            group in (Group.CONTINUOUS, Group.DISCRETE)
            and route.link.source != route.link.target
            and moves_steadily(self.plan.instances[route.link.source].model, route.link.output)
            and not self.components[route.link.source].is_table
            for (_, group), routes in self.plan.routes.items()
            for route in routes
        )

    @property
    def measured(self) -> MeasuredAtStart | None:
        """What is known of dependencies that decide about loops, and are measured at the start; None if they are not."""
        measured: MeasuredAtStart | None = self.chosen.settings.get("loops")
        return measured

    def other_loops(
        self, error: SimulationError, used: Settings
    ) -> tuple[MeasuredAtStart, str] | None:
        """The setting ``loops`` with which a run is repeated that has ended with an error, and how this is done in words;
        None if the error has nothing to do with loops that were measured, and if the user has chosen loops.

        Parameters
        ----------
        used
            The settings of that run.
        """
        if self.measured is None:
            return None
        from fmimaster.cards.measured import MeasuredAtStart  # few runs end with an error

        known = used.loops if isinstance(used.loops, MeasuredAtStart) else self.measured
        if isinstance(error, LoopError):
            held = known.solves and self._is_measured(error)
            return (replace(known, solves=False), "with held inputs in loops") if held else None
        names = {one.name for one in self.programs.reactions} - {*known.refused}
        is_early = error.time is not None and error.time <= float(self.schedule.start)
        if not isinstance(error, FmuLostError) or not is_early or error.instance not in names:
            return None
        reason = f"perhaps by slightly changed inputs, {error}".rstrip(".")
        fewer = known.and_also(MeasuredAtStart(refused={error.instance: reason}))
        return fewer, "without measuring its dependencies"

    def _is_measured(self, error: LoopError) -> bool:
        """Whether only a measurement has found the loop whose solution has failed in a step."""
        names = [i.name for i in self.plan.instances]
        declared = {
            f"{names[i]}.{name}"
            for loop in self.plan.step_loops
            if not loop.assumed
            for i, name in loop.variables
        }
        is_begun = error.results is not None and error.results.rows > 0
        return is_begun and declared.isdisjoint(error.loop)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Choices for settings that the user did not give."""
        chosen = () if self.choice is None else (str(self.choice),)
        models = {i.name: i.model for i in self.plan.instances}
        exchanged = exchange_notes(models, self.solvers)
        left_out = (note for e in self.schedule.rule.estimators for note in e.notes(self.plan))
        isolated = dict.fromkeys(own.note for own in self.isolated.values() if own.note)
        return (
            *self.chosen.notes,
            *self.plan.notes,
            *self.cards.notes,
            *exchanged,
            *isolated,
            *self.programs.notes,
            *self.schedule.notes,
            *left_out,
            *chosen,
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Violations of the standard in the files of the system, and parts of the system that are not computed."""
        return (
            *self.description.warnings,
            *self.cards.warnings,
            *self.cards.beside(self.isolated),
            *self.plan.warnings,
            *self.accuracy_warnings,
        )

    @cached_property
    def accuracy_warnings(self) -> tuple[str, ...]:
        """Those of :attr:`warnings` that report a loss of accuracy."""
        return (
            *(one.text for one in self.unclocked),
            *self.programs.accuracy_warnings,
            *late_indicators(
                [i.name for i in self.plan.instances],
                self.plan.corrections,
                self.plan.events,
                self.programs.held,
                [i for i, planned in enumerate(self.plan.instances) if planned.may_return_early],
                float(self.schedule.rule.exact_size) / 2,
            ),
        )


def known_at_start(settings: Settings, description: SystemDescription) -> MeasuredAtStart | None:
    """What is known of the dependencies that decide about loops; None if loops are chosen, or all methods are named."""
    if description.is_single_fmu:
        return None
    from fmimaster.cards.measured import MeasuredAtStart  # a component alone does not need it

    given = settings.used.loops
    if isinstance(given, MeasuredAtStart):
        return given
    is_open = settings.algorithm is None or settings.event_clock is None
    return MeasuredAtStart(holds=settings.algorithm is None) if given is None and is_open else None


def with_measured(
    cards: CardUse,
    measured: MeasuredAtStart | None,
    components: Mapping[str, Component],
    models: Mapping[str, Model],
) -> CardUse:
    """What the cards change, and what is known of dependencies from the start of the run and from kept cards."""
    models = {**models, **cards.models}
    if measured is None or not measured.matters(models):
        return cards
    from fmimaster.cards.at_start import used_with  # few runs have measured anything

    return used_with(cards, measured, components, models)


def run_metadata(prepared: Prepared, settings: Settings) -> dict[str, Any]:
    """Metadata of a run that are known at its start.

    Returns
    -------
    dict
        ``"fmimaster"``, ``"python"``: versions; ``"platform"``; ``"started"``: date and time of the start (ISO 8601, UTC);
        ``"system"``: its path as it was given, or its name; ``"components"``: for each its ``"name"``, and ``"file"`` and
        ``"sha256"`` if it is a file; ``"start_time"`` and ``"stop_time"`` in s; ``"settings"``: those that differ from
        their defaults; ``"chosen"``: what the run uses for others; both as text if JSON has no such value, which
        :class:`fmimaster.Simulation` and the command line read; ``"notes"``: the reasons of choices; ``"clocks"``: columns
        that are clocks, if there are any.
        The run adds ``"end_time"`` in s, ``"steps"`` and ``"events"``, which are numbers, ``"wall_time"`` of the loop
        over time in s, and ``"warnings"``.
    """
    clocks = [c.name for c in prepared.plan.recorded if c.type is DataType.CLOCK]
    return {
        "fmimaster": installed_version(),
        "python": sys.version.split()[0],
        "platform": FMI3,
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "system": _system(prepared, settings),
        "components": _components(prepared),
        "start_time": float(prepared.schedule.start),
        "stop_time": float(prepared.schedule.stop),
        "settings": {
            name: plain(value)
            for name, value in settings.changed().items()
            # results do not depend on a process
            if name != "process" and name not in prepared.chosen.settings
        },
        "chosen": {name: plain(value) for name, value in _chosen(prepared)},
        "notes": list(prepared.notes),
        **({"clocks": clocks} if clocks else {}),
    }


def plain(value: Any) -> Any:
    """A value as JSON; text for types that JSON does not have."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [plain(entry) for entry in value]
    return setting_text(value)


def _chosen(prepared: Prepared) -> Iterator[tuple[str, Any]]:
    """Settings that were not given, by name, as the user could give them."""
    schedule, measured = prepared.schedule, prepared.measured
    for name, value in prepared.chosen.settings.items():
        if name != "loops":
            yield name, value
    if measured is not None and prepared.plan.step_loops:
        solved = Loops.ALL if prepared.plan.step_groups else Loops.REAL
        yield "loops", solved if measured.solves else Loops.NONE
    if schedule.is_chosen or schedule.is_suggested:
        yield "step_size", schedule.rule.size


def _system(prepared: Prepared, settings: Settings) -> str:
    given = settings.system
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return prepared.description.system.name


def _components(prepared: Prepared) -> list[dict[str, str]]:
    """The name of each, and its file; each file is looked at once."""
    sources = [component.source for component in prepared.components]
    files = {source: _file(source.path, source.member) for source in dict.fromkeys(sources)}
    names = (planned.name for planned in prepared.plan.instances)
    return [{"name": name, **files[s]} for name, s in zip(names, sources, strict=True)]


def _file(path: Path, member: str) -> dict[str, str]:
    if not path.is_file():
        return {}
    name = f"{path.name}/{member}" if member else path.name
    return {"file": name, "sha256": file_hash(path)}
