"""Units, transformations and types on the way over connectors of systems, connection by connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from python_fmu import PythonFmu

from fmimaster.base.errors import DescriptionError
from fmimaster.system.description import (
    Component,
    Connection,
    Connector,
    Endpoint,
    Parameter,
    System,
    SystemDescription,
)
from fmimaster.system.model import Causality, DataType, Source, Transformation, Unit
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import ResolvedSystem

METRE, MILLIMETRE = Unit("m", (0, 1, 0, 0, 0, 0, 0, 0)), Unit("mm", (0, 1, 0, 0, 0, 0, 0, 0), 1e-3)
KELVIN = Unit("K", (0, 0, 0, 0, 1, 0, 0, 0))
CELSIUS = Unit("degC", (0, 0, 0, 0, 1, 0, 0, 0), 1.0, 273.15)


def connect(start: str, end: str, *transformation: float, suppress: bool = False) -> Connection:
    """``"a.y"`` is a variable of a component, ``"v"`` a connector of the system itself."""
    source, target = (Endpoint(*name.rpartition(".")[::2]) for name in (start, end))
    return Connection(source, target, Transformation(*transformation), suppress)


def through(
    outside: Connection,
    inside: Connection,
    *,
    output: dict[str, Any] | None = None,
    connector: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    parameters: tuple[Parameter, ...] = (),
) -> ResolvedSystem:
    """``a.y`` of the root system, connector ``v`` of the system ``s`` in it, and ``u`` of ``s.b``."""
    a = PythonFmu(outputs={"y": lambda v: 0.0}, attributes={"y": output or {}}).model
    b = PythonFmu(inputs={"u": 0.0}, attributes={"u": target or {}}).model
    inner = System(
        "s",
        components=(Component("b", Source(Path("b.fmu"))),),
        connectors=(Connector("v", Causality.INPUT, **(connector or {})),),
        connections=(inside,),
    )
    root = System(
        "root",
        components=(Component("a", Source(Path("a.fmu"))),),
        systems=(inner,),
        connections=(outside,),
        parameters=parameters,
    )
    return resolve(SystemDescription(root), {"a": a, "s.b": b})


def transformation(system: ResolvedSystem) -> Transformation:
    (link,) = system.links
    return link.transformation


OUT, IN = connect("a.y", "s.v"), connect("v", "b.u")


def test_each_connection_converts_and_then_transforms() -> None:
    system = through(
        connect("a.y", "s.v", 1.0, 5.0),
        connect("v", "b.u", 2.0, 1.0),
        output={"unit": METRE},
        connector={"unit": MILLIMETRE},
        target={"unit": METRE},
    )
    # 1000 y + 5 in mm, then 0.001 of it in m, then 2 times that and 1 more
    assert transformation(system).factor == pytest.approx(2.0, rel=1e-15)
    assert transformation(system).offset == pytest.approx(1.01, rel=1e-15)


def test_a_suppressed_conversion_concerns_its_own_connection() -> None:
    suppressed = connect("a.y", "s.v", suppress=True)
    system = through(
        suppressed,
        IN,
        output={"unit": KELVIN},
        connector={"unit": MILLIMETRE},
        target={"unit": METRE},
    )
    assert transformation(system) == Transformation(1e-3)


@pytest.mark.parametrize(
    ("units", "where"),
    [((METRE, KELVIN, METRE), r"a\.y -> s\.v"), ((None, KELVIN, METRE), r"v -> b\.u")],
)
def test_a_wrong_dimension_on_any_connection_is_refused(units: Any, where: str) -> None:
    with pytest.raises(
        DescriptionError, match=f"Connection '{where}': .* units of different quantities"
    ):
        through(
            OUT,
            IN,
            output={"unit": units[0]},
            connector={"unit": units[1]},
            target={"unit": units[2]},
        )


def test_a_wrong_dimension_is_refused_where_nothing_takes_the_value() -> None:
    a = PythonFmu(outputs={"y": lambda v: 0.0}, attributes={"y": {"unit": METRE}}).model
    root = System(
        "root",
        components=(Component("a", Source(Path("a.fmu"))),),
        connectors=(Connector("y", Causality.OUTPUT, unit=KELVIN),),
        connections=(connect("a.y", "y"),),
    )
    with pytest.raises(DescriptionError, match=r"'a\.y -> y': .* units of different quantities"):
        resolve(SystemDescription(root), {"a": a})


def test_a_system_connector_without_a_unit_has_that_of_the_input_it_feeds() -> None:
    first = connect("a.y", "s.v", 1.0, 5.0)
    system = through(first, IN, output={"unit": MILLIMETRE}, target={"unit": METRE})
    assert transformation(system) == Transformation(1e-3, 5.0)


def test_an_output_connector_without_a_unit_has_that_of_its_source() -> None:
    a = PythonFmu(outputs={"y": lambda v: 0.0}, attributes={"y": {"unit": MILLIMETRE}}).model
    b = PythonFmu(inputs={"u": 0.0}, attributes={"u": {"unit": METRE}}).model
    inner = System(
        "s",
        components=(Component("a", Source(Path("a.fmu"))),),
        connectors=(Connector("w", Causality.OUTPUT),),
        connections=(connect("a.y", "w", 1.0, 5.0),),
    )
    root = System(
        "root",
        components=(Component("b", Source(Path("b.fmu"))),),
        systems=(inner,),
        connections=(connect("s.w", "b.u"),),
    )
    (link,) = resolve(SystemDescription(root), {"b": b, "s.a": a}).links
    assert link.transformation == Transformation(1e-3, 5e-3)


def test_values_pass_many_systems_in_the_unit_of_their_source() -> None:
    a = PythonFmu(outputs={"y": lambda v: 0.0}, attributes={"y": {"unit": MILLIMETRE}}).model
    b = PythonFmu(inputs={"u": 0.0, "v": 0.0}, attributes={"u": {"unit": METRE}}).model
    passing = [
        System(
            f"s{k}",
            connectors=(Connector("i", Causality.INPUT), Connector("o", Causality.OUTPUT)),
            connections=(connect("i", "o"),),
        )
        for k in range(1000)
    ]
    ends = ["a.y", *(f"s{k}.{c}" for k in range(1000) for c in "io"), "b.u"]
    pairs = [connect(x, y) for x, y in zip(ends[::2], ends[1::2], strict=True)]
    root = System(
        "root",
        components=(Component("a", Source(Path("a.fmu"))), Component("b", Source(Path("b.fmu")))),
        systems=tuple(passing),
        connections=(*pairs, connect("s500.o", "b.v")),
    )
    u, v = resolve(SystemDescription(root), {"a": a, "b": b}).links
    assert (u.transformation, v.transformation) == (Transformation(1e-3), Transformation())
    assert v.notes == ("mm (0.001 m) to no unit, not compared: passed unchanged",)


def test_an_open_input_is_converted_from_the_unit_of_the_root_connector() -> None:
    b = PythonFmu(inputs={"u": 0.0}, attributes={"u": {"unit": METRE}}).model
    root = System(
        "root",
        components=(Component("b", Source(Path("b.fmu"))),),
        connectors=(Connector("v", Causality.INPUT, unit=MILLIMETRE),),
        connections=(connect("v", "b.u", 2.0),),
    )
    (open_input,) = resolve(SystemDescription(root), {"b": b}).open_inputs
    assert (open_input.connector, open_input.transformation) == ("v", Transformation(2e-3))


def test_a_parameter_is_converted_to_the_unit_of_the_connector_first() -> None:
    system = through(
        OUT,
        connect("v", "b.u", 2.0, 1.0),
        connector={"unit": MILLIMETRE},
        target={"unit": METRE},
        parameters=(Parameter("s.v", 3.0, unit=METRE, transformation=Transformation(1.0, 500.0)),),
    )
    # 3000 + 500 in mm, then 3.5 m, then 2 times that and 1 more
    assert system.components[1].start_values["u"] == pytest.approx([8.0], rel=1e-15)


def test_a_parameter_of_an_output_connector_is_no_start_value_of_what_it_feeds() -> None:
    a = PythonFmu(outputs={"y": lambda v: 0.0}).model
    b = PythonFmu(inputs={"u": 0.0}).model
    inner = System(
        "s",
        components=(Component("a", Source(Path("a.fmu"))),),
        connectors=(Connector("w", Causality.OUTPUT),),
        connections=(connect("a.y", "w"),),
        parameters=(Parameter("w", 3.0),),
    )
    root = System(
        "root",
        components=(Component("b", Source(Path("b.fmu"))),),
        systems=(inner,),
        connections=(connect("s.w", "b.u"),),
    )
    found = resolve(SystemDescription(root), {"b": b, "s.a": a})
    assert [dict(c.start_values) for c in found.components] == [{}, {}]
    assert found.notes == ("parameters fit nothing in the system and are ignored: 's.w'.",)


@pytest.mark.parametrize(
    ("first", "second"), [((float("nan"),), ()), ((1e300,), (1e300,)), ((1.0, float("inf")), ())]
)
def test_a_transformation_that_is_no_finite_number_is_refused(first: Any, second: Any) -> None:
    with pytest.raises(DescriptionError, match=r"'v -> b\.u': all units and .* Expected finite"):
        through(connect("a.y", "s.v", *first), connect("v", "b.u", *second))


def test_a_start_value_is_not_transformed_to_infinity() -> None:
    parameter = Parameter("u", 1.0, transformation=Transformation(float("inf")), where="File a")
    parts = (Component("b", Source(Path("b.fmu")), parameters=(parameter,)),)
    b = PythonFmu(inputs={"u": 0.0}).model
    with pytest.raises(DescriptionError, match=r"^File a: all units and .* factor inf"):
        resolve(SystemDescription(System("root", components=parts)), {"b": b})


# Differences ----------------------------------------------------------------------------------------------------------


def test_differences_are_converted_without_the_offset() -> None:
    system = through(
        OUT,
        IN,
        output={"unit": KELVIN, "relative_quantity": True},
        connector={"unit": CELSIUS},
        target={"unit": CELSIUS, "relative_quantity": True},
    )
    assert transformation(system).is_identity


def test_a_difference_is_not_connected_with_a_value() -> None:
    output = {"unit": KELVIN, "relative_quantity": True}
    with pytest.raises(DescriptionError, match=r"'y' is a difference and 'u' is none .*relativeQ"):
        through(OUT, IN, output=output, target={"unit": CELSIUS})
    suppressed = connect("v", "b.u", suppress=True)
    assert transformation(
        through(OUT, suppressed, output=output, target={"unit": CELSIUS})
    ).is_identity
    # without units there is no offset that could be wrong
    through(OUT, IN, output={"relative_quantity": True}, target={"unit": CELSIUS})


def test_a_start_value_of_a_difference_is_converted_without_the_offset() -> None:
    b = PythonFmu(inputs={"u": 0.0}, attributes={"u": {"unit": KELVIN, "relative_quantity": True}})
    parts = (
        Component("b", Source(Path("b.fmu")), parameters=(Parameter("u", 10.0, unit=CELSIUS),)),
    )
    (found,) = resolve(
        SystemDescription(System("root", components=parts)), {"b": b.model}
    ).components
    assert found.start_values["u"] == [10.0]


# What the connectors say ----------------------------------------------------------------------------------------------


def test_connectors_that_contradict_their_fmu_are_notes_of_one_line_for_each_kind() -> None:
    names = [f"y{k}" for k in range(20)]
    a = PythonFmu(
        outputs={n: lambda v: 0.0 for n in names},
        inputs={"u": 0.0, "w": 0.0},
        states={"x": 0.0},
        attributes={"y0": {"unit": METRE}, "y1": {"shape": (2, 3), "dimensions": (2, 3)}},
    ).model
    connectors = [Connector(n, Causality.OUTPUT, DataType.INT32) for n in names]
    connectors[0] = Connector("y0", Causality.OUTPUT, DataType.FLOAT64, MILLIMETRE)
    connectors[1] = Connector("y1", Causality.OUTPUT, dimensions=(3, None))
    connectors.append(Connector("u", Causality.PARAMETER))
    connectors.append(Connector("z", Causality.INPUT))
    connectors.append(Connector("x", Causality.OUTPUT))  # a local variable can be connected
    connectors.append(Connector("w", Causality.LOCAL))  # inout or unspecified
    part = Component("a", Source(Path("a.fmu")), tuple(connectors))
    found = resolve(SystemDescription(System("root", components=(part,))), {"a": a})
    said = "connectors are declared with another {} than in the FMU, whose declaration is used: "
    assert found.notes == (
        said.format("unit") + "'a.y0' (mm (0.001 m); the FMU: m (m)).",
        said.format("dimension") + "'a.y1' (3 x ?; the FMU: 2 x 3).",
        said.format("type")
        + ", ".join(f"'a.y{k}' (Int32; the FMU: Float64)" for k in range(2, 10))
        + " and 10 more.",
        said.format("kind") + "'a.u' (parameter; the FMU: input).",
        "connectors are not variables of their FMU and are ignored: 'a.z'.",
    )


def test_a_system_connector_of_another_type_is_a_note() -> None:
    system = through(OUT, IN, connector={"type": DataType.INT32})
    assert transformation(system).is_identity
    assert len(system.notes) == 1
    assert "'s.v' (Int32; 'a.y': Float64), 's.v' (Int32; 's.b.u': Float64)" in system.notes[0]


# Two names of one input -----------------------------------------------------------------------------------------------


def test_two_sources_of_one_input_are_refused_though_it_has_two_names() -> None:
    a = PythonFmu(outputs={"y": lambda v: 0.0, "z": lambda v: 0.0}).model
    b = PythonFmu(
        inputs={"u": 0.0, "alias": 0.0}, attributes={"alias": {"value_reference": 0}}
    ).model
    root = System(
        "root",
        components=(Component("a", Source(Path("a.fmu"))), Component("b", Source(Path("b.fmu")))),
        connections=(connect("a.y", "b.u"), connect("a.z", "b.alias")),
    )
    with pytest.raises(
        DescriptionError,
        match=r"'b\.u' and 'b\.alias' are two names of one input \(value reference 0\), and 'a\.y' feeds the one, "
        r"'a\.z' the other",
    ):
        resolve(SystemDescription(root), {"a": a, "b": b})


# Time -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "outcome"),
    [
        (None, ""),
        (Unit("s", (0, 0, 1, 0, 0, 0, 0, 0)), ""),
        (Unit("seconds", (0, 0, 1, 0, 0, 0, 0, 0)), ""),
        (Unit("s"), ""),
        (Unit("s", (0,) * 8), ""),
        (Unit("min"), "s is assumed: 'a.time' (min)"),
    ],
)
def test_time_in_seconds_is_taken_and_an_unexplained_unit_noted(unit: Any, outcome: str) -> None:
    notes = timed(unit).notes
    assert (len(notes) == 1 and outcome in notes[0]) if outcome else notes == ()


@pytest.mark.parametrize(
    "unit",
    [
        Unit("ms", (0, 0, 1, 0, 0, 0, 0, 0), 1e-3),
        Unit("h", (0, 0, 1, 0, 0, 0, 0, 0), 3600.0),
        Unit("rad", (0, 0, 0, 0, 0, 0, 0, 1)),
    ],
)
def test_time_in_another_unit_is_refused(unit: Unit) -> None:
    with pytest.raises(
        DescriptionError, match=rf"Component 'a': the unit of time, 'time', is {unit.name}.*Exp.* s"
    ):
        timed(unit)


def timed(unit: Unit | None) -> ResolvedSystem:
    attributes = {"time": {"causality": Causality.INDEPENDENT, "unit": unit}}
    a = PythonFmu(states={"time": 0.0}, attributes=attributes).model
    part = Component("a", Source(Path("a.fmu")))
    return resolve(SystemDescription(System("root", components=(part,))), {"a": a})


def test_a_scalar_feeds_an_array_of_one_element() -> None:
    system = through(OUT, IN, target={"dimensions": (1,), "shape": (1,)})
    [link] = system.links
    assert (link.output.shape, link.input.shape) == ((), (1,))
