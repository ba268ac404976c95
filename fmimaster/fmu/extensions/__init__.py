"""FMI layered standards that are understood: one file each, with a function ``extend(fmu, model)``.

It takes the unpacked FMU and its model, and gives the model with what the layered standard adds to it; the model as it is
if the FMU does not use it.
"""

from collections.abc import Callable

from fmimaster.fmu.extensions import events
from fmimaster.fmu.manifest import UnpackedFmu
from fmimaster.system.model import Model

EXTENSIONS: tuple[Callable[[UnpackedFmu, Model], Model], ...] = (events.extend,)
