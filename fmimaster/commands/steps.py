"""``fmimaster steps``: the cause of the end of each step of a run, and the events in between."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, groupby, repeat
from operator import attrgetter
from pathlib import Path

from fmimaster.base.errors import FileError
from fmimaster.base.text import Widths, aligned, count
from fmimaster.commands.text import takes_all_characters, write
from fmimaster.record.causes import GRID, STOP_TIME, Activations, Cause, Event, Steps
from fmimaster.results.facts import Facts
from fmimaster.results.facts_writer import lines
from fmimaster.results.files import facts_of
from fmimaster.system.declarations import attribute_name

_HEADER = "end in s", "size in s", "steps", "cause of the end, or event"

_CLOCK_HEADER = "clock", "first in s", "every s", "last in s", "activations"
_MOST_STRETCHES = 5
"""Most stretches of a clock that are shown; the JSON has all of them."""
_LONGEST_FRACTION = 12
"""Letters of a fraction that is shown as such."""

_MOST_VALUES = 3
"""Most jumps that are shown with an event; the JSON has all of them."""


def add_arguments(parser: ArgumentParser) -> None:
    """The results, and the form of the output."""
    parser.add_argument("file", metavar="RESULT", help="results of simulate --output-file")
    parser.add_argument("--json", action="store_true", help="print events and steps as JSON")


def run(arguments: Namespace) -> int:
    """Print the events and steps that are stored beside the results; they are read in parts, because there may be
    many."""
    facts = facts_of(arguments.file)
    if not facts.exist:
        raise FileError(_missing(Path(arguments.file), facts.path))
    if arguments.json:
        only_ascii = not takes_all_characters()
        metadata = {attribute_name(name): value for name, value in facts.metadata().items()}
        everything = facts.events(), facts.steps(), facts.activations(), facts.units(), metadata
        write(lines(*everything, only_ascii=only_ascii))
    else:
        write(_page(facts))
    return 0


def _missing(table: Path, path: Path) -> str:
    if not table.is_file():
        return f"'{table}' does not exist. Give a file that simulate --output-file has written."
    return (
        f"There is no '{path.name}' beside '{table}', which holds the steps and events of a run: the run was killed, "
        "the table was moved without it, or it comes from another program."
    )


def _page(facts: Facts) -> Iterator[str]:
    """Print the lines; the file is read twice, first for numbers and widths."""
    causes: Counter[Cause] = Counter()
    happened = 0
    widths = Widths(_HEADER)
    for entry in _entries(facts):
        if isinstance(entry, Event):
            happened += 1
        else:
            causes[entry.cause] += entry.count
        widths.add(_row(entry))
    events = count(happened, "event") if happened else "no events"
    clocks = list(_clocks(facts))
    yield f"{count(sum(causes.values()), 'step')}, {events}"
    if not happened and causes.keys() <= {GRID, STOP_TIME}:
        yield f"  All steps ended on the grid of the step size{_of_one_size(facts)}."
        yield from clocks
        return
    yield from aligned((str(number), str(cause)) for cause, number in causes.most_common())
    yield from clocks
    yield ""
    yield from widths.lines(_HEADER)
    for entry in _entries(facts):
        yield from widths.lines(_row(entry))


def _clocks(facts: Facts) -> Iterator[str]:
    """The activations of clocks: a line for each stretch at equal distances."""
    rows: list[tuple[str, ...]] = []
    for clock, group in groupby(facts.activations(), attrgetter("clock")):
        stretches = list(group)
        for name, a in zip(chain([clock], repeat("")), stretches[:_MOST_STRETCHES], strict=False):
            rows.append((name, _exact(a.first), _distance(a), _exact(a.last), str(a.count)))
        if rest := stretches[_MOST_STRETCHES:]:
            total = sum(a.count for a in rest)
            rows.append(("", _exact(rest[0].first), "…", _exact(rest[-1].last), str(total)))
    if rows:
        yield ""
        yield from aligned([_CLOCK_HEADER, *rows], "")


def _distance(a: Activations) -> str:
    """How the activations of a stretch follow each other."""
    if a.interval is None:
        return "irregular"
    if a.count == 1:
        return "once"
    return _exact(a.interval) if a.interval else "in one instant"


def _exact(time: Fraction) -> str:
    """A time in s: a fraction if it is short, otherwise its double."""
    text = str(time)
    return text if len(text) <= _LONGEST_FRACTION else f"{float(time):.10g}"


def _of_one_size(facts: Facts) -> str:
    """The step size in words, if all steps except a shorter last one have the same size."""
    sizes = {f"{entry.size:.6g}" for entry in facts.steps() if entry.cause == GRID}
    return f", {sizes.pop()} s" if len(sizes) == 1 else ""


def _entries(facts: Facts) -> Iterator[Steps | Event]:
    """Steps, each followed by the events up to its end."""
    events = facts.events()
    event = next(events, None)
    for k, s in enumerate(facts.steps()):
        while not k and event is not None and event.time <= s.begin:
            yield event
            event = next(events, None)
        rest: Steps | None = s
        while event is not None and event.time <= s.end:
            if rest is not None and event.time >= rest.end:
                yield rest
                rest = None
            # steps on both sides of an event may be alike
            elif rest is not None and (done := round((event.time - rest.begin) / rest.size)) > 0:
                yield replace(rest, end=event.time, count=done)
                rest = replace(rest, begin=event.time, count=rest.count - done)
            yield event
            event = next(events, None)
        if rest is not None:
            yield rest
    while event is not None:
        yield event
        event = next(events, None)


def _row(entry: Steps | Event) -> tuple[str, ...]:
    if isinstance(entry, Event):
        return _event(entry)
    return f"{entry.end:.10g}", f"{entry.size:.6g}", str(entry.count), str(entry.cause)


def _event(event: Event) -> tuple[str, ...]:
    who = " and ".join(event.components)
    how = f"shared by {who}" if event.shared else f"private to {who}"
    # a jump has one row after it; events in later rows tell theirs
    which = "event" if event.index <= 1 else f"event, row {event.index}"
    return f"{event.time:.10g}", "", which, f"* {event.name}, {how}, {event.cause}{_jumps(event)}"


def _jumps(event: Event) -> str:
    """The variables that have jumped: the first one of each component, then the second one of each, …."""
    jumps: list[tuple[int, str]] = []
    for who in event.components:
        # the names of a single FMU have no prefix
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
