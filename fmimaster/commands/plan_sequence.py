"""The sequence of a plan: what `fmimaster plan` shows of order, levels and stale inputs, as data and as lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fmimaster.commands.text import aligned, count, section
from fmimaster.plan.plan import Plan
from fmimaster.program.delays import Delay, in_steps
from fmimaster.program.levels import levels

FEED_THROUGH = 1.0
"""Weight of an input on which an output depends directly."""
NO_FEED_THROUGH = 0.01
"""Weight of any other input."""
_SHOWN = 4
"""Names in a sentence; of more, the rest is counted."""


def sequence(plan: Plan, delays: Sequence[Delay]) -> dict[str, Any]:
    """Levels, and the stale inputs with their weights."""
    names = [i.name for i in plan.instances]
    stale = [_stale(d, plan) for d in delays if not d.is_fresh]
    return {
        "levels": [[names[i] for i in level] for level in levels(plan.trigger_sequence, delays)],
        "cost": sum(s["weight"] for s in stale),
        "stale": stale,
    }


def _stale(delay: Delay, plan: Plan) -> dict[str, Any]:
    link = delay.route.link
    target, model = plan.instances[link.target], plan.instances[link.target].model
    direct = [
        v.name for v in model.variables if link.input.name in model.dependencies.get(v.name, ())
    ]
    return {
        "target": f"{target.name}.{link.input.name}",
        "source": f"{plan.instances[link.source].name}.{link.output.name}",
        "late": in_steps(delay),
        "weight": FEED_THROUGH if direct else NO_FEED_THROUGH,
        "delays": [f"{target.name}.{name}" for name in direct],
        "assumed": bool(model.assumed_dependencies.intersection(direct)),
    }


# The page -------------------------------------------------------------------------------------------------------------


def page(facts: Mapping[str, Any]) -> list[str]:
    """The sections about the order of stepping and what it delays."""
    levels, stale = facts["levels"], facts["sequence"]["stale"]
    total = len(facts["connections"])
    if not total:
        return section("Sequence of stepping", _sequence(facts))
    return [
        *section("Sequence of stepping", _sequence(facts)),
        *section("Parallel levels", _parallel(levels)),
        *section(
            f"Stale inputs: {len(stale)} of {total}",
            _stale_inputs(facts),
            if_empty="none: each input has the value of the end of the step",
        ),
    ]


def _sequence(facts: Mapping[str, Any]) -> list[str]:
    order, levels = facts["order"], facts["levels"]
    level_of = {name: k for k, level in enumerate(levels) for name in level}
    fresh: dict[str, list[str]] = {name: [] for name in order}
    for c in facts["connections"]:
        if c["fresh"] and c["sourceComponent"] not in fresh.get(c["targetComponent"], ()):
            fresh.setdefault(c["targetComponent"], []).append(c["sourceComponent"])
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


def _parallel(levels: Sequence[Sequence[str]]) -> list[str]:
    most = max(map(len, levels), default=0)
    if most < 2:
        return ["  none: each component uses a new value of the one before it"]
    lines = aligned((f"level {k}", ", ".join(level)) for k, level in enumerate(levels, 1))
    if len(levels) == 1:
        lines = [f"  all {most} components"]
    return [
        *lines,
        f"  Components of one level can step at the same time, with the same results (--threads {most}).",
    ]


def _stale_inputs(facts: Mapping[str, Any]) -> list[str]:
    stale = facts["sequence"]["stale"]
    if not stale:
        return []
    cost = facts["sequence"]["cost"]
    if len(stale) == len(facts["connections"]) > 1 and len(facts["levels"]) == 1:
        return [
            "  All components start the step from the same communication point, so the order has no influence.",
            *_in_sequence(facts),
        ]
    return [
        "  The component steps before the one that feeds it. The cost of the sequence is"
        f" {cost:.12g}, the sum of the weights.",
        f"  Weight {FEED_THROUGH:g}: outputs depend directly on the input, and are late as well. Weight"
        f" {NO_FEED_THROUGH:g}: only states do.",
        *aligned(map(_row, stale)),
    ]


def _in_sequence(facts: Mapping[str, Any]) -> list[str]:
    """What would be fresh if the components stepped one after the other."""
    place = {name: k for k, name in enumerate(facts["order"])}
    weight = {(s["target"], s["source"]): s["weight"] for s in facts["sequence"]["stale"]}
    late = [
        c
        for c in facts["connections"]
        if place[c["sourceComponent"]] >= place[c["targetComponent"]]
    ]
    fresh = len(facts["connections"]) - len(late)
    cost = sum(weight[c["target"], c["source"]] for c in late)
    return [
        f"  With --algorithm GaussSeidel, {fresh} of {len(facts['connections'])} inputs would have the value of the end of"
        f" the step (cost of the rest: {cost:.12g})."
    ]


def _row(stale: Mapping[str, Any]) -> tuple[str, ...]:
    if stale["delays"]:
        assumed = " (assumed)" if stale["assumed"] else ""
        effect = f"delays {named(stale['delays'])}{assumed}"
    else:
        effect = "delays no output directly"
    return (
        stale["target"],
        "<-",
        stale["source"],
        f"{stale['late']},",
        f"weight {stale['weight']:g}:",
        effect,
    )


def named(names: Iterable[str]) -> str:
    """Names in a sentence; of many, the first and the number of the others."""
    names = list(names)
    if len(names) <= _SHOWN:
        return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
    return f"{', '.join(names[: _SHOWN - 1])} and {count(len(names) - _SHOWN + 1, 'other')}"
