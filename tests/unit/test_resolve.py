"""Connections between types, units and shapes; what becomes of inputs that nobody feeds."""

from __future__ import annotations

from typing import Any

import pytest
from python_fmu import Connections, PythonFmu, describe

from fmimaster.base.errors import DescriptionError
from fmimaster.system.model import DataType, Transformation, Unit
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import Link, ResolvedSystem

METRE, MILLIMETRE = Unit("m", (0, 1, 0, 0, 0, 0, 0, 0)), Unit("mm", (0, 1, 0, 0, 0, 0, 0, 0), 1e-3)
KELVIN = Unit("K", (0, 0, 0, 0, 1, 0, 0, 0))
CELSIUS = Unit("degC", (0, 0, 0, 0, 1, 0, 0, 0), 1.0, 273.15)


def resolved(
    connections: Connections,
    output: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    *,
    lossy: bool = False,
) -> ResolvedSystem:
    """``s`` with output y and ``t`` with input u, both with these attributes, connected."""
    units = {
        "s": PythonFmu(outputs={"y": lambda v: 0}, attributes={"y": output or {}}),
        "t": PythonFmu(inputs={"u": 0, "w": 0}, attributes={"u": target or {}}),
    }
    models = {name: unit.model for name, unit in units.items()}
    return resolve(describe(units, connections), models, allow_lossy_conversions=lossy)


def link(*args: Any, connection: Any = "s.y -> t.u", **options: Any) -> Link:
    (found,) = resolved([connection], *args, **options).links
    return found


def test_a_link_names_both_ends_by_index() -> None:
    found = link()
    assert (found.source, found.output.name, found.target, found.input.name) == (0, "y", 1, "u")
    assert found.transformation.is_identity


def test_a_connection_may_be_written_from_the_input_to_the_output() -> None:
    system = resolved(["t.u -> s.y"])
    assert [(k.source, k.target) for k in system.links] == [(0, 1)]
    assert "written from an input to an output" in system.warnings[0]


def test_inputs_that_nobody_feeds_are_open() -> None:
    system = resolved(["s.y -> t.u"])
    assert [(o.target, o.input.name, o.connector) for o in system.open_inputs] == [(1, "w", "")]


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ("s.z -> t.u", r"component 's' has no variable 'z'\. It has y\."),
        ("x.y -> t.u", r"there is no component 'x'"),
        ("t.w -> t.u", r"connects two inputs\. Connect an output with an input\."),
    ],
)
def test_an_end_that_cannot_be_connected_is_refused(connection: str, message: str) -> None:
    with pytest.raises(DescriptionError, match=message):
        resolved([connection])


def test_an_input_has_one_source_only() -> None:
    with pytest.raises(
        DescriptionError, match=r"'t\.u' is already fed by Connection 's\.y -> t\.u'"
    ):
        resolved(["s.y -> t.u", "s.y -> t.u"])


# Types ----------------------------------------------------------------------------------------------------------------

F64, F32, I8, U8, I32, U32, I64, U64, BOOL, STR, BIN = (
    DataType[name]
    for name in [
        "FLOAT64",
        "FLOAT32",
        "INT8",
        "UINT8",
        "INT32",
        "UINT32",
        "INT64",
        "UINT64",
        "BOOLEAN",
        "STRING",
        "BINARY",
    ]
)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (BOOL, I32),
        (BOOL, F64),
        (I32, F64),
        (U32, F64),
        (U8, I32),
        (I32, I64),
        (F32, F64),
        (F64, F32),
    ],
)
def test_a_conversion_that_loses_nothing_is_done_and_noted(
    source: DataType, target: DataType
) -> None:
    found = link({"type": source}, {"type": target})
    assert found.notes[0].startswith(f"{source.value} to {target.value}")


LOSSY = [
    (F64, I32),
    (F32, I8),
    (I64, F64),
    (U64, F64),
    (I32, F32),
    (I64, I32),
    (I32, U32),
    (I32, BOOL),
]


@pytest.mark.parametrize(("source", "target"), LOSSY)
def test_a_conversion_that_can_lose_a_value_is_refused_and_names_the_option(
    source: DataType, target: DataType
) -> None:
    with pytest.raises(DescriptionError, match=r"can lose values\. .*--allow-lossy-conversions"):
        link({"type": source}, {"type": target})


@pytest.mark.parametrize(("source", "target"), LOSSY)
def test_a_conversion_that_can_lose_a_value_may_be_allowed(
    source: DataType, target: DataType
) -> None:
    found = link({"type": source}, {"type": target}, lossy=True)
    assert found.notes == (f"{source.value} to {target.value}, may lose values (allowed)",)


@pytest.mark.parametrize(("source", "target"), [(STR, F64), (F64, STR), (BIN, STR), (BOOL, STR)])
def test_text_and_numbers_are_never_converted(source: DataType, target: DataType) -> None:
    with pytest.raises(DescriptionError, match=r"cannot be converted"):
        link({"type": source}, {"type": target}, lossy=True)


@pytest.mark.parametrize("kind", [STR, BIN, BOOL, I64])
def test_equal_types_need_no_note(kind: DataType) -> None:
    assert link({"type": kind}, {"type": kind}).notes == ()


def test_shapes_must_be_equal() -> None:
    with pytest.raises(DescriptionError, match=r"'y' and 'u' are \(2,\) and scalar"):
        link({"shape": (2,)}, {})


# Transformations and units --------------------------------------------------------------------------------------------


def test_units_are_converted() -> None:
    assert link({"unit": MILLIMETRE}, {"unit": METRE}).transformation == Transformation(1e-3, 0.0)


def test_units_are_converted_before_the_transformation() -> None:
    found = link(
        {"unit": KELVIN},
        {"unit": CELSIUS},
        connection=("s.y -> t.u", {"factor": 2.0, "offset": 1.0}),
    )
    # degC = K - 273.15, then 2 * degC + 1
    assert found.transformation == Transformation(2.0, 2.0 * -273.15 + 1.0)


def test_the_conversion_of_units_can_be_suppressed() -> None:
    connection = ("s.y -> t.u", {"suppress_unit_conversion": True})
    found = link({"unit": MILLIMETRE}, {"unit": KELVIN}, connection=connection)
    assert found.transformation.is_identity


def test_units_that_measure_different_things_are_refused() -> None:
    with pytest.raises(DescriptionError, match="units of different quantities"):
        link({"unit": METRE}, {"unit": KELVIN})


def test_a_linear_transformation_needs_a_floating_point_target() -> None:
    with pytest.raises(DescriptionError, match=r"'u' is Int32\. Transform at a Float64 input"):
        link({"type": I32}, {"type": I32}, connection=("s.y -> t.u", {"factor": 2.0}))


def test_transformations_compose_from_left_to_right() -> None:
    first, second = Transformation(2.0, 1.0), Transformation(-3.0, 5.0)
    assert first.then(second) == Transformation(-6.0, 2.0)
