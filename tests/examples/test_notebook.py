"""The notebook of the documentation runs, and shows what it should. Needs what ``pip install -e ".[docs]"`` brings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Cells of code with their outputs."""
    for needed in ("nbclient", "ipykernel", "pandas"):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    target = tmp_path_factory.mktemp("notebook") / "executed.ipynb"
    tool = ROOT / "tools" / "notebook_pages.py"
    done = subprocess.run(
        [sys.executable, str(tool), str(NOTEBOOK), str(target)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(target.read_text(encoding="utf-8"))
    return [cell for cell in document["cells"] if cell["cell_type"] == "code"]


def outputs(cells: list[dict[str, Any]], code: str, kind: str) -> list[str]:
    """What the cells with this code show, in one form."""
    return [
        "".join(output["data"][kind])
        for cell in cells
        if code in "".join(cell["source"])
        for output in cell["outputs"]
        if kind in output.get("data", {})
    ]


def test_it_is_stored_without_outputs() -> None:
    document = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") for cell in document["cells"])


def test_each_plot_is_a_picture(cells: list[dict[str, Any]]) -> None:
    plots = [cell for cell in cells if ".plot(" in "".join(cell["source"])]
    assert len(plots) >= 3
    assert len(outputs(cells, ".plot(", "image/png")) == len(plots)


def test_a_data_frame_is_a_table(cells: list[dict[str, Any]]) -> None:
    assert all("<table" in table for table in outputs(cells, "frame", "text/html"))
    assert len(outputs(cells, "frame", "text/html")) == 2


def test_results_are_a_table_with_units_and_a_figure(cells: list[dict[str, Any]]) -> None:
    (shown,) = outputs(cells[:1], "results", "text/html")
    assert "upper.x" in shown
    assert "m/s" in shown
    assert "data:image/png" in shown


def test_a_stepwise_run_and_a_controller_in_python_run(cells: list[dict[str, Any]]) -> None:
    printed = ["".join(o.get("text", "")) for c in cells for o in c["outputs"]]
    assert "x exceeds 0.8 at 3.7 s\n" in printed  # 1 - exp(2 - t) = 0.8 at 3.61 s
    assert outputs(cells, "(PythonComponent)", "image/png")
