"""The output of ``fmimaster optimize``: the sequence found and its assessment, as data and as lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from fmimaster.algorithms.gauss_seidel import MODES, GaussSeidel
from fmimaster.algorithms.modes import Mode
from fmimaster.base.text import aligned, count, section
from fmimaster.configure.named import polynomial_text
from fmimaster.inputs.polynomial import HOLD
from fmimaster.studies.optimization.sequence_search import FoundSequence, SequenceSearch
from fmimaster.studies.optimization.signature import Candidate, Signature
from fmimaster.studies.optimization.trial import stale_arcs

LARGE = 0.1
"""A relative error above which predictions are not reliable."""

NOISE = (
    "These errors are as large as the outputs themselves: the order of the sequences is noise, and the one that was found "
    "may be worse than others. Use a smaller step size."
)


def facts(found: FoundSequence, search: SequenceSearch) -> dict[str, Any]:
    """The result as plain data."""
    return {
        "system": search.prepared.description.system.name,
        "method": repr(search.method),
        "algorithm": repr(found.algorithm),
        "sequence": list(found.components),
        "cost": found.cost,
        "base": list(found.base),
        "baseCost": found.base_cost,
        "options": options(found.algorithm, found.components),
        "candidates": [
            candidate_facts(c) | {"sequence": list(found.groups.components(c.sequence))}
            for c in found.candidates
        ],
        "solvedTogether": [list(m) for m in found.groups.members.values() if len(m) > 1],
        "weights": [
            {"source": a, "target": b, "weight": w} for (a, b), w in sorted(found.weights.items())
        ],
        "ranksNoise": found.ranks_noise,
        "unknown": [{"source": a, "target": b} for a, b in found.unknown],
        "failures": list(map(str, search.runs.failures.values())),
    }


def candidate_facts(candidate: Candidate) -> dict[str, Any]:
    """A candidate as plain data."""
    names = {
        "sequence": "sequence",
        "predicted": "predictedError",
        "measured": "error",
        "predicted_difference": "predictedDifference",
        "difference": "difference",
    }
    return {names[key]: value for key, value in asdict(candidate).items()}


def page(found: FoundSequence, search: SequenceSearch) -> list[str]:
    """The result as lines of text."""
    name = search.prepared.description.system.name
    runs = count(search.simulations, "simulation")
    lines = [
        f"{name}, {algorithm_words(found.algorithm)}, method {type(search.method).__name__.lower()}, {runs}"
    ]
    lines += section("Sequence", [f"  {', '.join(found.components)}"])
    rows = [
        ("", "components", "cost"),
        ("found", ", ".join(found.components), f"{found.cost:.4g}"),
        ("before", ", ".join(found.base), f"{found.base_cost:.4g}"),
    ]
    lines += section("Cost: total weight of stale inputs", aligned(rows))
    if isinstance(search.method, Signature):
        lines += section(
            "Errors, relative to the size of the outputs", aligned(_candidate_rows(found))
        )
    least = found.candidates[0].measured
    if found.ranks_noise:
        lines += [f"  {NOISE}"]
    elif least is not None and least > LARGE:
        lines += [
            "  Even the smallest of these errors is large. Predictions are valid for small errors: use a smaller "
            "step size."
        ]
    chosen = stale_arcs(found.candidates[0].sequence, found.weights)
    label = found.groups.label
    weights = [
        (label(a), "->", label(b), f"{w:.4g}", "stale" if (a, b) in chosen else "fresh")
        for (a, b), w in sorted(found.weights.items(), key=lambda item: (-item[1], item[0]))
    ]
    lines += section("Weights: cost of stale inputs", aligned(weights))
    lines += section(
        "Connections about which nothing is known",
        aligned([(label(a), "->", label(b)) for a, b in found.unknown]),
    )
    words = shlex.join(options(found.algorithm, found.components))
    return [*lines, *section("To use it", [f"  {words}"])]


def options(algorithm: GaussSeidel, components: Iterable[str]) -> list[str]:
    """The options of the command line that set an algorithm and a sequence."""
    words = ["--algorithm", "gauss-seidel", "--mode", _mode_words(algorithm.mode)]
    words += ["--levels"] * algorithm.levels
    if algorithm.inputs != HOLD:
        words += ["--inputs", polynomial_text(algorithm.inputs)]
    return [*words, "--sequence", ",".join(components)]


def _mode_words(mode: Mode) -> str:
    """A mode as the command line accepts it."""
    usual = MODES[mode.name]
    given = ((f.name, getattr(mode, f.name)) for f in fields(type(mode)))  # type: ignore[arg-type]
    changed = [f"{name}={value}" for name, value in given if value != getattr(usual, name)]
    return mode.name + (f":{','.join(changed)}" if changed else "")


def algorithm_words(algorithm: GaussSeidel) -> str:
    """An algorithm in short words."""
    more = "" if algorithm.inputs == HOLD else f", inputs {polynomial_text(algorithm.inputs)}"
    return f"Gauss-Seidel, mode {_mode_words(algorithm.mode)}{more}"


def _candidate_rows(found: FoundSequence) -> list[tuple[str, ...]]:
    """A table of candidates, with a head."""
    rows = [
        (
            ", ".join(map(found.groups.label, c.sequence)),
            number(c.predicted),
            number(c.measured),
        )
        for c in found.candidates
    ]
    return [("sequence", "predicted", "simulated"), *rows]


def number(value: float | None) -> str:
    """A number, or words if it is not known."""
    return "-" if value is None else f"{value:.4g}"
