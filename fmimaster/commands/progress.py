"""The progress of a run on a terminal: time, share, real-time factor and the time left; a bar if rich is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from fmimaster.text import page_width

Show = Callable[[float, float, float], None]
"""Gets start, present and stop time in s."""

_ERASE = "\r\x1b[K"
"""Moves the cursor to the start of its line, and erases the line."""


@contextmanager
def progress(note: Show, *, show: bool) -> Iterator[Show]:
    """What a run calls with start, present and stop time.

    Parameters
    ----------
    note
        Is called with the same.
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

        def both(start: float, now: float, stop: float) -> None:
            note(start, now, stop)
            shows(start, now, stop)

        yield both


class _Speed:
    """The real-time factor, and the wall time left, since the first step that was seen."""

    def __init__(self) -> None:
        self._begun: tuple[float, float] | None = None

    def factor(self, now: float) -> float | None:
        """Simulated seconds in a second of wall time; None before the first step."""
        if self._begun is None:
            self._begun = now, perf_counter()
            return None
        time, since = self._begun
        seconds = perf_counter() - since
        return (now - time) / seconds if seconds > 0.0 and now > time else None


def in_words(factor: float | None) -> str:
    """``"2810 x real time"``, with three digits."""
    return "" if factor is None else f"{float(f'{factor:.3g}'):g} x real time"


@contextmanager
def _line() -> Iterator[Show]:
    """One line that is written over and over."""
    speed = _Speed()

    def show(start: float, now: float, stop: float) -> None:
        factor = speed.factor(now)
        parts = [f"t = {now:.4g} s", f"{(now - start) / (stop - start):4.0%}", in_words(factor)]
        if factor:
            parts.append(f"{(stop - now) / factor:.0f} s left")
        line = "  ".join(part for part in parts if part)
        _put(f"{_ERASE}{line[: page_width(sys.stderr) - 1]}")

    try:
        yield show
    finally:
        _put(_ERASE)


def _put(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


@contextmanager
def _bar() -> Iterator[Show]:
    """A bar of rich."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("t = {task.fields[now]:.4g} s"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    speed = _Speed()
    # the standard output is the FMUs' for now
    with Progress(
        *columns, console=Console(stderr=True), redirect_stdout=False, transient=True
    ) as bar:
        task = bar.add_task("", total=None, now=0.0, speed="")

        def show(start: float, now: float, stop: float) -> None:
            words = in_words(speed.factor(now))
            bar.update(task, completed=now - start, total=stop - start, now=now, speed=words)

        yield show
