"""The constraints of a plan, as `fmimaster plan` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fmimaster.base.text import section
from fmimaster.plan.plan import Plan
from fmimaster.system.constraints import FORCE, GAP, INPUTS


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


def page(facts: Mapping[str, Any]) -> list[str]:
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
