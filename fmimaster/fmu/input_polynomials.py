"""The layered standard ``fmi-ls-input-polynomials``: inputs of an FMU that take the coefficients of a polynomial.

docs/proposal/input-polynomials/ has its text. The same element may be in a manifest of ``fmi-ls-events``, where it was
up to version 0.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fmimaster.base.errors import ModelError, did_you_mean
from fmimaster.fmu.manifest import Manifest, ManifestReader, Role
from fmimaster.system.declarations import InputPolynomial
from fmimaster.system.model import Causality, DataType, Model
from fmimaster.system.xml import Element, text_of, value_of
from fmimaster.system.xml_form import ANNOTATIONS, ANY, AT_MOST_ONE, INT, NAME, Form

ENDING = ".fmi-ls-input-polynomials"
"""Last part of the names of all manifests that are read."""
STANDARD = "org.fmimaster" + ENDING
VERSION = (0, 3)
"""Major and minor version that is written; all of this major version are read."""

_FLOAT64, _INPUT = frozenset({DataType.FLOAT64}), frozenset({Causality.INPUT})
_POLYNOMIAL_INPUT = Role("a continuous Float64 input", _FLOAT64, _INPUT, continuous=True)
_COEFFICIENT = Role("Float64 inputs", _FLOAT64, _INPUT, scalar=False)
INTEGER_PARAMETER = Role(
    "an integer parameter",
    frozenset(t for t in DataType if t.is_integer),
    frozenset({Causality.PARAMETER}),
)

_EXTENSION = {"Annotations": AT_MOST_ONE}
POLYNOMIAL = Form(
    {"input": NAME, "coefficients": NAME},
    {"derivative": NAME, "parameter": NAME, "value": INT},
    _EXTENSION,
)
"""The form of an ``InputPolynomial``, in both manifests."""


class _Reader(ManifestReader):
    """Reads a manifest and collects all errors in it."""

    forms = ANNOTATIONS | {
        "fmiLayeredStandardManifest": Form(inside={"InputPolynomial": ANY} | _EXTENSION),
        "InputPolynomial": POLYNOMIAL,
    }
    known_version = VERSION


def extend(manifest: Manifest | None, model: Model) -> Model:
    """The model with the input polynomials of its manifest, after those of its manifest of events.

    Raises
    ------
    ModelError
        If it is invalid (the message lists all errors), or if it has an unknown version.
    """
    if manifest is None:
        return model
    manifest.expect("fmi-ls-input-polynomials", VERSION[0])
    reader = _Reader(manifest, model)
    taken = {p.input for p in model.input_polynomials}
    polynomials = read_polynomials(reader, list(reader.sound()), taken)
    if reader.problems:
        raise ModelError(*reader.problems)
    return replace(
        model,
        input_polynomials=(*model.input_polynomials, *polynomials),
        notes=(*model.notes, *reader.notes),
    )


def read_polynomials(
    reader: ManifestReader, elements: Sequence[Element], taken: set[str] | None = None
) -> tuple[InputPolynomial, ...]:
    """The polynomials of these elements. What is wrong with them becomes problems of the reader.

    Parameters
    ----------
    taken
        Inputs that have a polynomial already.
    """
    polynomials = tuple(_polynomial(reader, element) for element in elements)
    _check_unique_inputs(reader, elements, taken or set())
    return polynomials


def _polynomial(reader: ManifestReader, element: Element) -> InputPolynomial:
    name = text_of(element, "input")
    what = f"InputPolynomial of '{name}'"
    value = value_of(element, "value", int, None)
    if (value is None) != (element.get("parameter") is None):
        reader.wrong(
            element,
            f"{what} has one of parameter and value. Expected both, or none if the coefficients are always used",
        )
    return InputPolynomial(
        reader.variable(element, "input", _POLYNOMIAL_INPUT, what),
        _coefficients(reader, element, what),
        reader.optional(element, "derivative", _POLYNOMIAL_INPUT, what),
        reader.optional(element, "parameter", INTEGER_PARAMETER, what),
        value,
    )


def _coefficients(reader: ManifestReader, element: Element, what: str) -> tuple[str, ...]:
    model, stem = reader.model, text_of(element, "coefficients")
    array = model.variable(stem)
    names = [stem] if array is not None else list(_numbered(model, stem))
    if not names:
        known = [
            v.name.removesuffix("[0]")
            for v in model.variables
            if v.dimensions or v.name.endswith("[0]")
        ]
        reader.wrong(
            element,
            f"{what}: coefficients='{stem}' is not a variable of the FMU, and there is no "
            f"'{stem}[0]'.{did_you_mean(stem, known)} Expected an array of {_COEFFICIENT.words}, or the common start "
            "of the names of scalar ones that are numbered from [0]",
        )
    elif array is not None and len(array.dimensions) != 1:
        reader.wrong(
            element,
            f"{what}: '{stem}' has {len(array.dimensions)} dimensions. Expected an array with one dimension, lowest "
            "power first",
        )
    for name in names:
        reader.check_role(element, name, _COEFFICIENT, f"{what}: coefficients")
    return tuple(names)


def _numbered(model: Model, stem: str) -> Iterator[str]:
    power = 0
    while model.variable(f"{stem}[{power}]") is not None:
        yield f"{stem}[{power}]"
        power += 1


def _check_unique_inputs(
    reader: ManifestReader, elements: Sequence[Element], taken: set[str]
) -> None:
    seen = set(taken)
    for element in elements:
        for attribute in ("input", "derivative"):
            name = element.get(attribute)
            if name in seen:
                reader.wrong(
                    element,
                    f"there is an InputPolynomial for '{name}' already. An input has one polynomial",
                )
            elif name is not None:
                seen.add(name)
