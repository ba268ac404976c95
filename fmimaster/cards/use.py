"""What a run takes from FMU cards: corrected capabilities and dependencies, precision, isolation."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fmimaster.cards.cache import cached_card
from fmimaster.cards.card import Feedthrough, FmuCard
from fmimaster.cards.findings import ROUNDING, TITLES, seen_anywhere
from fmimaster.errors import OptionError
from fmimaster.fmu.fingerprint import source_hash
from fmimaster.given_path import given_path
from fmimaster.system.description import Component
from fmimaster.system.model import Capabilities, Model
from fmimaster.system.notes import listed

GivenCard = FmuCard | str | os.PathLike[str]
Cards = GivenCard | Sequence[GivenCard]
"""The setting ``cards``: cards, their files, or ``"cached"`` for those in the user's folder."""

CACHED: Literal["cached"] = "cached"


def check_cards(given: object) -> None:
    """Refuse what can be no cards.

    Raises
    ------
    OptionError
    """
    one = isinstance(given, FmuCard | str | os.PathLike)
    entries = [given] if one else given if isinstance(given, Sequence) else None
    if given is not None and (
        entries is None or not all(isinstance(e, FmuCard | str | os.PathLike) for e in entries)
    ):
        raise OptionError(
            f"cards: {given!r}, expected cards, their files, or 'cached' for those in the user's folder."
        )


LARGEST_NOISE = 1e-2
"""Relative difference of repeated steps above which no solver of loops can use them."""

_NOT_IN_A_RUN = frozenset(
    {"beyond_stop", "leak", "replay", "reset", "serialization", "two_instances"}
)
"""Measurements of what a run with the card does not do: a state that cannot be restored is not saved."""
_NAMES = 4
"""Most names in a sentence."""


@dataclass(frozen=True)
class CardUse:
    """What the cards of a run change.

    Attributes
    ----------
    models : name of a component → Model
        Only components with a card.
    reasons : name of a component → why its FMU should have a process of its own
    notes, warnings : tuple of str
        Warnings are about assumptions that a card refutes.
    """

    models: Mapping[str, Model] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def isolated(self) -> dict[str, str]:
        """Name of a component → note that says why its FMU has a process of its own."""
        return {n: f"'{n}' has a process of its own: {why}." for n, why in self.reasons.items()}

    def beside(self, isolated: Collection[str]) -> tuple[str, ...]:
        """Warnings about FMUs that have no process of their own, although their cards recommend it."""
        return tuple(
            f"'{name}' has no process of its own, although {reason}."
            for name, reason in self.reasons.items()
            if name not in isolated
        )


def use_cards(
    given: Cards | None, components: Mapping[str, Component], models: Mapping[str, Model]
) -> CardUse:
    """Apply the cards of a run to the models of its components.

    Raises
    ------
    FileError
        If a card cannot be read.
    OptionError
        If a card belongs to another FMU.
    """
    if given is None:
        return CardUse()
    cards = _cards_of(given, components, models)
    changed, reasons = dict[str, Model](), dict[str, str]()
    notes = _Texts()
    warnings = _Texts()
    times_used = [card.sha256 for card in cards.values()]
    for name, card in cards.items():
        used = _Used(card)
        changed[name] = used.model(models[name])
        if reason := used.reason_to_isolate(several=times_used.count(card.sha256) > 1):
            reasons[name] = reason
        notes.add(name, used.notes)
        warnings.add(name, used.warnings)
    return CardUse(changed, reasons, notes.sentences, warnings.sentences)


class _Texts:
    """Texts about components; components of one FMU share them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}

    def add(self, name: str, texts: Iterable[str]) -> None:
        """Add those about one component."""
        for text in texts:
            self._names.setdefault(text, []).append(f"'{name}'")

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each text once, with the names of its components."""
        return tuple(
            f"{listed(names, _NAMES)}, by {'its' if len(names) == 1 else 'their'} card: {text}."
            for text, names in self._names.items()
        )


def _cards_of(
    given: Cards, components: Mapping[str, Component], models: Mapping[str, Model]
) -> dict[str, FmuCard]:
    """Name of a component → its card."""
    entries = [given] if isinstance(given, FmuCard | str | os.PathLike) else list(given)
    hashes = {
        name: source_hash(component.source)
        for name, component in components.items()
        if _is_fmu(component)
    }
    found: dict[str, FmuCard] = {}
    if CACHED in entries:
        for name, its_hash in hashes.items():
            if (known := cached_card(its_hash, models[name].interface)) is not None:
                found[name] = known
    for entry in entries:
        if entry == CACHED:
            continue
        card = entry if isinstance(entry, FmuCard) else FmuCard.read(given_path(entry))
        users = [
            name
            for name, its_hash in hashes.items()
            if its_hash == card.sha256 and models[name].interface.value == card.interface
        ]
        if not users:
            raise _of_another_fmu(
                card, str(given_path(entry)) if not isinstance(entry, FmuCard) else ""
            )
        found.update(dict.fromkeys(users, card))
    return found


