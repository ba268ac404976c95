"""Libraries that are extras: what needs one says so where it is missing, before anything is run, and the rest works."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import command

from fmimaster import OptionError, reference_path, simulate
from fmimaster.base.installation import optional

BALL = str(reference_path("fmi3/BouncingBall.fmu"))


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were not installed."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.usefixtures("without_matplotlib")
@pytest.mark.parametrize(
    ("purpose", "arguments"),
    [
        ("--plot", ["simulate", BALL, "--plot", "ball.png"]),
        ("--show-plot", ["simulate", BALL, "--show-plot"]),
        ("'fmimaster plot'", ["plot", "ball.csv"]),
        ("--figure", ["plan", BALL, "--figure", "plan.png"]),
        ("--figure", ["stability", BALL, "--figure", "stability.png"]),
        ("This demo", ["demo", "two-mass"]),
    ],
)
def test_a_command_that_draws_names_the_extra(
    purpose: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = command(capfd, *arguments)
    needs = f"{purpose} needs the library matplotlib, which is not installed."
    assert outcome.error == f'{needs} Install it with: pip install "fmimaster[plot]"\n'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("without_matplotlib")
def test_results_without_matplotlib_can_do_all_but_plot() -> None:
    results = simulate(BALL, stop_time=0.1)
    assert results.rows > 1
    with pytest.raises(OptionError, match=r"plot\(\) needs the library matplotlib"):
        results.plot()
    assert "<td" in (page := results._repr_html_())
    assert "<img" not in page


def test_a_library_that_is_broken_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "brokenlibrary.py").write_text("import no_such_library\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        OptionError, match=r"cannot be imported \(No module named 'no_such_library'\)"
    ):
        optional("brokenlibrary", "plot", "A figure")
