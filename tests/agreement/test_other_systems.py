"""The reference FMUs and systems give the same results on another system, such as Linux and Windows.

    python tests/agreement/test_other_systems.py FOLDER      on the one system writes a file for each
    FMIMASTER_RESULTS_OF_OTHER_SYSTEM=FOLDER pytest …        on the other one compares

`tools/windows.py` does both.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from fmimaster import FmimasterError, Results, Simulation, reference_path
from fmimaster.base.installation import reference_names
from fmimaster.run.executor import Backend

VARIABLE = "FMIMASTER_RESULTS_OF_OTHER_SYSTEM"
ROUNDED = {
    "systems/quarter-car-b-nonlinear-fmi3.ssp",
    *(f"systems/two-mass-b2-{fmus}.ssp" for fmus in ("fmi2", "fmi3", "mixed")),
}
"""These call ``pow``, ``sin`` or ``cos`` in an FMU, which each C library rounds in its own way."""
ROUNDING = 4 * float(np.finfo(float).eps)
"""By which their results may differ, as a part of the largest magnitude of the column."""


def write(name: str, file: Path, backend: Backend) -> None:
    """The results of a run that names no method, or the kind of error that it ends with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = Simulation(reference_path(name), backend=backend).run()
        except FmimasterError as error:
            file.write_text(type(error).__name__, encoding="utf-8")
        else:
            results.write(file)


def written(folder: Path, name: str) -> Path:
    """Where the results of a reference FMU or system are."""
    return folder / f"{name.replace('/', '-')}.csv"


@pytest.mark.skipif(VARIABLE not in os.environ, reason="there are no results of another system")
@pytest.mark.parametrize("name", reference_names())
def test_the_results_are_those_of_the_other_system(
    name: str, backend: Backend, tmp_path: Path
) -> None:
    here, there = tmp_path / "here.csv", written(Path(os.environ[VARIABLE]), name)
    write(name, here, backend)
    if here.read_bytes() != there.read_bytes():
        assert name in ROUNDED
        ours, others = Results.read(here), Results.read(there)
        assert [*ours.names] == [*others.names]
        for signal in ours.names:
            most = np.max(np.abs(others[signal]))
            np.testing.assert_allclose(ours[signal], others[signal], rtol=0, atol=ROUNDING * most)


if __name__ == "__main__":
    for reference in reference_names():
        write(reference, written(Path(sys.argv[1]), reference), Backend.NATIVE)
