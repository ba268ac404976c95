"""The sequence of a plan for `fmimaster plan`: order, levels and stale inputs, as data and as lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fmimaster.algorithms.modes import samples
from fmimaster.base.text import aligned, named, section
from fmimaster.plan.plan import Plan
from fmimaster.program.delays import Delay, in_steps, levels, order_of_steps
from fmimaster.sequences.methods import METHODS, LeastStale, NearestNeighbour, SequenceSetting
from fmimaster.sequences.weights import NOT_DIRECT, SWITCHES, Count, FeedThrough, Weights, units_of


def sequence(
    plan: Plan, delays: Sequence[Delay], setting: SequenceSetting | None
) -> dict[str, Any]:
    """The order of stepping and its origin, the parallel levels, and the stale inputs with their weights.

    Parameters
    ----------
    setting
        The setting of the user for the sequence: a method may have its own weights.
    """
    names = [i.name for i in plan.instances]
    weights = _weights(setting)
    units = units_of(names, [i.model for i in plan.instances], plan.links)
    weight_of = {
        (c.target_input, f"{c.source}.{c.output}"): weight
        for c, weight in zip(units.connections, weights.of(units.connections), strict=True)
    }
    stale = [_stale(d, plan, weight_of) for d in delays if not d.is_fresh]
    groups = levels(plan.trigger_sequence, delays)
    order = order_of_steps(plan.trigger_sequence, delays, groups)
    solved = {i for level in groups for group in level if len(group) > 1 for i in group}
    leading = [
        f"{names[d.route.link.target]}.{d.route.link.input.name}"
        for d in delays
        if d.is_fresh
        and d.is_newest
        and d.route.link.target not in solved
        # what samples its inputs shall have the newest ones
        and not samples(plan, d.route.link.target)
    ]
    return {
        "chosenBy": plan.sequence_chosen_by
        if order == plan.trigger_sequence
        else "the algorithm, by levels",
        "order": [names[i] for i in order],
        "weights": _in_words(weights, has_controllers=any(c.switches for c in units.connections)),
        "cost": sum(s["weight"] for s in stale),
        "levels": [[names[i] for group in level for i in group] for level in groups],
        "together": [
            [names[i] for i in group] for level in groups for group in level if len(group) > 1
        ],
        "stale": stale,
        "leading": leading,
    }


def _weights(setting: SequenceSetting | None) -> Weights:
    """The weights of the method, or the default ones."""
    method = METHODS.get(setting) if isinstance(setting, str) else setting
    return method.weights if isinstance(method, LeastStale | NearestNeighbour) else FeedThrough()


def _in_words(weights: Weights, *, has_controllers: bool) -> str:
    match weights:
        case FeedThrough(otherwise):
            more = f"{SWITCHES:g} for an input of a component with discrete outputs only, "
            return (
                f"{more if has_controllers else ''}1 for an input on which an output depends directly, {otherwise:g} for "
                "another one"
            )
        case Count():
            return "1 for each input"
    return repr(weights)


def _stale(delay: Delay, plan: Plan, weight_of: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    link = delay.route.link
    target, model = plan.instances[link.target], plan.instances[link.target].model
    direct = [
        v.name for v in model.variables if link.input.name in model.dependencies.get(v.name, ())
    ]
    ends = (
        f"{target.name}.{link.input.name}",
        f"{plan.instances[link.source].name}.{link.output.name}",
    )
    return {
        "target": ends[0],
        "source": ends[1],
        "late": in_steps(delay),
        "weight": weight_of[ends],
        "delays": [f"{target.name}.{name}" for name in direct],
        "assumed": bool(model.assumed_dependencies.intersection(direct)),
    }


# The page -------------------------------------------------------------------------------------------------------------


def page(facts: Mapping[str, Any]) -> list[str]:
    """The sections about the order of stepping and the inputs that it delays."""
    about, total = facts["sequence"], len(facts["connections"])
    by = f", chosen by {about['chosenBy']}" if about["chosenBy"] else ""
    steps = section(f"Sequence of stepping{by}", _sequence(facts))
    if not total:
        return steps
    return [
        *steps,
        *section("Parallel levels", _parallel(about)),
        *section(
            f"Stale inputs: {len(about['stale'])} of {total}",
            _stale_inputs(facts),
            if_empty="none: each input has the value of the end of the step",
        ),
    ]


def _sequence(facts: Mapping[str, Any]) -> list[str]:
    order, levels = facts["order"], facts["sequence"]["levels"]
    level_of = {name: k for k, level in enumerate(levels) for name in level}
    fresh: dict[str, list[str]] = {name: [] for name in order}
    for c in facts["connections"]:
        if c["fresh"] and c["sourceComponent"] not in fresh[c["targetComponent"]]:
            fresh[c["targetComponent"]].append(c["sourceComponent"])
    rows = [
        (
            f"{k}.",
            name,
            f"level {level_of[name] + 1}" if len(levels) > 1 else "",
            f"uses new values of {named(fresh[name])}" if fresh[name] else "",
        )
        for k, name in enumerate(order, 1)
    ]
    return aligned(rows)


def _parallel(about: Mapping[str, Any]) -> list[str]:
    groups = [f"  {named(group)} step together, repeatedly." for group in about["together"]]
    levels = [_units(level, about["together"]) for level in about["levels"]]
    if all(len(level) < 2 for level in levels):
        return groups or ["  none: each component uses new values of the one before it"]
    if len(levels) == 1 and not groups:
        return ["  All components can step at the same time (--threads)."]
    return [
        *aligned((f"level {k}", ", ".join(level)) for k, level in enumerate(levels, 1)),
        *groups,
        "  The components of one level can step at the same time: the results do not change.",
    ]


def _units(level: Sequence[str], together: Sequence[Sequence[str]]) -> list[str]:
    """The units of a level: components, and groups that step together."""
    unit_of = {name: " + ".join(group) for group in together for name in group}
    return list(dict.fromkeys(unit_of.get(name, name) for name in level))


def _stale_inputs(facts: Mapping[str, Any]) -> list[str]:
    about, total = facts["sequence"], len(facts["connections"])
    stale = about["stale"]
    if not stale:
        return []
    if len(stale) == total and len(about["levels"]) == 1 and total > 1:
        return [
            "  All components start from the same communication point, so their order has no influence."
        ]
    return [
        "  The component steps before its source, so the value is from an earlier time.",
        f"  The cost of the sequence is {about['cost']:.12g}: the sum of the weights, {about['weights']}.",
        *aligned(map(_row, stale)),
        *_leading(about["leading"]),
    ]


def _leading(inputs: Sequence[str]) -> list[str]:
    """Lines about fresh inputs that are early, which the cost does not include."""
    if not inputs:
        return []
    return [
        f"  Fresh: {named(inputs)}, but held over the whole step at the value of its end, half a step early on average.",
        "  The cost treats these inputs as exact. Use --mode lin, or let fmimaster optimize find a sequence by "
        "simulations.",
    ]


def _row(stale: Mapping[str, Any]) -> tuple[str, ...]:
    effect = "no output depends on it directly"
    if stale["delays"]:
        assumed = " (assumed, since it is not declared)" if stale["assumed"] else ""
        effect = f"delays {named(stale['delays'])}{assumed}"
    elif stale["weight"] > NOT_DIRECT:
        effect = "no output depends on it directly, but discrete outputs change late because of it"
    return (
        stale["target"],
        "<-",
        stale["source"],
        f"{stale['late']},",
        f"weight {stale['weight']:g}:",
        effect,
    )
