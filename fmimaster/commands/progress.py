"""The progress of a run on a terminal: time, share, real-time factor and the time left; a bar if rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fmimaster.base.text import page_width, visible
from fmimaster.session.work_thread import Progress

Show = Callable[[Progress], None]

_ERASE = "\r\x1b[K"
"""Moves the cursor to the start of its line, and erases the line."""


@contextmanager
def progress(note: Show, *, show: bool) -> Iterator[Show]:
    """The function that a run calls with its progress.

    Parameters
    ----------
    note
        Another function that is called with the progress.
    show : bool
        Whether the progress may be shown; it is if the standard error is a terminal.
    """
    if not (show and sys.stderr is not None and sys.stderr.isatty()):
        yield note
        return
    try:
        import rich  # noqa: F401 - slow to import, and an extra
    except ImportError:
        shown = _line()
    else:
        shown = _bar()
    with shown as shows:

        def both(reached: Progress) -> None:
            note(reached)
            shows(reached)

        yield both


def in_words(factor: float | None) -> str:
    """``"2810 x real time"``, with three digits."""
    return "" if factor is None else f"{float(f'{factor:.3g}'):g} x real time"


@contextmanager
def _line() -> Iterator[Show]:
    """One line that is overwritten again and again."""

    def show(reached: Progress) -> None:
        share, factor = f"{reached.fraction:4.0%}", reached.real_time_factor
        parts = [f"t = {reached.time:.4g} s", share, in_words(factor)]
        if reached.remaining is not None:
            parts.append(f"{reached.remaining:.0f} s left")
        over_line("  ".join(part for part in parts if part))

    try:
        yield show
    finally:
        over_line("")


def over_line(text: str) -> None:
    """Write over the last line of a terminal, which must fit; an empty text erases it."""
    if sys.stderr is not None:
        line = visible(text)[: page_width(sys.stderr) - 1]
        sys.stderr.write(f"{_ERASE}{line}")
        sys.stderr.flush()


@contextmanager
def _bar() -> Iterator[Show]:
    """A bar of rich."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("t = {task.fields[now]:.4g} s"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    # FMUs may use the standard output at this time
    bar = Bar(*columns, console=Console(stderr=True), redirect_stdout=False, transient=True)
    task = bar.add_task("", total=None, now=0.0, speed="")

    def show(reached: Progress) -> None:
        bar.start()  # not before: it starts a thread, and the run may be forked
        words = in_words(reached.real_time_factor)
        bar.update(task, completed=reached.fraction, total=1.0, now=reached.time, speed=words)

    try:
        yield show
    finally:
        bar.stop()
