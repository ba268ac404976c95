"""The form of a manifest of ``fmi-ls-events``, the same as in its schema, docs/proposal/schema/."""

from __future__ import annotations

from collections.abc import Mapping

from fmimaster.system.xml_form import (
    ANNOTATIONS,
    ANY,
    AT_LEAST_ONE,
    AT_MOST_ONE,
    BOOLEAN,
    INT,
    NAME,
    Form,
    between,
    one_of,
)

_EXTENSION = {"Annotations": AT_MOST_ONE}
FORMS: Mapping[str, Form] = ANNOTATIONS | {
    "fmiLayeredStandardManifest": Form(
        inside={
            "Event": ANY,
            "Policy": AT_MOST_ONE,
            "LookAhead": AT_MOST_ONE,
            "InputPolynomial": ANY,
        }
        | _EXTENSION
    ),
    "Event": Form(
        {"name": NAME, "scope": one_of("private", "shared")},
        {"announce": NAME, "trigger": NAME, "rightLimitsWithoutStep": BOOLEAN},
        {"Indicator": AT_LEAST_ONE, "Payload": ANY} | _EXTENSION,
    ),
    "Indicator": Form(
        {"name": NAME}, {"derivative": NAME, "tolerance": between(0.0, 1.0)}, _EXTENSION
    ),
    "Payload": Form({"output": NAME, "input": NAME}, {"member": NAME}, _EXTENSION),
    "Policy": Form(
        {"parameter": NAME, "execute": INT, "announce": INT}, {"ignore": INT}, _EXTENSION
    ),
    "LookAhead": Form({"next": NAME}, {}, _EXTENSION),
    "InputPolynomial": Form(
        {"input": NAME, "coefficients": NAME},
        {"derivative": NAME, "parameter": NAME, "value": INT},
        _EXTENSION,
    ),
}
"""The form of each element by its name, as in fmi3LayeredStandardEventsManifest.xsd."""
