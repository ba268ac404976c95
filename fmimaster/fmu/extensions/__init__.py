"""Supported FMI layered standards: one file each, with a function ``extend(manifest, model)``.

Its arguments are the manifest in the FMU (None if there is none) and the model of the FMU; it returns the model with
the additions of the layered standard. An invalid manifest raises a :class:`ModelError`; the FMU then runs without it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fmimaster.fmu.extensions import events, references
from fmimaster.fmu.manifest import Manifest
from fmimaster.system.model import Model


@dataclass(frozen=True, slots=True)
class Extension:
    """A supported layered standard."""

    ending: str
    """Last part of the names of its manifests, for any publisher."""
    extend: Callable[[Manifest | None, Model], Model]


EXTENSIONS: tuple[Extension, ...] = (
    Extension(events.ENDING, events.extend),
    Extension(references.ENDING, references.extend),
)
