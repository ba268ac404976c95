"""Importing the package imports nothing that is slow to import and only some runs need."""

from __future__ import annotations

import subprocess
import sys

import pytest

SLOW = ("scipy", "matplotlib", "rich")


@pytest.mark.parametrize("module", ["fmimaster", "fmimaster.cli"])
def test_importing_leaves_slow_packages_out(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "fmimaster" in done.stdout.split()
    assert set(done.stdout.split()) & set(SLOW) == set()
