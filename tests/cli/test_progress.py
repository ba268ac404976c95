"""The progress of a run: with rich a bar, without it a line; both with the real-time factor, on a terminal only."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr
from itertools import count

import pytest

from fmimaster.commands import progress as module
from fmimaster.commands.progress import in_words, progress


class Terminal(io.StringIO):
    """A standard error that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def half_a_second_for_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    clock = count(0.0, 0.5)
    monkeypatch.setattr(module, "perf_counter", lambda: next(clock))


def run_to(end: float, stream: io.StringIO, *, show: bool = True) -> list[tuple[float, ...]]:
    """What a run over 20 s shows up to here, if it is looked at each second; returns the times."""
    seen: list[tuple[float, ...]] = []
    with (
        redirect_stderr(stream),
        progress(lambda *times: seen.append(times), show=show) as shows,
    ):
        for second in range(int(end) + 1):
            shows(0.0, float(second), 20.0)
    return seen


def test_without_rich_a_line_has_the_factor_and_the_time_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    terminal = Terminal()
    assert run_to(10.0, terminal)[-1] == (0.0, 10.0, 20.0)
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
