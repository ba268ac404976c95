"""``fmimaster plan --compare``: sequences side by side, predicted and simulated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fmimaster.base.text import aligned, flowing, section
from fmimaster.commands.optimize import searched, told
from fmimaster.commands.optimize_page import algorithm_words, candidate_facts, number
from fmimaster.front.simulation import Simulation
from fmimaster.studies.optimization.comparison import PRESENT, ComparedSequence, compare
from fmimaster.studies.optimization.compromises import compromises
from fmimaster.studies.optimization.sequence_search import SequenceSearch
from fmimaster.studies.optimization.signature import Signature


def comparison(simulation: Simulation) -> dict[str, Any]:
    """Simulate sequences, and return the results as plain data."""
    search = SequenceSearch(simulation, Signature(), tell=told())
    rows = searched(search, lambda: compare(search))
    cores = simulation.threads or os.cpu_count() or 1
    seconds = search.runs.seconds
    found = compromises(search.prepared.plan, search.groups, seconds, cores) if cores > 1 else ()
    return {
        "algorithm": algorithm_words(search.runs.algorithm),
        "sequences": [_facts(row) for row in rows],
        "threads": cores,
        "compromises": [
            {"levels": [list(k) for k in c.levels], "cost": c.cost, "seconds": c.seconds}
            for c in found
        ],
    }


def _facts(row: ComparedSequence) -> dict[str, Any]:
    return {
        **candidate_facts(row.candidate),
        "sequence": list(row.components),
        "methods": list(row.methods),
        "staleInputs": row.stale,
        "feedThroughCost": row.feed_through,
    }


def page(facts: Mapping[str, Any]) -> list[str]:
    """The section of the plan's page."""
    heads = ("sequence", "stale", "feed-", "error", "", "change", "", "chosen by")
    below = ("", "", "through", "pred.", "sim.", "pred.", "sim.", "")
    rows = [
        (
            ", ".join(row["sequence"]),
            f"{row['staleInputs']:g}",
            f"{row['feedThroughCost']:.3g}",
            *(number(row[key]) for key in _NUMBERS),
            ", ".join(row["methods"]),
        )
        for row in facts["sequences"]
    ]
    explained = (
        "  Error: difference from results that are extrapolated to the step size 0. Change: difference from the "
        "results with "
        f"the present sequence ('{PRESENT}'). Both are predicted (pred.) and simulated (sim.), relative to the size "
        "of the "
        "outputs."
    )
    return [
        *section(f"Sequences compared ({facts['algorithm']})", aligned([heads, below, *rows])),
        *flowing([explained]),
        *_compromises(facts),
    ]


def _compromises(facts: Mapping[str, Any]) -> list[str]:
    if not facts["compromises"]:
        return []
    rows = [
        ("; ".join(map(", ".join, c["levels"])), f"{c['cost']:.4g}", f"{c['seconds'] * 1e6:.4g} us")
        for c in facts["compromises"]
    ]
    title = f"Compromises of stale inputs and speed on {facts['threads']} threads, as measured"
    heads = ("levels (--levels)", "feed-through", "FMUs, per step")
    return [
        *section(title, aligned([heads, *rows])),
        "  No other sequence has both fewer stale inputs and faster steps.",
    ]


_NUMBERS = ("predictedError", "error", "predictedDifference", "difference")
