"""The progress of a run: with rich a bar, without it a line; both with the real-time factor, on a terminal only."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr

import pytest

from fmimaster import Progress
from fmimaster.commands.running import in_words, progress


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def a_terminal_of_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")


def run_to(end: float, stream: io.StringIO, *, show: bool = True) -> list[Progress]:
    """What a run over 20 s shows up to here, twice as fast as real time; returns what it was told."""
    seen: list[Progress] = []
    with redirect_stderr(stream), progress(seen.append, show=show) as shows:
        for second in range(int(end) + 1):
            shows(Progress(0.0, float(second), 20.0, 10 * second, second / 2))
    return seen


def test_without_rich_a_line_has_the_factor_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    terminal = Terminal()
    assert run_to(10.0, terminal)[-1].time == 10.0
    written = terminal.getvalue().split("\r\x1b[K")
    assert written[1] == "t = 0 s    0%"
    assert written[-2:] == ["t = 10 s   50%  2 x real time  5 s left", ""]  # erased in the end


def test_a_bar_has_the_real_time_factor() -> None:
    pytest.importorskip("rich")
    terminal = Terminal()
    run_to(10.0, terminal)
    assert "2 x real time" in terminal.getvalue()


@pytest.mark.parametrize("show", [True, False])
def test_nothing_is_shown_where_it_is_not_wanted_or_not_seen(show: bool) -> None:
    stream = io.StringIO() if show else Terminal()
    assert len(run_to(3.0, stream, show=show)) == 4
    assert stream.getvalue() == ""


def test_the_factor_has_three_digits() -> None:
    assert [in_words(f) for f in (None, 0.012345, 2814.7)] == [
        "",
        "0.0123 x real time",
        "2810 x real time",
    ]
