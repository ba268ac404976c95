"""Experiment of an SSD, and the settings that tools leave in annotations."""

from __future__ import annotations

import math
from collections.abc import Iterable

from fmimaster.base.errors import DescriptionError, FileError, did_you_mean
from fmimaster.system import ssp_events
from fmimaster.system.description import Experiment
from fmimaster.system.notes import meant
from fmimaster.system.ssp_annotations import CONSTRAINTS, POWER_BONDS, SEQUENCE
from fmimaster.system.ssp_document import Document
from fmimaster.system.xml import Element, child, children, local_name, location, value_of

_OURS = "org.fmimaster"
_SIMULATION = "Simulation"
_SETTINGS = ("stepSize", "tolerance")
"""Attributes of the element in our annotation."""
_ANNOTATIONS = (
    _OURS,
    CONSTRAINTS.type,
    ssp_events.ANNOTATION,
    POWER_BONDS.type,
    SEQUENCE.type,
)
"""Types of all annotations of fmimaster."""
_NEAR_TYPE = 0.9
"""Share of equal letters from which a type is treated as misspelt; types of other publishers differ by more."""
_STEP_SIZES = (
    (_OURS, _SIMULATION, "stepSize"),
    ("com.opensimulationplatform", "FixedStepAlgorithm", "baseStepSize"),
    ("org.openmodelica", "FixedStepMaster", "stepSize"),
)
"""Places where tools write the step size: type of annotation, element in it, attribute. The first one present is
used."""
_TOLERANCES = ((_OURS, _SIMULATION, "tolerance"),)


def read_experiment(document: Document) -> Experiment:
    """Start and stop time; step size and tolerance from an annotation of fmimaster, or the step size from that of a
    known tool.

    Annotations of the root system, of the default experiment and of the whole description are read.
    All others are ignored, with a note for each type.
    """
    root = document.root
    default = child(root, "DefaultExperiment")
    tolerance, used = _first(document, _TOLERANCES)
    step_size, also_used = _first(document, _STEP_SIZES)
    for element in root.iter():
        if local_name(element) != "Annotation":
            continue
        is_read = element in (used, also_used) or any(
            element is a for a in document.read_annotations
        )
        kind = element.get("type") or ""
        if kind == _OURS or not is_read:
            _refuse_misspelt(element, kind)
        if not is_read:
            document.note(element, f"annotations of type '{kind}' are ignored")
    if default is None:
        return Experiment(step_size=step_size, tolerance=tolerance)
    return Experiment(
        start_time=value_of(default, "startTime", float, None),
        stop_time=value_of(default, "stopTime", float, None),
        step_size=step_size,
        tolerance=tolerance,
    )


def _refuse_misspelt(annotation: Element, kind: str) -> None:
    """Refuse misspelt names in an annotation of fmimaster, and a misspelt type of such an annotation.

    Raises
    ------
    DescriptionError
    """
    if kind == _OURS:
        for element in annotation:
            _check_settings(element)
    elif kind not in _ANNOTATIONS and (near := meant(kind, _ANNOTATIONS, _NEAR_TYPE)) is not None:
        raise DescriptionError(
            f"{location(annotation)}: type '{kind}' of an Annotation is not known. Did you mean '{near}'?"
        )


def _check_settings(element: Element) -> None:
    name = local_name(element)
    if name != _SIMULATION:
        raise DescriptionError(
            f"{location(element)}: element '{name}' of an annotation of type '{_OURS}' is not known. Expected "
            f"{_SIMULATION}."
        )
    for attribute in element.attrib:
        if attribute not in _SETTINGS:
            raise DescriptionError(
                f"{location(element)}: attribute '{attribute}' of {name} is not known."
                f"{did_you_mean(attribute, _SETTINGS)} Expected {' or '.join(_SETTINGS)}."
            )


def _first(
    document: Document, choices: Iterable[tuple[str, str, str]]
) -> tuple[float | None, Element | None]:
    """The number in the first of these annotations, and the annotation."""
    inside = [
        (annotation, element)
        for path in (("DefaultExperiment",), ("System",), ())
        for annotation in children(document.root, *path, "Annotations", "Annotation")
        for element in annotation.iter()
    ]
    for kind, name, attribute in choices:
        for annotation, element in inside:
            if annotation.get("type") != kind or local_name(element) != name:
                continue
            if element.get(attribute) is not None:
                value = _positive(element, attribute)
                if kind != _OURS:
                    said = f"{name} of '{kind}'"
                    document.note(element, f"step size {value:g} s is read from {said}")
                return value, annotation
    return None, None


def _positive(element: Element, name: str) -> float:
    value = value_of(element, name, float, 0.0)
    if not 0 < value < math.inf:
        raise FileError(
            f"{location(element)}: attribute '{name}' of {local_name(element)} is {value:g}, "
            "expected a number above 0."
        )
    return value
