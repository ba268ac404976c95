"""Components with their own step sizes on the page of the plan."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd
from typing import Any

from fmimaster.plan.plan import Plan
from fmimaster.program.delays import Delay
from fmimaster.program.instructions.base import Program
from fmimaster.program.programs import Programs
from fmimaster.steps.step_rule import StepRule


def attempts(programs: Programs) -> Iterator[tuple[str, Program]]:
    """The step programs by name: one, or one for each different interval."""
    if programs.pattern is None:
        yield programs.attempt.name, programs.attempt
        return
    for k in sorted({*programs.pattern.intervals, programs.pattern.last}):
        yield f"attempt {k}", programs.variants[k].attempt


def connection(delay: Delay, plan: Plan, rule: StepRule[Any]) -> dict[str, Any]:
    """The delay of a connection; empty if all components have the same step size."""
    if len(rule.sizes) == 1:
        return {}
    source, target = (
        plan.instances[i].name for i in (delay.route.link.source, delay.route.link.target)
    )
    size, published = rule.size_of(target), rule.size_of(source)
    late = size + published - _common(size, published)
    return {
        "late": f"up to {float(late):.6g} s late",
        "why": f"'{target}' is set when its step begins; '{source}' has a new value every {float(published):.6g} s",
    }


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The largest time such that both are multiples of it."""
    return Fraction(gcd(a.numerator * b.denominator, b.numerator * a.denominator), 1) / (
        a.denominator * b.denominator
    )
