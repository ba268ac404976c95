"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import fmimaster

MODULES = [
    m.name
    for m in pkgutil.walk_packages(fmimaster.__path__, "fmimaster.")
    if not m.name.endswith("__main__")  # importing it runs the command line
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(name)).failed == 0
