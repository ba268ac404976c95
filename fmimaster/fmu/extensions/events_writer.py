"""Writes the manifest of ``fmi-ls-events``."""

from __future__ import annotations

import re
from typing import Any

from lxml import etree  # type: ignore[import-untyped,unused-ignore]

from fmimaster.base.errors import OptionError
from fmimaster.fmu.extensions.events import NAME, VERSION, EventManifest
from fmimaster.fmu.manifest import NAMESPACE
from fmimaster.system.declarations import InputPolynomial

_DESCRIPTION = "Event indicator sets, shared events, look-ahead"


def write_manifest(content: EventManifest) -> bytes:
    """Write the manifest as a file; reading the file gives the same manifest.

    Raises
    ------
    OptionError
        If coefficients of an input polynomial are neither one array nor scalars ``stem[0]``, ``stem[1]``, ….
    """
    root: Any = etree.Element("fmiLayeredStandardManifest", nsmap={"fmi-ls": NAMESPACE})
    root.set(f"{{{NAMESPACE}}}fmi-ls-name", NAME)
    root.set(f"{{{NAMESPACE}}}fmi-ls-version", f"{VERSION[0]}.{VERSION[1]}.0")
    root.set(f"{{{NAMESPACE}}}fmi-ls-description", _DESCRIPTION)
    for event in content.events:
        element = _add(
            root,
            "Event",
            name=event.name,
            scope=event.scope.value,
            announce=event.announce,
            trigger=event.trigger,
            rightLimitsWithoutStep="true" if event.right_limits_without_step else None,
        )
        for i in event.indicators:
            _add(element, "Indicator", name=i.name, derivative=i.derivative, tolerance=i.tolerance)
        for p in event.payload:
            _add(element, "Payload", output=p.output, input=p.input, member=p.member)
    if content.policy is not None:
        policy = content.policy
        values = {
            "execute": policy.execute,
            "announce": policy.announce,
            "ignore": policy.ignore,
        }
        _add(root, "Policy", parameter=policy.parameter, **values)
    if content.look_ahead is not None:
        _add(root, "LookAhead", next=content.look_ahead)
    for polynomial in content.input_polynomials:
        _add(
            root,
            "InputPolynomial",
            input=polynomial.input,
            derivative=polynomial.derivative,
            coefficients=_stem(polynomial),
            parameter=polynomial.parameter,
            value=polynomial.value,
        )
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
    return text


def _add(parent: Any, tag: str, /, **attributes: str | float | None) -> Any:
    """A new element; attributes that are None are left out."""
    given = {key: str(value) for key, value in attributes.items() if value is not None}
    return etree.SubElement(parent, tag, given)


def _stem(polynomial: InputPolynomial) -> str:
    names = polynomial.coefficients
    if len(names) == 1 and not names[0].endswith("[0]"):
        return names[0]
    stem = re.sub(r"\[0\]$", "", names[0]) if names else ""
    if not names or names != tuple(f"{stem}[{k}]" for k in range(len(names))):
        raise OptionError(
            f"The coefficients {names} of the input polynomial of '{polynomial.input}' have no common name. Expected one "
            "array, or scalars with the names stem[0], stem[1], …."
        )
    return stem
