"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import fmimaster

PACKAGE = Path(fmimaster.__file__).parent
MODULES = sorted(
    ".".join(("fmimaster", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_all_modules_can_be_imported() -> None:
    for module in pkgutil.walk_packages(fmimaster.__path__, "fmimaster."):
        if not module.name.endswith("__main__"):  # importing it runs the command line
            import_module(module.name)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
