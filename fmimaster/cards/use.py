"""What a run takes from FMU cards: corrected capabilities and dependencies, precision, isolation."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import listed
from fmimaster.system.archive import source_hash
from fmimaster.system.description import Component
from fmimaster.system.model import Model

if TYPE_CHECKING:
    from fmimaster.cards.card import FmuCard

GivenCard: TypeAlias = "FmuCard | str | os.PathLike[str]"
Cards: TypeAlias = "GivenCard | Sequence[GivenCard]"
"""The setting ``cards``: cards, their files, or ``"cached"`` for those in the user's folder."""

CACHED: Literal["cached"] = "cached"


def check_cards(given: object) -> None:
    """Refuse what can be no cards.

    Raises
    ------
    OptionError
    """
    if given is None:
        return
    from fmimaster.cards.card import FmuCard  # few runs use cards

    one = isinstance(given, FmuCard | str | os.PathLike)
    entries = [given] if one else given if isinstance(given, Sequence) else None
    if entries is None or not all(isinstance(e, FmuCard | str | os.PathLike) for e in entries):
        raise OptionError(
            f"cards: {given!r}, expected cards, their files, or 'cached' for those in the user's folder."
        )


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
    known: frozenset[str] = frozenset()
    """Components whose dependencies were measured, or cannot be: a run does not measure them at its start."""

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
    from fmimaster.cards.findings import CardCorrection  # few runs use cards

    cards = _cards_of(given, components, models)
    changed, reasons = dict[str, Model](), dict[str, str]()
    notes, warnings = list[tuple[str, str]](), list[tuple[str, str]]()
    times_used = [card.sha256 for card in cards.values()]
    for name, card in cards.items():
        used = CardCorrection(card)
        changed[name] = used.model(models[name])
        if reason := used.reason_to_isolate(several=times_used.count(card.sha256) > 1):
            reasons[name] = reason
        notes += ((text, name) for text in used.notes)
        warnings += ((text, name) for text in used.warnings)
        if not (reason or used.notes or used.warnings):
            notes.append(("nothing in this run has to be different", name))
    return CardUse(
        changed,
        reasons,
        (*_sentences(notes), *_without_card(given, cards, components)),
        _sentences(warnings),
        frozenset(name for name, card in cards.items() if card.feedthrough is not None),
    )


def _without_card(
    given: Cards, cards: Mapping[str, FmuCard], components: Mapping[str, Component]
) -> tuple[str, ...]:
    """A note about FMUs without card, if kept cards are to be used."""
    if CACHED not in _entries(given):
        return ()
    names = [f"'{n}'" for n, c in components.items() if is_fmu(c) and n not in cards]
    if not names:
        return ()
    return (f"There is no kept card of {listed(names, _NAMES)}. 'fmimaster probe FMU' makes one.",)


def _sentences(texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Each text once, with the names of the components that it is about: those of one FMU share it."""
    found: dict[str, list[str]] = {}
    for text, name in texts:
        found.setdefault(text, []).append(f"'{name}'")
    return tuple(
        f"{listed(names, _NAMES)}, by {'its' if len(names) == 1 else 'their'} card: {text}."
        for text, names in found.items()
    )


def _cards_of(
    given: Cards, components: Mapping[str, Component], models: Mapping[str, Model]
) -> dict[str, FmuCard]:
    """Name of a component → its card."""
    # few runs use cards
    from fmimaster.cards.card import FmuCard, cached_card

    entries = _entries(given)
    hashes = {
        name: source_hash(component.source)
        for name, component in components.items()
        if is_fmu(component)
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


def _entries(given: Cards) -> list[FmuCard | str | os.PathLike[str]]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        return list(given)
    return [given]


def is_fmu(component: Component) -> bool:
    """Whether the file of a component is an FMU, not a table."""
    file = component.source.member or component.source.path.name
    return component.source.is_file and not file.lower().endswith(".csv")


def _of_another_fmu(card: FmuCard, file: str) -> OptionError:
    which = f"The card '{file}'" if file else "A card"
    return OptionError(
        f"cards: {which} belongs to '{card.fmu}' with the hash {card.sha256[:16]}..., used by {card.interface}, and no FMU "
        "of this system is that. If the FMU has changed, measure it again: fmimaster probe FMU --output-file CARD"
    )
