"""The algebraic loops of a plan for `fmimaster plan`: their variables, their treatment, and missing capabilities of
FMUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fmimaster.base.text import named, section
from fmimaster.plan.graph import Node
from fmimaster.plan.plan import Plan
from fmimaster.plan.visits import AlgebraicLoop
from fmimaster.program.instructions.base import Program
from fmimaster.program.listing import UnsolvedLoop, undeclared, unsolved_loops, without_state
from fmimaster.system.constraints import FORCE, GAP, INPUTS

_MOST_SHOWN = 8
"""Most variables of a loop that are named; the others are counted."""


def initial_loops(plan: Plan) -> list[dict[str, Any]]:
    """Each loop in Initialization Mode with its treatment and the reason."""
    return [_loop(loop, plan, *_at_start(loop, plan)) for loop in plan.initial_loops]


def step_loops(attempt: Program, plan: Plan, *, is_measured: bool) -> list[dict[str, Any]]:
    """Each loop in Step Mode with its treatment and the reason; ``is_measured``: whether assumed ones are measured at the
    start of the run."""
    unsolved = {u.loop: u for u in unsolved_loops(attempt, plan)}
    return [
        _loop(loop, plan, *_in_steps(loop, unsolved.get(loop), plan, is_measured))
        for loop in plan.step_loops
    ]


def _loop(loop: AlgebraicLoop, plan: Plan, treatment: str, why: str) -> dict[str, Any]:
    return {
        "variables": [_name(node, plan) for node in loop.variables],
        "path": _path(loop, plan),
        "components": [plan.instances[i].name for i in loop.instances],
        "assumed": loop.assumed,
        "undeclared": [plan.instances[i].name for i in undeclared(loop, plan)]
        if loop.assumed
        else [],
        "treatment": treatment,
        "why": why,
    }


def _name(node: Node, plan: Plan) -> str:
    return f"{plan.instances[node[0]].name}.{node[1]}"


def _path(loop: AlgebraicLoop, plan: Plan) -> list[str]:
    """The variables of a simple loop in the order of their influence, from the first output that is cut back to itself;
    empty if the loop branches."""
    inside = set(loop.variables)
    heads: dict[Node, list[Node]] = {node: [] for node in inside}
    for link in plan.links:
        source, target = (link.source, link.output.name), (link.target, link.input.name)
        if source in inside and target in inside:
            heads[source].append(target)
    for i, name in inside:
        for needed in plan.instances[i].model.dependencies.get(name, ()):
            if (i, needed) in inside:
                heads[i, needed].append((i, name))
    if any(len(following) != 1 for following in heads.values()):
        return []
    first = loop.cut[0] if loop.cut else loop.variables[0]
    path = [first]
    while (following := heads[path[-1]][0]) != first:
        path.append(following)
    return [_name(node, plan) for node in (*path, first)]


# Treatment ------------------------------------------------------------------------------------------------------------


def _at_start(loop: AlgebraicLoop, plan: Plan) -> tuple[str, str]:
    cut = named(_name(node, plan) for node in loop.cut)
    if loop.discrete:
        return (
            f"solved: values are exchanged until {cut} {'does' if len(loop.cut) == 1 else 'do'} not change any more",
            "the loop has discrete outputs, which are compared exactly",
        )
    derive = [
        plan.instances[i].model.capabilities.provides_directional_derivatives
        for i in loop.instances
    ]
    if loop.is_linear and all(derive):
        return (
            f"solved in one Newton step for {cut}",
            "the FMUs declare it as linear and give derivatives",
        )
    if loop.assumed:
        return (
            f"values are exchanged once, and once more as a check; if {cut} changes then, it is solved by iteration",
            "it may not exist",
        )
    return f"solved by iteration for {cut}", "inputs can be set and outputs read repeatedly"


def _in_steps(
    loop: AlgebraicLoop, unsolved: UnsolvedLoop | None, plan: Plan, is_measured: bool
) -> tuple[str, str]:
    names = [i.name for i in plan.instances]
    stuck = [names[i] for i in without_state(loop.instances, plan)]
    if unsolved is None and not plan.exists_in_steps(loop):
        return (
            "solved at events, in Event Mode",
            "its discrete inputs are set there only, and stay the same in steps",
        )
    if unsolved is None:
        who = named(names[i] for i in loop.instances)
        if set(loop.instances) <= {*plan.settled}:
            return (
                f"solved at the end of each step: inputs of {who} are set and outputs read until the values agree",
                "by their cards, outputs follow inputs without a step",
            )
        return (
            f"solved in each step: {who} go back to its start and step again until the values agree",
            "all of them can save and restore their state"
            if not stuck
            else "the algorithm repeats steps",
        )
    late = [f"{names[d.route.link.target]}.{d.route.link.input.name}" for d in unsolved.late]
    left = f"not solved: {named(late)} {'is' if len(late) == 1 else 'are'} late"
    if stuck:
        return (
            left,
            f"{named(stuck)} cannot save and restore {'its' if len(stuck) == 1 else 'their'} state",
        )
    if loop.assumed:
        return left, (
            "it may not exist; the run measures that at its start, and solves the loop if it exists"
            if is_measured
            else "it may not exist; --loops all solves it"
        )
    return left, "it is left to the algorithm; --loops real solves it"


# What FMUs lack -------------------------------------------------------------------------------------------------------


def possible(plan: Plan, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences about what would be possible if FMUs had certain missing capabilities."""
    stuck = [plan.instances[i].name for i in without_state(plan.trigger_sequence, plan)]
    told = []
    for k, loop in enumerate(found, 1):
        lacking = [name for name in loop["components"] if name in stuck]
        if lacking and not loop["assumed"]:
            told.append(
                f"If {_quoted(lacking)} could save and restore the state (canGetAndSetFMUState), loop {k} of Step Mode"
                " could be solved in each step."
            )
    if stuck:
        told.append(
            f"If {_quoted(stuck)} could save and restore the state, steps could be repeated: --sweeps, and step-size rules"
            " that reject steps."
        )
    return told


