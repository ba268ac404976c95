"""An FMU card as text."""

from __future__ import annotations

from collections.abc import Iterator

from fmimaster.base.text import aligned, bytes_in_words, count, listed, section, shortened
from fmimaster.cards.card import NOT_DECLARED, FmuCard
from fmimaster.cards.findings import (
    LEAK,
    ROUNDING,
    TITLES,
    Weight,
    differences,
    is_once_per_process,
    seen_anywhere,
)
from fmimaster.cards.measured import Repetition

_MOST_ROWS = 15
"""Most rows of a table."""
_MOST_NAMES = 8
"""Most names in a cell."""
_HASH = 16
"""Digits of the hash that are shown."""

_WEIGHTS = {
    Weight.FAULT: "Faults",
    Weight.LESS: "Less than declared or expected",
    Weight.MORE: "More than declared",
}


def card_page(card: FmuCard, *, whole: bool = False) -> list[str]:
    """The lines of the page: first where the FMU differs from its declaration, then what was measured.

    Parameters
    ----------
    whole : bool
        Whether long lists are shown in full.
    """
    most = None if whole else _MOST_ROWS
    lines = [f"Card of {card.fmu}", "", *aligned(_head(card))]
    lines += _differences(card)
    lines += section("What was measured", aligned(list(_measured(card))))
    lines += section("Cost", aligned(list(_costs(card))))
    lines += section(
        "Outputs that change at once with an input", shortened(list(_feedthrough(card)), most)
    )
    return lines + _printed(card, most)


def _head(card: FmuCard) -> list[tuple[str, str]]:
    return [
        ("model", card.model_name),
        ("FMI version", f"{card.fmi_version}, {card.interface}"),
        ("made by", card.generation_tool or "not declared"),
        ("SHA-256", f"{card.sha256[:_HASH]}..."),
        ("measured", f"{card.made}, on {card.platform}, by fmimaster {card.fmimaster}"),
    ]


def _differences(card: FmuCard) -> list[str]:
    found = differences(card)
    lines: list[str] = []
    for weight, title in _WEIGHTS.items():
        rows = [
            (d.what, f"declared: {d.declared}", f"observed: {d.observed}")
            for d in found
            if d.weight is weight
        ]
        lines += section(title, _paired(rows))
    return lines or section("Differences", ["  none between what is declared and what was seen"])


def _paired(rows: list[tuple[str, str, str]]) -> list[str]:
    """For each difference a line with what is declared, and one with what was observed."""
    cells = [line for what, declared, seen in rows for line in ((what, declared), ("", seen))]
    return aligned(cells)


def _measured(card: FmuCard) -> Iterator[tuple[str, str]]:
    if (run := card.stepping) is not None:
        inputs = "varied inputs" if run.varied else "no input varied"
        moved = f"{run.moved} of {count(run.observed, 'output')} changed"
        yield (
            TITLES["stepping"],
            f"{count(run.steps, 'step')} of {run.step_size:g} s, {inputs}, {moved}",
        )
    if card.input_clocks or card.time_based_clocks:
        yield "clocks", _clocks(card)
    if card.two_processes is not None:
        yield TITLES["two_processes"], _equal(card.two_processes, "equal in two processes")
    if card.replay is not None:
        by = "by copies of fmimaster, the FMU cannot: " if card.copies_states else ""
        yield TITLES["replay"], by + _equal(card.replay.again, "steps after it are equal")
    if (found := card.serialization) is not None:
        size = f"{found.size:,} bytes, {'equal' if found.equal else 'not equal'} after a restore; "
        yield TITLES["serialization"], size + _equal(found.again, "steps from them are equal")
    if card.reset is not None:
        yield TITLES["reset"], _equal(card.reset, "steps after it are those of a new instance")
    yield from _step_rows(card)
    if (two := card.two_instances) is not None:
        text = "refused" if two.refused else "possible"
        text += " (declared: one)" if is_once_per_process(card) else ""
        if two.beside is not None:
            text += f"; beside another one: {_equal(two.beside, 'same results')}"
        yield TITLES["two_instances"], text
    if card.read_at_end is not None:
        yield TITLES["read_at_end"], _equal(card.read_at_end, "same results")
    if card.read_before is not None:
        yield TITLES["read_before"], _equal(card.read_before, "same results")
    for name, reason in card.not_measured.items():
        known = reason == NOT_DECLARED or name not in card.failures
        yield TITLES[name], reason if known else "failed, see above"


