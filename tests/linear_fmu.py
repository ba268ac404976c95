"""FMUs of linear systems with given matrices, for tests: see ``fmus/linear_writer.py``.

path = linear_fmu(folder / "a.fmu", "fmi3", a=[[-1.0]], b=[[1.0]], c=[[1.0]], inputs=["u"], outputs=["y"])
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from linear_system import LinearSystem
from linear_writer import write_fmu

from fmimaster.base.errors import FileError
from fmimaster.base.installation import reference_path


def linear_fmu(path: Path, version: str, **system: Any) -> Path:
    """Write the FMU of a linear system; arguments are those of LinearSystem. ``version`` is fmi2 or fmi3."""
    try:
        template = reference_path(f"{version}/LinearSystem.fmu")
    except FileError as error:
        pytest.skip(str(error))
    return write_fmu(path, LinearSystem(**system), template)
