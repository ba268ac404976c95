"""The files of docs/examples and the scripts of docs/figures run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=[p.name for p in EXAMPLES])
def test_example_runs(example: Path, tmp_path: Path) -> None:
    assert run(example, tmp_path)


@pytest.mark.parametrize("script", FIGURES, ids=[p.name for p in FIGURES])
def test_figure_can_be_drawn_again(script: Path, tmp_path: Path) -> None:
    run(script, tmp_path, str(tmp_path))
    assert (tmp_path / f"{script.stem}.svg").read_text().startswith("<?xml")


def test_the_example_algorithm_has_order_two(tmp_path: Path) -> None:
    printed = run(ROOT / "docs" / "examples" / "strang.py", tmp_path)
    orders = [float(order) for order in re.findall(r"order (\S+)", printed)]
    assert orders == pytest.approx([2.0] * len(orders), abs=0.05)
    assert len(orders) == 4


def test_the_page_shows_the_example_algorithm_as_it_is() -> None:
    source = (ROOT / "docs" / "examples" / "strang.py").read_text()
    page = (ROOT / "docs" / "add-an-algorithm.md").read_text()
    listing = source[source.index("@dataclass") : source.index("def error")].rstrip()
    assert listing in page
