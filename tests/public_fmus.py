"""FMUs of others, which are not part of this repository: a test that needs one is skipped without it.

The environment variable FMIMASTER_PUBLIC_FMUS names a folder with them; conformance/README.md says where they are.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import facts
import pytest

FOLDER = "FMIMASTER_PUBLIC_FMUS"


def modelica_fmu(model: str, version: str) -> Path:
    """One of modelica's Reference FMUs, such as ``modelica_fmu("BouncingBall", "3.0")``."""
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"needs public FMUs: set {FOLDER} to a folder with modelica's Reference FMUs")
    found = _modelica_fmus(Path(folder)).get((model, version))
    if found is None:
        pytest.skip(f"no {model}.fmu of modelica's Reference FMUs, FMI {version}, in '{folder}'")
    return found


@cache
def _modelica_fmus(folder: Path) -> dict[tuple[str, str], Path]:
    found: dict[tuple[str, str], Path] = {}
    for path in sorted(folder.rglob("*.fmu")):
        try:
            of_fmu = facts.read(path)
        except Exception:  # collections have damaged FMUs on purpose
            continue
        if of_fmu.exporter.startswith("Reference FMUs"):
            found.setdefault((path.stem, of_fmu.version), path)
    return found
