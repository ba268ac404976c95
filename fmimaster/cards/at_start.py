"""Direct dependencies that a run has measured at its start: what they change, and what is said about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from fmimaster.base.text import listed
from fmimaster.cards.card import any_is_kept, cached_card
from fmimaster.cards.findings import followed, seen_anywhere
from fmimaster.cards.measured import Feedthrough, MeasuredAtStart, with_dependencies
from fmimaster.cards.use import CardUse, is_fmu
from fmimaster.plan.graph import components as parts_of
from fmimaster.plan.graph import dependency_arcs, is_loop
from fmimaster.program.programs import Question, Reactions
from fmimaster.system.archive import source_hash
from fmimaster.system.description import Component
from fmimaster.system.model import Model
from fmimaster.system.resolved import Link

_NAMES = 4
"""Most names in a sentence."""


def measured_at_start(
    reactions: Iterable[Reactions], models: Mapping[str, Model]
) -> MeasuredAtStart:
    """The direct dependencies that a run has measured, by what FMUs declare.

    Dependencies of Step Mode are those that short steps have shown. Without such steps, outputs that declare nothing
    are taken to depend on what changes them in Initialization Mode; and outputs that declare independence, if that is
    declared for Initialization Mode, too.
    """
    found, refused = dict[str, Feedthrough](), dict[str, str]()
    known: dict[tuple[object, ...], Feedthrough] = {}
    for one in reactions:
        if not one.is_steady:
            refused[one.name] = "outputs do not return to their values when its inputs are set back"
            continue
        model, question, at_start, in_steps = (
            models[one.name],
            one.question,
            one.at_start,
            one.in_steps,
        )
        seen = at_start.values(), () if in_steps is None else in_steps.values()
        names = question.inputs, question.fixed, question.outputs, question.open
        key = id(model), names, in_steps is None, *map(tuple, seen)
        if key not in known:
            known[key] = _feedthrough(model, question, at_start, in_steps)
        found[one.name] = known[key]
    return MeasuredAtStart(found, refused)


def _feedthrough(
    model: Model,
    question: Question,
    at_start: Mapping[str, frozenset[str]],
    in_steps: Mapping[str, frozenset[str]] | None,
) -> Feedthrough:
    """What was measured at an instance, and at others like it."""
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
    return Feedthrough(
        at_start={output: tuple(sorted(inputs)) for output, inputs in at_start.items()},
        in_step_mode=steps,
        outputs=question.outputs,
        inputs=question.inputs,
        refused=question.fixed,
    )


def contradicts(
    measured: MeasuredAtStart, models: Mapping[str, Model], links: Iterable[Link]
) -> bool:
    """Whether a plan is wrong that was made with these models: by a wrong declaration, an instance at which nothing
    could be measured, or loops of Step Mode that do not exist in it."""
    names, links = [*models], tuple(links)
    changed = {n: m for n, m in _changed(measured, models).items() if m is not models[n]}

    def loops(every: Mapping[str, Model]) -> list[list[tuple[int, str]]]:
        arcs = dependency_arcs([every[n] for n in names], links, initial=False, assumed=False)
        return [part for part in parts_of(arcs) if is_loop(part, arcs)]

    if measured.refused or any(_found_wrong(models[n], m) for n, m in changed.items()):
        return True
    real = loops({**models, **changed}) if changed else []
    return bool(real) and real != loops(models)


def used_with(
    cards: CardUse,
    measured: MeasuredAtStart,
    components: Mapping[str, Component],
    models: Mapping[str, Model],
) -> CardUse:
    """What the cards of a run change, and what its start has shown further.

    FMUs that declare no dependencies, and of which nothing was measured, get those of their kept cards.

    Parameters
    ----------
    models
        As the cards have changed them.
    """
    changed, notes, warnings = dict(cards.models), list(cards.notes), list(cards.warnings)
    seen, wrong = dict[str, list[str]](), dict[str, list[str]]()
    for name, model in _changed(measured, models).items():
        changed[name] = model
        if pairs := _pairs(_found_out(models[name], measured.found.get(name))):
            seen.setdefault(pairs, []).append(name)
        if pairs := _pairs(_found_wrong(models[name], model)):
            wrong.setdefault(pairs, []).append(name)
    notes += (
        f"No dependencies of outputs are declared by {_quoted(names)}; measured at the start: {pairs} directly. Loops "
        "through these dependencies are real."
        for pairs, names in seen.items()
    )
    warnings += (
        f"Dependencies (ModelStructure) are declared wrongly by the FMU of {_quoted(names)}: measured at the start, "
        f"{pairs} directly. This run takes that into account. Correct the FMU."
        for pairs, names in wrong.items()
    )
    if measured.ignoring:
        notes.append(
            f"Inputs of {_quoted(sorted(measured.ignoring))} are held: derivatives of inputs are accepted "
            "(canInterpolateInputs), but outputs are those of constant inputs, as measured at the start."
        )
    refused: dict[str, list[str]] = {}
    for name, reason in measured.refused.items():
        refused.setdefault(reason, []).append(name)
    warnings += (
        f"Whether outputs of {_quoted(names)} depend directly on inputs was not found out at the start of the run: "
        f"{reason}. What the FMU declares is used."
        for reason, names in refused.items()
    )
    known = {*cards.known, *measured.found, *measured.refused}
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


def _changed(measured: MeasuredAtStart, models: Mapping[str, Model]) -> dict[str, Model]:
    """The models with what was measured: the same ones if it changes nothing."""
    changed = dict[str, Model]()
    known: dict[tuple[int, int], Model] = {}
    for name, found in measured.found.items():
        model, key = models[name], (id(models[name]), id(found))
        if key not in known:  # instances that are alike share both
            in_steps, unknown = found.in_step_mode or {}, frozenset(found.refused)
            known[key] = with_dependencies(model, found, in_steps, unknown)
        changed[name] = known[key]
    for name in sorted(measured.ignoring):
        model = changed.get(name, models[name])
        can = replace(
            model.capabilities,
            max_input_derivative_order=0,
            provides_intermediate_update=False,
        )
        changed[name] = replace(model, capabilities=can, input_polynomials=())
    return changed


def _quoted(names: Iterable[str]) -> str:
    return listed([f"'{name}'" for name in names], _NAMES)


def _pairs(dependencies: Mapping[str, Collection[str]]) -> str:
    """``"'y' on 'u'"``, for each output with inputs; empty for none."""
    names = {output: _quoted(sorted(inputs)) for output, inputs in dependencies.items() if inputs}
    return listed([f"'{output}' on {inputs}" for output, inputs in names.items()], _NAMES)


def _found_out(declared: Model, found: Feedthrough | None) -> Mapping[str, Collection[str]]:
    """Output that declares nothing → inputs on which it was seen to depend."""
    in_steps = {} if found is None else found.in_step_mode or {}
    return {o: in_steps.get(o, ()) for o in sorted(declared.assumed_dependencies)}


def _found_wrong(declared: Model, measured: Model) -> Mapping[str, frozenset[str]]:
    """Output → inputs on which it was seen to depend, although that is declared not to be so."""
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
    return wrong


def _kept_dependencies(
    components: Mapping[str, Component], models: Mapping[str, Model]
) -> dict[str, tuple[Model, str]]:
    """Name of a component → its model with the dependencies of its kept card, and a note; only those with a card."""
    found: dict[str, tuple[Model, str]] = {}
    fmus = (
        {n: c for n, c in components.items() if is_fmu(c) and c.source.path.exists()}
        if any_is_kept()
        else {}
    )
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