def _is_fmu(component: Component) -> bool:
    file = component.source.member or component.source.path.name
    return component.source.is_file and not file.lower().endswith(".csv")


def _of_another_fmu(card: FmuCard, file: str) -> OptionError:
    which = f"The card '{file}'" if file else "A card"
    return OptionError(
        f"cards: {which} belongs to '{card.fmu}' with the hash {card.sha256[:16]}..., used by {card.interface}, and no FMU "
        "of this system is that. If the FMU has changed, measure it again: fmimaster probe FMU --output-file CARD"
    )


class _Used:
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
        )
        if card.two_processes is not None and card.two_processes.largest > ROUNDING:
            self._warn(
                f"two equal runs of the FMU differ by {card.two_processes.largest:.2g} (relative), so results are not "
                "repeatable"
            )
        return model

    def _capabilities(self, can: Capabilities) -> Capabilities:
        """Capabilities that it declares but does not have are taken away."""
        card, failed = self._card, self._card.failures
        noise = 0.0 if card.replay is None else card.replay.again.largest
        if can.can_get_and_set_fmu_state and ("replay" in failed or noise > LARGEST_NOISE):
            what = failed.get("replay") or f"steps after a restore differ by {noise:.2g} (relative)"
            self._refuted("canGetAndSetFMUState", what, "no step of it is repeated")
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
        at_start = {output: set(inputs) for output, inputs in feedthrough.at_start.items()}
        found, assumed = _seen(
            feedthrough,
            model.dependencies,
            model.assumed_dependencies,
            seen_anywhere(self._card),
        )
        initial, initial_assumed = _seen(
            feedthrough, model.initial_dependencies, model.assumed_initial_dependencies, at_start
        )
        self._tell_of_dependencies(model, found)
        return replace(
            model,
            dependencies=found,
            assumed_dependencies=assumed,
            initial_dependencies=initial,
            assumed_initial_dependencies=initial_assumed,
        )

    def _tell_of_dependencies(self, model: Model, found: Mapping[str, frozenset[str]]) -> None:
        missing = [
            f"{output} on {name}"
            for output, inputs in found.items()
            if output not in model.assumed_dependencies
            for name in sorted(inputs - model.dependencies[output])
        ]
        if missing:
            self._warn(
                f"direct dependencies that the FMU does not declare were seen, and are taken into account: "
                f"{listed(missing, _NAMES)}"
            )
        fewer = sorted(
            o for o in model.assumed_dependencies if found.get(o, ()) != model.dependencies.get(o)
        )
        if fewer:
            self._warn(
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
        return next(self._reasons(several), "")

    def _reasons(self, several: bool) -> Iterator[str]:
        card = self._card
        if lost := [name for name in card.losses if name not in _NOT_IN_A_RUN]:
            yield f"by its card, {card.not_measured[lost[0]]} when it was measured ({TITLES[lost[0]]})"
        two = card.two_instances
        fails_with_two = "two_instances" in card.losses or (
            two is not None and bool(two.refused or (two.beside and two.beside.largest > ROUNDING))
        )
        if several and fails_with_two:
            yield "by its card, it fails or gives other results beside a second instance"

    def _refuted(self, capability: str, observed: str, result: str) -> None:
        self._warn(f"the FMU declares {capability}, but {observed}; {result}")

    def _warn(self, text: str) -> None:
        self.warnings.append(text)


def _seen(
    measured: Feedthrough,
    declared: Mapping[str, frozenset[str]],
    assumed: frozenset[str],
    seen: Mapping[str, set[str]],
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Dependencies of each output, and the outputs for which they are still assumed.

    Outputs and inputs that were not measured keep what is declared or assumed.
    """
    tested = frozenset(measured.inputs) - frozenset(measured.refused)
    replaced = assumed & frozenset(measured.outputs)
    found = {
        output: frozenset(seen.get(output, ()))
        | (inputs - tested if output in replaced else inputs)
        for output, inputs in declared.items()
    }
    return found, frozenset(o for o in assumed if o not in replaced or found[o] - tested)
