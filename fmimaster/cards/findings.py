"""Where an FMU does not do what it declares, or what any FMU is expected to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from fmimaster.cards.card import FmuCard
from fmimaster.cards.measured import Repetition
from fmimaster.system.declarations import Interface
from fmimaster.system.notes import listed

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
        yield CardDifference(TITLES[name], _expected(name), reason, Weight.FAULT, name)
    yield from _states(card)
    yield from _runs(card)
    yield from _steps(card)
    yield from _instances(card)
    yield from _feedthrough(card)
    yield from _surroundings(card)


def _states(card: FmuCard) -> Iterator[CardDifference]:
    # what a copy by fmimaster does not restore is no fault of the FMU
    copied = card.copies_states
    if card.replay is not None and not copied and (seen := _noise(card.replay.again)):
        yield CardDifference(
            "save and restore the state",
            "possible",
            f"steps after a restore differ by {seen}",
            Weight.LESS,
            "replay",
        )
    # FMI does not ask that a state has the same bytes each time
    if card.serialization is not None and (seen := _noise(card.serialization.again)):
        text = f"an instance that starts from the bytes differs by {seen}"
        yield CardDifference("state as bytes", "possible", text, Weight.LESS, "serialization")


def _runs(card: FmuCard) -> Iterator[CardDifference]:
    if card.stepping is not None and card.stepping.ended and not card.stepping.terminated:
        yield CardDifference(
            "run",
            "possible",
            f"it ends after {card.stepping.steps} steps: {card.stepping.ended}",
            Weight.FAULT,
            "stepping",
        )
    if card.two_processes is not None and (seen := _noise(card.two_processes)):
        text = f"two equal runs differ by {seen}"
        yield CardDifference("equal runs", "equal results", text, Weight.FAULT, "two_processes")
    if card.reset is not None and (seen := _noise(card.reset)):
        text = f"the steps after it differ by {seen}"
        yield CardDifference("reset", "as a new instance", text, Weight.LESS, "reset")
    # FMI forbids Get after Set without a step between them, so that it may have any effect there
    forbidden = card.interface == Interface.CO_SIMULATION.value
    read_before = None if forbidden else card.read_before
    for again, name in ((card.read_at_end, "read_at_end"), (read_before, "read_before")):
        if seen := _noise(again):
            text = f"the results differ by {seen}"
            yield CardDifference(TITLES[name], "no effect", text, Weight.LESS, name)


def _steps(card: FmuCard) -> Iterator[CardDifference]:
    if card.varying_steps is not None:
        can = bool(card.declared.get("canHandleVariableCommunicationStepSize"))
        name, refused = "varying_steps", card.varying_steps.refused
        if can and refused:
            yield CardDifference(TITLES[name], "possible", refused, Weight.LESS, name)
        if not can and not refused:
            text = "steps of different sizes were done"
            yield CardDifference(TITLES[name], "not possible", text, Weight.MORE, name)
    if card.early_return is not None and card.early_return.forbidden:
        text = f"{card.early_return.forbidden} early returns in steps that do not allow it"
        yield CardDifference("early return", "only if allowed", text, Weight.FAULT, "early_return")


def _instances(card: FmuCard) -> Iterator[CardDifference]:
    found = card.two_instances
    if found is None:
        return
    what, once = "two instances in one process", is_once_per_process(card)
    if once and not found.refused and not _noise(found.beside):
        text = "a second instance works as the first"
        yield CardDifference(what, "not possible", text, Weight.MORE, "two_instances")
    if not once and found.refused:
        yield CardDifference(what, "possible", found.refused, Weight.LESS, "two_instances")
    if not once and (seen := _noise(found.beside)):
        text = f"beside another instance the results differ by {seen}"
        yield CardDifference(what, "possible", text, Weight.FAULT, "two_instances")


def _feedthrough(card: FmuCard) -> Iterator[CardDifference]:
    found = card.feedthrough
    if found is None:
        return
    for what, declared, seen in (
        ("direct dependencies at the start", card.declared_feedthrough_at_start, found.at_start),
        ("direct dependencies in Step Mode", card.declared_feedthrough, found.in_step_mode),
    ):
        if seen is None:
            continue
        unknown = undeclared(declared, seen)
        if unknown:
            text = f"also {listed(unknown, _NAMES)}"
            number = sum(map(len, declared.values()))
            yield CardDifference(what, _pairs(number), text, Weight.FAULT, "feedthrough")
    tested, both = set(found.inputs), seen_anywhere(card)
    if silent_outputs := [o for o in found.outputs if o not in card.declared_feedthrough]:
        pairs = sum(len(both.get(o, ())) for o in silent_outputs)
        said = f"not for {listed(silent_outputs, _NAMES)}, so all inputs are assumed"
        text = f"{_pairs(pairs)} of {len(silent_outputs) * len(tested)}"
        yield CardDifference("direct dependencies", said, text, Weight.LESS, "feedthrough")
    silent = [
        f"{output} on {name}"
        for output, inputs in card.declared_feedthrough.items()
        for name in inputs
        if name in tested and name not in both.get(output, ())
    ]
    if silent:
        number = sum(map(len, card.declared_feedthrough.values()))
        text = f"not seen: {listed(silent, _NAMES)}"
        yield CardDifference(
            "direct dependencies", _pairs(number), text, Weight.MORE, "feedthrough"
        )


def _surroundings(card: FmuCard) -> Iterator[CardDifference]:
    changes = dict.fromkeys(
        (
            *(card.loading.changes if card.loading is not None else ()),
            *(card.stepping.changes if card.stepping is not None else ()),
        )
    )
    if changes:
        text = f"it changes {listed(list(changes), _NAMES)}"
        yield CardDifference("settings of the process", "left alone", text, Weight.LESS, "loading")
    if card.leak is not None and (card.leak.bytes_per_cycle or 0.0) > LEAK:
        text = f"{card.leak.bytes_per_cycle:.0f} bytes of memory remain of each instance"
        yield CardDifference("memory", "freed", text, Weight.LESS, "leak")
    if card.leak is not None and (card.leak.descriptors_per_cycle or 0.0) >= 1.0:
        text = f"{card.leak.descriptors_per_cycle:.0f} open files remain of each instance"
        yield CardDifference("open files", "closed", text, Weight.LESS, "leak")


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


def _pairs(number: int) -> str:
    return f"{number} pair{'' if number == 1 else 's'}"


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
