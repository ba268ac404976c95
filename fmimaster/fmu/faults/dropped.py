"""An instance that no longer takes part in the run when its process is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from fmimaster.base.errors import FmuLostError
from fmimaster.fmu.faults.surviving import SurvivingInstance
from fmimaster.fmu.instance import Instance
from fmimaster.program.fault_marks import mark_name

log = logging.getLogger("fmimaster")

_Answer = TypeVar("_Answer")


class DroppedInstance(SurvivingInstance):
    """An instance around another one; when that is lost, its outputs keep the values that were read last.

    It then does no steps, requests no events, and its clocks do not tick. An instance that is lost before its
    first step has no outputs that could be kept: that is an error.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """When and why it was dropped."""
        return (*super().warnings, *self._warnings)

    def _lost(
        self, error: FmuLostError, call: Callable[[], _Answer], otherwise: Callable[[], _Answer]
    ) -> _Answer:
        if not self._steps:
            raise error
        time = self.clock()
        when = "" if time is None else f" at t = {time:.12g} s"
        text = (
            f"'{self.name}' was dropped{when}: its process {error.how} in {error.function}. Its outputs keep their "
            f"last values; the column '{mark_name(self.name)}' is 1 in these rows."
        )
        log.warning("%s", text)
        self._warnings = (text,)
        self._is_dropped = True
        return otherwise()
