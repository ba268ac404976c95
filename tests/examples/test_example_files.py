"""The files of docs/examples and the scripts of docs/figures run."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from processes import PATIENCE

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
FIGURES = sorted((ROOT / "docs" / "figures").glob("*.py"))


def run(script: Path, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


draw = runpy.run_path(str(ROOT / "tools" / "gallery.py"))["draw"]
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "example", [p.stem for p in EXAMPLES if p.stem not in ("strang", "ten_stations")]
)
def test_an_example_of_the_gallery_draws_its_figure(
    example: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which saves the imports. The page has its figure and its code."""
    draw(ROOT / "docs" / "examples" / f"{example}.py", tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == [f"{example}.svg"]
    assert capsys.readouterr().out
    shown = f'](figures/gallery/{example}.svg)\n\n``` {{ .py }}\n--8<-- "{example}.py"\n```'
    assert shown in GALLERY
    assert (ROOT / "docs" / "figures" / "gallery" / f"{example}.svg").exists()


@pytest.mark.thorough
@pytest.mark.usefixtures("pyplot")
@pytest.mark.filterwarnings(
    "ignore::fmimaster.base.errors.AccuracyWarning"
)  # of what a figure is about
@pytest.mark.parametrize("script", FIGURES, ids=[p.name for p in FIGURES])
def test_figure_can_be_drawn_again(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, which saves the imports."""
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert (tmp_path / f"{script.stem}.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_the_example_algorithm_has_order_two(tmp_path: Path) -> None:
    printed = run(ROOT / "docs" / "examples" / "strang.py", tmp_path)
    orders = [float(order) for order in re.findall(r"order (\S+)", printed)]
    assert orders == pytest.approx([2.0] * len(orders), abs=0.05)
    assert len(orders) == 4


def test_the_page_shows_the_example_algorithm_as_it_is() -> None:
    source = (ROOT / "docs" / "examples" / "strang.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "add-an-algorithm.md").read_text(encoding="utf-8")
    listing = source[source.index("@dataclass") : source.index("def error")].rstrip()
    assert listing in page
