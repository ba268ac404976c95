"""What a run takes from FMU cards: corrected capabilities and dependencies, precision, isolation."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from fmimaster.base.errors import OptionError
from fmimaster.base.files import given_path
from fmimaster.base.text import listed
from fmimaster.system.archive import source_hash
from fmimaster.system.description import Component
from fmimaster.system.model import Model

if TYPE_CHECKING:
    from fmimaster.cards.card import FmuCard
    from fmimaster.cards.measured import Feedthrough
    from fmimaster.program.programs import Reactions
    from fmimaster.system.resolved import Link

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


@dataclass(frozen=True)
class MeasuredAtStart:
    """Direct dependencies that a run has measured at its start, before its first step.

    Attributes
    ----------
    found : name of a component → Feedthrough
    refused : name of a component → why nothing could be measured
    ignoring : names of components
        FMUs that accept derivatives of inputs and ignore them.
    """

    found: Mapping[str, Feedthrough] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    ignoring: frozenset[str] = frozenset()

    def and_also(self, later: MeasuredAtStart) -> MeasuredAtStart:
        """Together with what a later attempt to start has found out."""
        return MeasuredAtStart(
            {**self.found, **later.found},
            {**self.refused, **later.refused},
            self.ignoring | later.ignoring,
        )

    def changed(self, models: Mapping[str, Model]) -> dict[str, Model]:
        """The models that this changes, changed."""
        from fmimaster.cards.measured import with_dependencies  # few runs measure something

        changed = {
            name: with_dependencies(models[name], found, found.in_step_mode or {})
            for name, found in self.found.items()
        }
        for name in sorted(self.ignoring):
            model = changed.get(name, models[name])
            can = replace(
                model.capabilities,
                max_input_derivative_order=0,
                provides_intermediate_update=False,
            )
            changed[name] = replace(model, capabilities=can, input_polynomials=())
        return changed

    def contradicts(self, models: Mapping[str, Model], links: Iterable[Link]) -> bool:
        """Whether a plan is wrong that was made with these models: by a wrong declaration, an instance at which nothing
        could be measured, or loops of Step Mode that do not exist in it."""
        from fmimaster.plan.graph import components, dependency_arcs, is_loop  # few runs need it

        names, links, changed = [*models], tuple(links), self.changed(models)

        def loops(every: Mapping[str, Model]) -> list[list[tuple[int, str]]]:
            arcs = dependency_arcs([every[n] for n in names], links, initial=False, assumed=False)
            return [part for part in components(arcs) if is_loop(part, arcs)]

        real = loops({**models, **changed})
        is_wrong = any(any(_found_wrong(n, models[n], model)) for n, model in changed.items())
        return bool(self.refused) or is_wrong or (bool(real) and real != loops(models))

    def used_with(
        self, cards: CardUse, components: Mapping[str, Component], models: Mapping[str, Model]
    ) -> CardUse:
        """What the cards of a run change, and what this changes further.

        FMUs that declare no dependencies, and of which nothing is measured here, get those of their kept cards.

        Parameters
        ----------
        models
            As the cards have changed them.
        """
        changed, notes, warnings = dict(cards.models), list(cards.notes), list(cards.warnings)
        for name, model in self.changed(models).items() if self.found or self.ignoring else ():
            changed[name] = model
            notes += _found_out(name, models[name], model)
            warnings += _found_wrong(name, models[name], model)
        if self.ignoring:
            names = listed([f"'{name}'" for name in sorted(self.ignoring)], _NAMES)
            notes.append(
                f"Inputs of {names} are held: derivatives of inputs are accepted (canInterpolateInputs), but outputs are "
                "those of constant inputs, as measured at the start."
            )
        for name, reason in self.refused.items():
            warnings.append(
                f"Whether outputs of '{name}' depend directly on its inputs was not found out at the start of the run: "
                f"{reason}. What the FMU declares is used."
            )
        known = {*cards.known, *self.found, *self.refused}
        silent = {n: c for n, c in components.items() if models[n].assumed_dependencies}
        kept = {n: c for n, c in silent.items() if n not in known and n not in cards.models}
        for name, (model, text) in _kept_dependencies(kept, models).items():
            changed[name] = model
            notes.append(text)
            known.add(name)
        return replace(
            cards,
            models=changed,
            notes=tuple(notes),
            warnings=tuple(warnings),
            known=frozenset(known),
        )


def measured_at_start(
    reactions: Iterable[Reactions], models: Mapping[str, Model]
) -> MeasuredAtStart:
    """The direct dependencies that a run has measured, by what FMUs declare.

    Dependencies of Step Mode are those that short steps have shown. Without such steps, outputs that declare nothing
    are taken to depend on what changes them in Initialization Mode; and outputs that declare independence, if that is
    declared for Initialization Mode, too.
    """
    from fmimaster.cards.measured import Feedthrough  # few runs measure something

    found, refused = dict[str, Feedthrough](), dict[str, str]()
    for one in reactions:
        if not one.is_steady:
            refused[one.name] = "outputs do not return to their values when its inputs are set back"
            continue
        model, question = models[one.name], one.question
        at_start, in_steps = one.at_start, one.in_steps
        steps = dict[str, tuple[str, ...]]()
        for output in question.outputs:
            seen = at_start[output]
            if output in question.open:
                seen = seen if in_steps is None else in_steps[output]
            elif in_steps is not None:
                seen &= in_steps[output]
            elif output in model.assumed_initial_dependencies:
                seen = frozenset()
            else:
                seen -= model.initial_dependencies.get(output, frozenset())
            steps[output] = tuple(sorted(seen))
        found[one.name] = Feedthrough(
            at_start={output: tuple(sorted(inputs)) for output, inputs in at_start.items()},
            in_step_mode=steps,
            outputs=question.outputs,
            inputs=question.inputs,
        )
    return MeasuredAtStart(found, refused)


def _pairs(dependencies: Mapping[str, Collection[str]]) -> str:
    """``"'y' on 'u'"``, for each output with inputs."""
    names = {
        output: listed([f"'{u}'" for u in sorted(inputs)], _NAMES)
        for output, inputs in dependencies.items()
        if inputs
    }
    return listed([f"'{output}' on {inputs}" for output, inputs in names.items()], _NAMES)


def _found_out(name: str, declared: Model, measured: Model) -> Iterator[str]:
    """A note about outputs that declare nothing, and were seen to depend on inputs."""
    seen = {o: measured.dependencies[o] for o in sorted(declared.assumed_dependencies)}
    if any(seen.values()):
        yield (
            f"'{name}' does not declare on which inputs its outputs depend; measured at the start: {_pairs(seen)} "
            "directly. Loops through these dependencies are real."
        )


def _found_wrong(name: str, declared: Model, measured: Model) -> Iterator[str]:
    """A warning about dependencies that are declared not to exist, and were seen."""
    wrong: dict[str, frozenset[str]] = {}
    for before, after, assumed in (
        (declared.dependencies, measured.dependencies, declared.assumed_dependencies),
        (
            declared.initial_dependencies,
            measured.initial_dependencies,
            declared.assumed_initial_dependencies,
        ),
    ):
        for output, inputs in after.items():
            if output not in assumed and (more := inputs - before[output]):
                wrong[output] = wrong.get(output, frozenset()) | more
    if wrong:
        yield (
            f"The FMU of '{name}' declares its dependencies (ModelStructure) wrongly: measured at the start, "
            f"{_pairs(wrong)} directly. This run takes that into account. Correct the FMU."
        )


def _kept_dependencies(
    components: Mapping[str, Component], models: Mapping[str, Model]
) -> dict[str, tuple[Model, str]]:
    """Name of a component → its model with the dependencies of its kept card, and a note; only those with a card."""
    if not components:
        return {}
    # few systems have FMUs without dependencies
    from fmimaster.cards.card import any_is_kept, cached_card
    from fmimaster.cards.findings import followed, seen_anywhere
    from fmimaster.cards.measured import with_dependencies

    found: dict[str, tuple[Model, str]] = {}
    fmus = {n: c for n, c in components.items() if _is_fmu(c)} if any_is_kept() else {}
    for name, component in fmus.items():
        model = models[name]
        card = cached_card(source_hash(component.source), model.interface)
        if card is None or card.feedthrough is None:
            continue
        changed = with_dependencies(model, card.feedthrough, seen_anywhere(card))
        seen = {o: changed.dependencies[o] for o in sorted(model.assumed_dependencies)}
        found[name] = (
            replace(changed, followed=followed(card)),
            f"'{name}' does not declare on which inputs its outputs depend; by its kept card (fmimaster probe): "
            f"{_pairs(seen) or 'none of the measured ones depends'} directly.",
        )
    return found


def _without_card(
    given: Cards, cards: Mapping[str, FmuCard], components: Mapping[str, Component]
) -> tuple[str, ...]:
    """A note about FMUs without card, if kept cards are to be used."""
    if CACHED not in _entries(given):
        return ()
    names = [f"'{n}'" for n, c in components.items() if _is_fmu(c) and n not in cards]
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


def _entries(given: Cards) -> list[FmuCard | str | os.PathLike[str]]:
    if isinstance(given, Sequence) and not isinstance(given, str):
        return list(given)
    return [given]


def _is_fmu(component: Component) -> bool:
    file = component.source.member or component.source.path.name
    return component.source.is_file and not file.lower().endswith(".csv")


def _of_another_fmu(card: FmuCard, file: str) -> OptionError:
    which = f"The card '{file}'" if file else "A card"
    return OptionError(
        f"cards: {which} belongs to '{card.fmu}' with the hash {card.sha256[:16]}..., used by {card.interface}, and no FMU "
        "of this system is that. If the FMU has changed, measure it again: fmimaster probe FMU --output-file CARD"
    )
