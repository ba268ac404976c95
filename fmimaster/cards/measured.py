"""The results of the measurements of an FMU card, as data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.system.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The way to the first step. Times in s of wall time."""

    load_seconds: float
    """To unpack the FMU, read its model description, load its library, and make the first instance."""
    initialize_seconds: float
    changes: tuple[str, ...] = ()
    """Settings of the process that the FMU has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """A run from the start time. Times in s; the costs are the median of wall times for one call."""

    steps: int
    step_size: float
    moved: int
    """Number of observed variables that have changed. If it is 0, the other measurements prove little."""
    observed: int
    """Number of observed variables: the outputs, or local variables if the FMU has no outputs."""
    step_seconds: float | None
    """None if the steps of the run did not succeed."""
    get_seconds: float | None
    """To read all observed variables of floating point type; None if there are none."""
    set_seconds: float | None
    """To set all inputs of floating point type; None if there are none."""
    varied: bool = True
    """Whether inputs were varied: continuous ones, if there are any. All inputs are held at their start values if the FMU
    fails otherwise."""
    ticks: int = 0
    """Number of ticks of its time-based clocks."""
    ended: str = ""
    """Why there are fewer steps than planned."""
    terminated: bool = False
    """Whether the FMU has ended the simulation, which it may do."""
    changes: tuple[str, ...] = ()
    """Settings of the process that the FMU has changed."""
    logged: int = 0
    """Number of its log messages, with debug logging off."""
    first_logged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Equal steps, done twice: in two processes, after a reset, or beside another instance."""

    steps: int
    moved: int
    """Number of observed variables that have changed in these steps."""
    differences: Mapping[str, float] = field(default_factory=dict)
    """Observed variable → largest difference, relative to the magnitude of its value or its nominal value; only those
    that differ."""

    @property
    def largest(self) -> float:
        """Largest relative difference; 0 for none."""
        return max(self.differences.values(), default=0.0)

    @property
    def worst(self) -> str:
        """Variable with the largest difference; empty for none."""
        return max(self.differences, key=self.differences.__getitem__, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedthrough:
    """Which outputs change when one input changes, and nothing else. One point cannot prove that there is no effect."""

    at_start: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In Initialization Mode: output → inputs."""
    in_step_mode: Mapping[str, tuple[str, ...]] | None = None
    """Set and read between two steps: output → inputs; None if it was not possible. FMI 2.0 does not allow it."""
    outputs: tuple[str, ...] = ()
    """The outputs that were read."""
    inputs: tuple[str, ...] = ()
    """The inputs that were changed."""
    refused: tuple[str, ...] = ()
    """Inputs whose change the FMU has refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedStep:
    """Save the state, step, restore it, and step again. Costs in s of wall time, median of some calls."""

    again: Repetition
    save_seconds: float
    restore_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Serialization:
    """The state as bytes."""

    size: int
    """Number of bytes."""
    equal: bool
    """Whether a state that was restored from bytes has the same bytes."""
    again: Repetition
    """Steps of another instance that starts from the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Something that was tried."""

    refused: str
    """What happened; empty if the FMU did it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySteps:
    """Very short steps."""

    refused: Mapping[str, str]
    """Size relative to the usual one, as text → what happened; empty if the FMU did it."""

    @property
    def smallest(self) -> float | None:
        """Smallest size that was done, relative to the usual one; None for none."""
        return min((float(size) for size, text in self.refused.items() if not text), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoInstances:
    """A second instance in the same process; an empty text if it can be made."""

    refused: str
    beside: Repetition | None = None
    """Steps of two instances in turn, beside those of one alone; None if there is no second one."""
    instantiate_seconds: float | None = None
    """Wall time to make and initialize a further instance."""
    memory_per_instance: int | None = None
    """Bytes of physical memory that a further instance takes; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyReturns:
    """Steps that end before their end."""

    allowed: int
    """Number of early returns in a run that allows them."""
    forbidden: int
    """Number of early returns in a run that does not allow them."""
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """What remains after an instance was made, stepped and freed; an average over many times."""

    cycles: int
    bytes_per_cycle: float | None
    """Growth of the physical memory; None if there is no such number."""
    descriptors_per_cycle: float | None


@dataclass(frozen=True)
class MeasuredAtStart:
    """Direct dependencies that a run has measured at its start, before its first step.

    Attributes
    ----------
    found : name of a component → Feedthrough
    refused : name of a component → why nothing could be measured
    ignoring : names of components
        FMUs that accept derivatives of inputs and ignore them.
    holds : bool
        Whether inputs in loops that are not solved are held, and those of FMUs that ignore derivatives: extrapolation
        was not asked for.
    solves : bool
        Whether loops of Step Mode are solved: not after a run has shown that the solution does not converge.
    is_complete : bool
        Whether nothing more is measured.
    """

    found: Mapping[str, Feedthrough] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    ignoring: frozenset[str] = frozenset()
    holds: bool = False
    solves: bool = True
    is_complete: bool = False

    def matters(self, models: Mapping[str, Model]) -> bool:
        """Whether it may change anything: something was measured, or may be known by kept cards."""
        silent = (model.assumed_dependencies for model in models.values())
        return bool(self.found or self.refused or self.ignoring) or any(silent)

    def missing(self, instances: Mapping[str, int], known: Collection[str]) -> list[int]:
        """Numbers of the instances that are still to be measured, of all by name; ``known``: those that are not."""
        return [] if self.is_complete else [i for name, i in instances.items() if name not in known]

    def and_also(self, later: MeasuredAtStart) -> MeasuredAtStart:
        """Together with what a later attempt to start has found out."""
        return replace(
            self,
            found={**self.found, **later.found},
            refused={**self.refused, **later.refused},
            ignoring=self.ignoring | later.ignoring,
        )


def with_dependencies(
    model: Model,
    found: Feedthrough,
    in_steps: Mapping[str, Collection[str]],
    unknown: frozenset[str] | None = None,
) -> Model:
    """The model with dependencies as they were seen: those that are not declared at all, and those that are missing; the
    same one if there are none.

    Outputs and inputs that were not measured keep what is declared or assumed.

    Parameters
    ----------
    in_steps : output → inputs
        What counts as seen in Step Mode; in Initialization Mode, what has changed there.
    unknown
        Inputs by which a loop is still an assumption; by default all that were not measured. A run measures only inputs in
        cycles of connections: by the others there is no loop.
    """
    dependencies, assumed = _seen(
        found, model.dependencies, model.assumed_dependencies, in_steps, unknown
    )
    initial, initial_assumed = _seen(
        found,
        model.initial_dependencies,
        model.assumed_initial_dependencies,
        found.at_start,
        unknown,
    )
    changes: dict[str, Any] = {
        "dependencies": dependencies,
        "assumed_dependencies": assumed,
        "initial_dependencies": initial,
        "assumed_initial_dependencies": initial_assumed,
    }
    if all(getattr(model, name) == value for name, value in changes.items()):
        return model
    return replace(model, **changes)


def _seen(
    measured: Feedthrough,
    declared: Mapping[str, frozenset[str]],
    assumed: frozenset[str],
    seen: Mapping[str, Collection[str]],
    unknown: frozenset[str] | None,
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Dependencies of each output, and the outputs for which they are still assumed."""
    tested = frozenset(measured.inputs) - frozenset(measured.refused)
    replaced = assumed & frozenset(measured.outputs)
    found = {
        output: frozenset(seen.get(output, ()))
        | (inputs - tested if output in replaced else inputs)
        for output, inputs in declared.items()
    }

    def is_open(output: str) -> bool:
        return bool(found[output] - tested if unknown is None else found[output] & unknown)

    return found, frozenset(o for o in assumed if o not in replaced or is_open(o))
