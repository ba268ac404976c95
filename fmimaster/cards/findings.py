"""Where an FMU does not do what it declares, or what any FMU is expected to do; and what that changes in a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import Enum

from fmimaster.base.data import dataclass
from fmimaster.base.text import count, listed
from fmimaster.cards.card import FmuCard
from fmimaster.cards.measured import Repetition, with_dependencies
from fmimaster.system.declarations import Capabilities, Interface
from fmimaster.system.model import Model

ROUNDING = 1e-12
"""Relative difference between equal steps that is due to rounding."""
LEAK = 4096.0
"""Growth of the memory in bytes per instance that is called a leak: a page. Less may be due to Python."""
_NAMES = 4
"""Most names in a sentence."""


class Weight(Enum):
    """How much a difference matters."""

    FAULT = "fault"
    """Results may be wrong, or the FMU may end the run."""
    LESS = "less"
    """The FMU can do less than it declares, or than is expected."""
    MORE = "more"
    """The FMU can do more than it declares."""


@dataclass(frozen=True, slots=True)
class CardDifference:
    """A difference between what an FMU declares and what it was seen to do.

    Attributes
    ----------
    what : str
        Name of the capability or of the behaviour.
    declared, observed : str
        In words.
    weight : Weight
    measurement : str
        Name of the field of the card.
    """

    what: str
    declared: str
    observed: str
    weight: Weight
    measurement: str

    def __str__(self) -> str:
        return f"{self.what}: declared: {self.declared}; observed: {self.observed}"


def differences(card: FmuCard) -> tuple[CardDifference, ...]:
    """The differences that a card shows; faults first."""
    order = list(Weight)
    return tuple(sorted(_all(card), key=lambda d: order.index(d.weight)))


def _all(card: FmuCard) -> Iterator[CardDifference]:
    for name, reason in card.failures.items():
        yield _difference(name, _expected(name), reason, Weight.FAULT)
    yield from _runs(card)
    yield from _steps(card)
    yield from _instances(card)
    yield from _feedthrough(card)
    yield from _surroundings(card)


def _difference(
    name: str, declared: str, observed: str, weight: Weight, what: str = ""
) -> CardDifference:
    return CardDifference(what or TITLES[name], declared, observed, weight, name)


def _runs(card: FmuCard) -> Iterator[CardDifference]:
    if card.stepping is not None and card.stepping.ended and not card.stepping.terminated:
        text = f"it ends after {card.stepping.steps} steps: {card.stepping.ended}"
        yield _difference("stepping", "possible", text, Weight.FAULT)
    # what a copy by fmimaster does not restore is no fault of the FMU
    replay = None if card.copies_states or card.replay is None else card.replay.again
    # FMI does not ask that a state has the same bytes each time
    serialization = None if card.serialization is None else card.serialization.again
    # FMI forbids Get after Set without a step between them, so that it may have any effect there
    forbidden = card.interface == Interface.CO_SIMULATION.value
    read_before = None if forbidden else card.read_before
    from_bytes, read = "an instance that starts from the bytes differs by", "the results differ by"
    runs = "two equal runs differ by"
    for name, again, declared, text, weight in (
        ("replay", replay, "possible", "steps after a restore differ by", Weight.LESS),
        ("serialization", serialization, "possible", from_bytes, Weight.LESS),
        ("two_processes", card.two_processes, "equal results", runs, Weight.FAULT),
        ("reset", card.reset, "as a new instance", "the steps after it differ by", Weight.LESS),
        ("read_at_end", card.read_at_end, "no effect", read, Weight.LESS),
        ("read_before", read_before, "no effect", read, Weight.LESS),
    ):
        if seen := _noise(again):
            yield _difference(name, declared, f"{text} {seen}", weight)


def _steps(card: FmuCard) -> Iterator[CardDifference]:
    if card.varying_steps is not None:
        can = bool(card.declared.get("canHandleVariableCommunicationStepSize"))
        name, refused = "varying_steps", card.varying_steps.refused
        if can and refused:
            yield _difference(name, "possible", refused, Weight.LESS)
        if not can and not refused:
            text = "steps of different sizes were done"
            yield _difference(name, "not possible", text, Weight.MORE)
    if card.early_return is not None and card.early_return.forbidden:
        text = f"{card.early_return.forbidden} early returns in steps that do not allow it"
        yield _difference("early_return", "only if allowed", text, Weight.FAULT)


def _instances(card: FmuCard) -> Iterator[CardDifference]:
    found = card.two_instances
    if found is None:
        return
    name, once = "two_instances", is_once_per_process(card)
    if once and not found.refused and not _noise(found.beside):
        text = "a second instance works as the first"
        yield _difference(name, "not possible", text, Weight.MORE)
    if not once and found.refused:
        yield _difference(name, "possible", found.refused, Weight.LESS)
    if not once and (seen := _noise(found.beside)):
        text = f"beside another instance the results differ by {seen}"
        yield _difference(name, "possible", text, Weight.FAULT)


def _feedthrough(card: FmuCard) -> Iterator[CardDifference]:
    found, declared = card.feedthrough, card.declared_feedthrough
    if found is None:
        return
    name = "feedthrough"
    for when, known, seen in (
        ("at the start", card.declared_feedthrough_at_start, found.at_start),
        ("in Step Mode", declared, found.in_step_mode or {}),
    ):
        if unknown := undeclared(known, seen):
            text = f"also {listed(unknown, _NAMES)}"
            what = f"{TITLES[name]} {when}"
            yield _difference(name, _pairs(known), text, Weight.FAULT, what)
    tested, both = set(found.inputs), seen_anywhere(card)
    if silent_outputs := [o for o in found.outputs if o not in declared]:
        said = f"not for {listed(silent_outputs, _NAMES)}, so all inputs are assumed"
        pairs = _pairs({o: both.get(o, ()) for o in silent_outputs})
        text = f"{pairs} of {len(silent_outputs) * len(tested)}"
        yield _difference(name, said, text, Weight.LESS)
    silent = [
        f"{output} on {u}"
        for output, inputs in declared.items()
        for u in inputs
        if u in tested and u not in both.get(output, ())
    ]
    if silent:
        text = f"not seen: {listed(silent, _NAMES)}"
        yield _difference(name, _pairs(declared), text, Weight.MORE)


def _surroundings(card: FmuCard) -> Iterator[CardDifference]:
    runs = (run for run in (card.loading, card.stepping) if run is not None)
    if changes := list(dict.fromkeys(change for run in runs for change in run.changes)):
        text = f"it changes {listed(changes, _NAMES)}"
        yield _difference("loading", "left alone", text, Weight.LESS, "settings of the process")
    if card.leak is not None and (card.leak.bytes_per_cycle or 0.0) > LEAK:
        text = f"{card.leak.bytes_per_cycle:.0f} bytes of memory remain of each instance"
        yield _difference("leak", "freed", text, Weight.LESS)
    if card.leak is not None and (card.leak.descriptors_per_cycle or 0.0) >= 1.0:
        kind = "handles" if card.platform.endswith("windows") else "open files"
        text = f"{card.leak.descriptors_per_cycle:.0f} {kind} remain of each instance"
        yield _difference("leak", "closed", text, Weight.LESS, kind)


def is_once_per_process(card: FmuCard) -> bool:
    """Whether the FMU declares that it allows one instance per process."""
    return bool(card.declared.get("canBeInstantiatedOnlyOncePerProcess"))


def undeclared(
    declared: Mapping[str, tuple[str, ...]], seen: Mapping[str, tuple[str, ...]]
) -> list[str]:
    """Pairs that were seen but not declared, as ``"y on u"``; outputs without declaration are left out."""
    return [
        f"{output} on {name}"
        for output, inputs in seen.items()
        if output in declared
        for name in inputs
        if name not in declared[output]
    ]


def seen_anywhere(card: FmuCard) -> dict[str, set[str]]:
    """Output → inputs that have changed it in Initialization Mode or in Step Mode."""
    found: dict[str, set[str]] = {}
    if card.feedthrough is not None:
        for seen in (card.feedthrough.at_start, card.feedthrough.in_step_mode or {}):
            for output, inputs in seen.items():
                found.setdefault(output, set()).update(inputs)
    return found


def _noise(again: Repetition | None) -> str:
    """The largest difference in words; empty if there is none."""
    if again is None or again.largest <= ROUNDING:
        return ""
    return f"{again.largest:.2g} (relative, {again.worst})"


def _pairs(dependencies: Mapping[str, Collection[str]]) -> str:
    return count(sum(map(len, dependencies.values())), "pair")


def _expected(name: str) -> str:
    return "possible" if name in ("replay", "serialization", "early_return") else "expected"


TITLES: Mapping[str, str] = {
    "loading": "load and initialize",
    "stepping": "run",
    "two_processes": "equal runs",
    "feedthrough": "direct dependencies",
    "replay": "save and restore the state",
    "serialization": "state as bytes",
    "reset": "reset",
    "varying_steps": "varying step size",
    "tiny_steps": "tiny steps",
    "beyond_stop": "step beyond the stop time",
    "two_instances": "two instances in one process",
    "read_at_end": "reading outputs only at the end",
    "read_before": "reading outputs before each step",
    "early_return": "early return",
    "leak": "memory",
}
"""Name of a measurement → in words."""

LARGEST_NOISE = 1e-2
"""Relative difference of repeated steps above which no solver of loops can use them."""

_NOT_IN_A_RUN = frozenset(
    {"beyond_stop", "leak", "replay", "reset", "serialization", "two_instances"}
)
"""Measurements of what a run with the card does not do: a state that cannot be restored is not saved."""


class CardCorrection:
    """The card of one component."""

    def __init__(self, card: FmuCard) -> None:
        self._card = card
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def model(self, model: Model) -> Model:
        """The model with what the card has shown."""
        card = self._card
        model = replace(
            self._with_dependencies(model),
            capabilities=self._capabilities(model.capabilities),
            replay_noise={} if card.replay is None else dict(card.replay.again.differences),
            followed=followed(card),
        )
        if card.two_processes is not None and card.two_processes.largest > ROUNDING:
            self.warnings.append(
                f"two equal runs of the FMU differ by {card.two_processes.largest:.2g} (relative), so results are not "
                "repeatable"
            )
        return model

    def _capabilities(self, can: Capabilities) -> Capabilities:
        """Capabilities that it declares but does not have are taken away."""
        card, failed = self._card, self._card.failures
        noise = 0.0 if card.replay is None else card.replay.again.largest
        unrestored = (
            card.not_measured.get("replay", "") if can.copies_states else failed.get("replay")
        )
        if can.can_get_and_set_fmu_state and (unrestored or noise > LARGEST_NOISE):
            self._unrestored(
                can, unrestored or f"steps after a restore differ by {noise:.2g} (relative)"
            )
            can = replace(can, can_get_and_set_fmu_state=False, can_serialize_fmu_state=False)
        elif noise > ROUNDING:
            self.notes.append(
                f"repeated steps differ by {noise:.2g} (relative). Loops with this FMU are solved "
                "to that accuracy, with larger differences for derivatives"
            )
        if can.can_serialize_fmu_state and "serialization" in failed:
            self._refuted("canSerializeFMUState", failed["serialization"], "it is not used")
            can = replace(can, can_serialize_fmu_state=False)
        varying = card.varying_steps
        if can.can_handle_variable_communication_step_size and varying and varying.refused:
            name = "canHandleVariableCommunicationStepSize"
            self._refuted(name, varying.refused, "its steps have one size")
            can = replace(can, can_handle_variable_communication_step_size=False)
        return can

    def _with_dependencies(self, model: Model) -> Model:
        """Dependencies as they were seen: those that are not declared at all, and those that are missing."""
        feedthrough = self._card.feedthrough
        if feedthrough is None:
            return model
        changed = with_dependencies(model, feedthrough, seen_anywhere(self._card))
        self._tell_of_dependencies(model, changed.dependencies)
        return changed

    def _tell_of_dependencies(self, model: Model, found: Mapping[str, frozenset[str]]) -> None:
        missing = [
            f"{output} on {name}"
            for output, inputs in found.items()
            if output not in model.assumed_dependencies
            for name in sorted(inputs - model.dependencies[output])
        ]
        if missing:
            self.warnings.append(
                f"direct dependencies were seen that the FMU does not declare; the plan takes them into account: "
                f"{listed(missing, _NAMES)}"
            )
        fewer = sorted(
            o for o in model.assumed_dependencies if found.get(o, ()) != model.dependencies.get(o)
        )
        if fewer:
            self.warnings.append(
                f"the FMU declares no direct dependencies of {listed(fewer, _NAMES)}; those that were seen are used. One "
                "measured point cannot prove that there are no others"
            )

    def reason_to_isolate(self, *, several: bool) -> str:
        """Why the FMU should have a process of its own; empty if there is no reason.

        Parameters
        ----------
        several : bool
            Whether the run has several instances of the FMU.
        """
        card, two = self._card, self._card.two_instances
        if lost := [name for name in card.losses if name not in _NOT_IN_A_RUN]:
            return f"by its card, {card.not_measured[lost[0]]} when it was measured ({TITLES[lost[0]]})"
        fails = two is not None and bool(two.refused or _noise(two.beside))
        if several and (fails or "two_instances" in card.losses):
            return "by its card, it fails or gives other results beside a second instance"
        return ""

    def _unrestored(self, can: Capabilities, what: str) -> None:
        said = "the FMU declares canGetAndSetFMUState, but"
        if can.copies_states:
            said = "the FMU cannot save its state, and with copies of it"
        self.warnings.append(f"{said} {what}; no step of it is repeated")

    def _refuted(self, capability: str, observed: str, result: str) -> None:
        self.warnings.append(f"the FMU declares {capability}, but {observed}; {result}")


def followed(card: FmuCard) -> dict[str, frozenset[str]]:
    """Output → inputs that it follows at once in Step Mode, if reading outputs there has changed no later step."""
    found, between = card.feedthrough, card.read_before
    is_stepped = card.interface == Interface.CO_SIMULATION.value
    if found is None or found.in_step_mode is None or between is None or not is_stepped:
        return {}
    if between.largest > ROUNDING:
        return {}
    return {output: frozenset(inputs) for output, inputs in found.in_step_mode.items()}