def _quoted(names: Iterable[str]) -> str:
    return named(f"'{name}'" for name in names)


# The page -------------------------------------------------------------------------------------------------------------


def page(facts: Mapping[str, Any]) -> list[str]:
    """The sections about loops."""
    initial, step = facts["initialLoops"], facts["stepLoops"]
    return [
        *section("Algebraic loops at initialization", _lines(initial), if_empty="none"),
        *section("Algebraic loops in Step Mode", _lines(step, initial), if_empty="none"),
    ]


def possible_page(facts: Mapping[str, Any]) -> list[str]:
    """The section about missing capabilities of FMUs; empty if there are none."""
    return section("What would be possible", [f"  {line}" for line in facts["possible"]])


def _lines(
    found: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]] = ()
) -> list[str]:
    """Each loop with its kind and its treatment; one of those that are shown already has its number there instead."""
    before = [_identity(loop) for loop in shown]
    lines = []
    for k, loop in enumerate(found, 1):
        if _identity(loop) in before:
            lines.append(f"  {k}. loop {before.index(_identity(loop)) + 1} at initialization")
        else:
            lines += [f"  {k}. {_variables(loop)}", f"     {_kind(loop)}"]
        lines.append(f"     {loop['treatment']}, because {loop['why']}")
    return lines


def _identity(loop: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    return sorted(loop["variables"]), loop["undeclared"]


def _kind(loop: Mapping[str, Any]) -> str:
    if not loop["assumed"]:
        return "real: each output depends directly on the input before it"
    silent = loop["undeclared"]
    verb, whose = ("does", "its") if len(silent) == 1 else ("do", "their")
    return f"assumed: {_quoted(silent)} {verb} not declare on which inputs {whose} outputs depend"


def _variables(loop: Mapping[str, Any]) -> str:
    shown = loop["path"] or loop["variables"]
    between = " -> " if loop["path"] else ", "
    if len(shown) <= _MOST_SHOWN:
        return between.join(shown)
    return f"{between.join(shown[:_MOST_SHOWN])} … ({len(loop['variables'])} variables)"


def constraints(plan: Plan) -> list[dict[str, Any]]:
    """Each constraint: the variables that it makes equal, where its force acts, and what is solved together with it."""
    found = []
    for i, instance in enumerate(plan.instances):
        if not instance.model.residuals:
            continue
        residual = instance.model.residuals[FORCE].output
        compared = {
            link.input.name: f"{plan.instances[link.source].name}.{link.output.name}"
            for link in plan.links
            if link.target == i
        }
        forces = [
            {
                "input": f"{plan.instances[link.target].name}.{link.input.name}",
                "factor": link.transformation.factor,
            }
            for link in plan.links
            if link.source == i
        ]
        [group] = (g for g in plan.step_groups if i in g)
        found.append(
            {
                "name": instance.name,
                "level": "position" if residual == GAP else "velocity",
                "equal": [compared[name] for name in INPUTS[residual]],
                "forces": forces,
                "together": [plan.instances[k].name for k in group if k != i],
            }
        )
    return found


def constraints_page(facts: Mapping[str, Any]) -> list[str]:
    """The section of the page; empty without constraints."""
    lines = []
    for c in facts["constraints"]:
        first, second = c["equal"]
        force = f"{c['name']}.{FORCE}"
        acts = [f"{f['input']} = {_times(f['factor'])}{force}" for f in c["forces"]]
        lines += [
            f"  {c['name']}: {first} = {second} at the end of each step, by a force that is constant in it",
            f"      {', '.join(acts)}",
            f"      {' and '.join(c['together'])} repeat the step until the force is found.",
        ]
    return section("Constraints", lines)


def _times(factor: float) -> str:
    return {1.0: "", -1.0: "-"}.get(factor, f"{factor:g} * ")
