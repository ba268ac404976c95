"""tools/docstring_links.py makes docstrings ready for the API reference. Needs griffe, which ``.[docs]`` brings."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path

import pytest

from fmimaster.steps import PID, MultiRate

TOOL = Path(__file__).parents[2] / "tools" / "docstring_links.py"


@pytest.mark.parametrize("documented", [MultiRate, PID, PID.ecco])
def test_the_source_of_a_formula_is_no_parameter(documented: object) -> None:
    pytest.importorskip("griffe")
    prose_first = runpy.run_path(str(TOOL))["prose_first"]
    given = inspect.getdoc(documented) or ""
    changed = prose_first(given)
    assert changed.index("Source: ") < changed.index("Parameters\n---")
    assert sorted(changed.split("\n\n")) == sorted(given.split("\n\n"))  # nothing is lost
