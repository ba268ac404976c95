"""``fmimaster budget``: which connection costs accuracy."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator

from fmimaster.base.text import aligned, section
from fmimaster.commands import settings
from fmimaster.commands.text import write
from fmimaster.configure.named import setting_text
from fmimaster.studies.optimization.error_budget import ErrorBudget, Share, error_budget


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation."""
    settings.add_arguments(parser)


def run(arguments: Namespace) -> int:
    """Measure the errors, and print them."""
    simulation = settings.simulation(arguments)
    budget = error_budget(simulation)
    algorithm = simulation.prepare().completed(simulation).algorithm_used
    write(_page(budget, setting_text(algorithm)))
    return 0


def _page(budget: ErrorBudget, algorithm: str) -> Iterator[str]:
    yield f"Error budget, {algorithm}: errors of held or extrapolated inputs"
    rows: list[tuple[str, ...]] = [("connection", "error (rms)", "of scale", "largest", "at")]
    rows += [_error(c) for c in budget.connections]
    yield from section("Errors of inputs", aligned(rows), if_empty="nothing is connected")
    effects = [_effect(c) for c in budget.connections]
    known = [effect for effect in effects if effect]
    if known:
        head = ("input", "output", "error (rms)", "of scale")
        yield from section("Effects on the outputs of the same component", aligned([head, *known]))
    if budget.unmeasured:
        yield from section(
            "Not measured, because these are not Float64 scalars",
            [f"  {', '.join(budget.unmeasured)}"],
        )
    for note in budget.notes:
        yield f"note: {note}"


def _error(c: Share) -> tuple[str, ...]:
    return (
        f"{c.source} -> {c.target}",
        _with_unit(c.rms, c.unit),
        _percent(c.share),
        _with_unit(c.largest, c.unit),
        f"{c.time:.6g} s",
    )


def _effect(c: Share) -> tuple[str, ...]:
    if c.effect is None:
        return ()
    effect = c.effect
    return c.target, effect.output, _with_unit(effect.rms, effect.unit), _percent(effect.share)


def _with_unit(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}".rstrip()


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
