"""FMI layered standards that are understood: one file each, with a function ``extend(manifest, model)``.

It takes the manifest in the FMU, None if there is none, and the model of the FMU, and returns the model with what the
layered standard adds to it. A manifest that breaks a rule is a :class:`ModelError`; the FMU then runs without it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fmimaster.fmu.extensions import events
from fmimaster.fmu.manifest import Manifest
from fmimaster.system.model import Model


@dataclass(frozen=True, slots=True)
class Extension:
    """A layered standard that is understood."""

    ending: str
    """Of the names of its manifests, whatever their publisher."""
    extend: Callable[[Manifest | None, Model], Model]


EXTENSIONS: tuple[Extension, ...] = (Extension(events.ENDING, events.extend),)