def _clocks(card: FmuCard) -> str:
    """Which clocks tick in the measurements."""
    timed, ticks = card.time_based_clocks, card.stepping.ticks if card.stepping is not None else 0
    others = card.input_clocks - timed
    parts = [f"{count(timed, 'clock')} by intervals, {count(ticks, 'tick')}"] if timed else []
    if others > 0:
        parts.append(f"{count(others, 'input clock')} without an interval: not measured")
    return "; ".join(parts)


def _step_rows(card: FmuCard) -> Iterator[tuple[str, str]]:
    if card.varying_steps is not None:
        yield TITLES["varying_steps"], "refused" if card.varying_steps.refused else "done"
    if card.tiny_steps is not None:
        smallest = card.tiny_steps.smallest
        text = "refused" if smallest is None else f"done down to {smallest:g} of the usual size"
        yield TITLES["tiny_steps"], text
    if card.beyond_stop is not None:
        yield TITLES["beyond_stop"], "refused" if card.beyond_stop.refused else "done"
    if (early := card.early_return) is not None:
        yield TITLES["early_return"], f"{early.allowed} times in {count(early.steps, 'step')}"


def _equal(again: Repetition, words: str) -> str:
    if not again.moved:
        words += ", but no output changed"
    if again.largest == 0.0:
        return words
    size = f"{again.largest:.2g} (relative, {again.worst})"
    return f"differences up to {size}" + (", rounding" if again.largest <= ROUNDING else "")


def _costs(card: FmuCard) -> Iterator[tuple[str, str]]:
    load, run, two, replay = card.loading, card.stepping, card.two_instances, card.replay
    rows = [
        ("load", load.load_seconds if load else None),
        ("initialize", load.initialize_seconds if load else None),
        ("a further instance", two.instantiate_seconds if two else None),
        ("step", run.step_seconds if run else None),
        ("read outputs", run.get_seconds if run else None),
        ("set inputs", run.set_seconds if run else None),
        ("save the state", replay.save_seconds if replay else None),
        ("restore the state", replay.restore_seconds if replay else None),
    ]
    yield from ((name, _seconds(value)) for name, value in rows if value is not None)
    if two is not None and two.memory_per_instance is not None:
        yield "memory of an instance", bytes_in_words(two.memory_per_instance)
    if card.leak is not None and card.leak.bytes_per_cycle is not None:
        remains = card.leak.bytes_per_cycle
        of = f"of {count(card.leak.cycles, 'instance')}"
        text = f"{bytes_in_words(remains)} of each {of}" if remains > LEAK else f"none {of}"
        yield "memory that remains", text


def _seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 1.0 or unit == "us":
            return f"{value * factor:.3g} {unit}"
    raise AssertionError


def _feedthrough(card: FmuCard) -> Iterator[tuple[str, str]]:
    """Output, and the inputs; those that the FMU does not declare are marked."""
    for output, inputs in seen_anywhere(card).items():
        declared = card.declared_feedthrough.get(output)
        marked = [
            name if declared is None or name in declared else f"{name} (not declared)"
            for name in sorted(inputs)
        ]
        yield output, listed(marked, _MOST_NAMES)
    if card.feedthrough is not None and card.feedthrough.refused:
        names = listed(list(card.feedthrough.refused), _MOST_NAMES)
        yield "inputs that cannot be changed", names


def _printed(card: FmuCard, most: int | None) -> list[str]:
    rows = [(line,) for text in list(card.printed.values())[:1] for line in text.splitlines()]
    lines = section("What it prints", shortened(rows, most))
    if (run := card.stepping) is not None:
        said = [(text,) for text in run.first_logged]
        lines += section("Its log messages", shortened(said, most, run.logged))
    return lines
