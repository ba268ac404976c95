"""``fmimaster steps``: why each step of a run ended where it did, and the events between."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from fmimaster.causes import Event, Steps, causes_of
from fmimaster.commands.text import aligned, count, write, write_json
from fmimaster.errors import FileError
from fmimaster.results.facts import facts, facts_path, read_facts

HELP = "Show each step of a run with its size and the cause of its end, and the events between."

_MOST_VALUES = 3
"""Jumps that are shown with an event; all of them are in the JSON."""


def add_arguments(parser: ArgumentParser) -> None:
    """The results, and the form of the answer."""
    parser.add_argument("file", metavar="RESULT.csv", help="results of simulate --output-file")
    parser.add_argument("--json", action="store_true", help="print events and steps as JSON")


def run(arguments: Namespace) -> int:
    """Print the facts that are stored beside the results."""
    path = facts_path(arguments.file)
    if not path.is_file():
        raise FileError(_missing(Path(arguments.file), path))
    events, steps = read_facts(arguments.file)
    if arguments.json:
        write_json(facts(events, steps))
    else:
        write(_page(events, steps))
    return 0


def _missing(table: Path, path: Path) -> str:
    if not table.is_file():
        return (
            f"'{table}' does not exist. Give the CSV file that simulate --output-file has written."
        )
    return (
        f"There is no '{path.name}' beside '{table}': no event was seen in that run and all steps ended on the grid, "
        "or the table was moved, or comes from another program. Simulate with --event-clock to record the causes of steps."
    )


def _page(events: Sequence[Event], steps: Sequence[Steps]) -> list[str]:
    total = f"{count(sum(s.count for s in steps), 'step')}, {count(len(events), 'event')}"
    shares = [(str(number), str(cause)) for cause, number in causes_of(steps).items()]
    rows = [
        ("end in s", "size in s", "steps", "cause of the end, or event"),
        *_rows(events, steps),
    ]
    return [total, *aligned(shares), "", *aligned(rows, indent="")]


def _rows(events: Sequence[Event], steps: Sequence[Steps]) -> Iterator[tuple[str, ...]]:
    """Steps, each followed by the events up to its end."""
    waiting = list(events)
    if steps:
        while waiting and waiting[0].time <= steps[0].begin:
            yield _event(waiting.pop(0))
    for s in steps:
        yield f"{s.end:.10g}", f"{s.size:.6g}", str(s.count), str(s.cause)
        while waiting and waiting[0].time <= s.end:
            yield _event(waiting.pop(0))
    yield from map(_event, waiting)


def _event(event: Event) -> tuple[str, ...]:
    who = " and ".join(event.components)
    how = f"shared by {who}" if event.shared else f"private to {who}"
    return f"{event.time:.10g}", "", "event", f"* {event.name}, {how}, {event.cause}{_jumps(event)}"


def _jumps(event: Event) -> str:
    """What has jumped: the first variable of each component, then the second of each, ...."""
    jumps: list[tuple[int, str]] = []
    for who in event.components:
        # the names of a single FMU stand without it
        mine = [n for n in event.left if len(event.components) == 1 or n.startswith(f"{who}.")]
        changed = [n for n in mine if event.left[n] != event.right.get(n, event.left[n])]
        jumps += [
            (k, f"{name} {_short(event.left[name])} -> {_short(event.right[name])}")
            for k, name in enumerate(changed)
        ]
    if not jumps:
        return ""
    shown = [text for _, text in sorted(jumps, key=lambda jump: jump[0])[:_MOST_VALUES]]
    more = f", {len(jumps) - _MOST_VALUES} more" if len(jumps) > _MOST_VALUES else ""
    return f": {', '.join(shown)}{more}"


def _short(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
