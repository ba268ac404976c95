"""An image that is loaded into this process, and run many times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError
from fmimaster.export.image import ImageVariable
from fmimaster.export.parts import image_of, variable_of
from fmimaster.fmu.process_state import fmu_output_to_log
from fmimaster.kernel._kernel import ffi, lib
from fmimaster.plan.variables import Recorded
from fmimaster.session.session import Session


class LoadedSystem:
    """A system whose runs differ in start values.

    Parameters
    ----------
    session : Session
        That has not begun; it is not needed any more.
    folders : sequence of str
        Of the FMUs of its instances, which stay.
    folder : Path
        For the image.
    varied : sequence of (str, str)
        Component and variable that gets a value in each run.
    columns : sequence of Recorded
        What is kept of each row.
    shape : (int, int)
        Number of rows, and number of intervals of the grid between two of them.

    Raises
    ------
    OptionError
        If it cannot be loaded.
    """

    def __init__(
        self,
        session: Session,
        folders: Sequence[str],
        folder: Path,
        varied: Sequence[tuple[str, str]],
        columns: Sequence[Recorded],
        shape: tuple[int, int],
    ) -> None:
        self.said: list[str] = []
        self._handle = ffi.new_handle(self)
        n, self._row = len(varied), (shape[0], len(columns))
        variables = [variable_of(session.plan, *name) for name in varied]
        variables += [_recorded(column) for column in columns]
        (folder / "system.image").write_bytes(image_of(session, folders, variables))
        path, name = str(folder).encode(), session.prepared.description.system.name.encode()
        self._system = lib.fm_system_new(path, name, False, lib.fm_python_log, self._handle)
        if not self._system:
            raise OptionError("The system cannot be loaded: " + "; ".join(self.said))
        self._set = ffi.new("uint32_t[]", [*range(n)])
        self._get = ffi.new("uint32_t[]", [*range(n, len(variables))])
        experiment = session.start.seconds, session.stop.seconds, True
        sizes = n, len(columns), *shape
        self._sweep = ffi.new("fm_sweep *", (experiment, *sizes, self._set, self._get))

    def runs(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Make a run with each row of values; what is said is in ``said``.

        Returns
        -------
        The rows, shape (runs, rows, columns), NaN from a failure on; and whether each run has failed.
        """
        n = len(values)
        rows, statuses = np.empty((n, *self._row)), np.zeros(n, np.intc)
        self.said.clear()
        with fmu_output_to_log():
            lib.fm_system_sweep(
                self._system,
                self._sweep,
                n,
                ffi.from_buffer("double[]", np.ascontiguousarray(values)),
                ffi.from_buffer("double[]", rows),
                ffi.from_buffer("int[]", statuses),
            )
        return rows, statuses > lib.FM_WARNING

    def hear(self, status: int, text: str) -> None:
        """Keep what the system or an FMU says."""
        if status > lib.FM_WARNING:
            self.said.append(text)

    def free(self) -> None:
        """Free the FMUs."""
        system, self._system = self._system, ffi.NULL
        lib.fm_system_free(system)


@ffi.def_extern("fm_python_log")  # type: ignore[untyped-decorator]
def _log(environment: Any, status: int, _category: Any, text: Any) -> None:
    ffi.from_handle(environment).hear(status, ffi.string(text).decode("utf-8", "replace"))


def _recorded(column: Recorded) -> ImageVariable:
    """A column as a variable whose value lies in the value store."""
    return ImageVariable(column.instance or 0, column.type, 0, 1, (column.type, column.slot))
