"""The end of a run that did not reach it: the FMUs that can are terminated, so their files are complete."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError, SimulationError
from fmimaster.fmu.instance import Instance

log = logging.getLogger("fmimaster")


def terminate_others(
    instances: Sequence[Instance], initialized: NDArray[np.uint8], error: BaseException
) -> None:
    """Terminate all instances but the one whose call has failed: FMI allows it no further call that computes. Never raises
    a SimulationError.

    Parameters
    ----------
    initialized : shape (n_instances,)
        Which instances are in Step Mode or in Event Mode, where FMI allows ``Terminate``.
    """
    failed = error.instance if isinstance(error, CallError) else None
    for instance, is_initialized in zip(instances, initialized, strict=True):
        if not is_initialized or instance.name == failed:
            continue
        try:
            instance.terminate()
        except SimulationError as later:
            log.warning("%s", str(later))
