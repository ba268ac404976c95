"""Where power bonds are declared: in an SSD, in Python, by the FMUs (energy.md 7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from command_line import changed
from python_fmu import PythonFmu
from quarter_car_units import CHASSIS, SUSPENSION, WHEEL
from ssd_text import annotated, component, elements, read, ssd, write_power_bonds

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.fmu.description.terminals import ANNOTATION, FILE, NAMESPACE
from fmimaster.fmu.library import FmuFile
from fmimaster.front.simulation import Simulation
from fmimaster.system.declarations import PowerPort
from fmimaster.system.description import Port, PowerBond
from fmimaster.system.model import Source

# SSD

BOTH = elements(component("chassis"), component("wheel"))


def annotation(inside: str) -> str:
    return annotated(f'<ssc:Annotation type="{ANNOTATION}">{inside}</ssc:Annotation>')


@pytest.mark.parametrize(
    "bond", [SUSPENSION, PowerBond("a & b", (CHASSIS, replace(WHEEL, power="out")))]
)
def test_a_bond_that_is_written_is_read_again(tmp_path: Path, bond: PowerBond) -> None:
    described = read(tmp_path, ssd(BOTH + annotation(write_power_bonds([bond]))))
    assert described.system.power_bonds == (bond,)
    assert "s.ssd, line" in described.system.power_bonds[0].where
    assert described.notes == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('power="in"', 'power="inwards"'), "expected in or out"),
        (('scale="750.0"', 'scale="0"'), "expected a number above 0"),
        (('input="force"', ""), "attribute 'input' of Port is missing"),
        (("PowerBonds", "PowerBond"), "expected PowerBonds in the namespace"),
        (('version="1.0"', 'version="2.0"'), "expected a version 1.x"),
    ],
)
def test_a_wrong_annotation_is_refused_with_its_line(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    text = write_power_bonds([SUSPENSION]).replace(*change)
    with pytest.raises(FileError, match=r"s\.ssd, line \d+: ") as caught:
        read(tmp_path, ssd(BOTH + annotation(text)))
    assert message in str(caught.value)


def test_a_bond_of_a_nested_system_has_full_names(tmp_path: Path) -> None:
    inside = BOTH + annotation(write_power_bonds([SUSPENSION]))
    nested = f'<ssd:System name="corner">{inside}</ssd:System>'
    (bond,) = read(tmp_path, ssd(elements(nested))).power_bonds()
    assert bond.name == "corner.suspension"
    assert bond.ports[0] == Port("corner.chassis", "force", "velocity", "in")


# FMUs -----------------------------------------------------------------------------------------------------------------


def fmu_with(
    tmp_path: Path, name: str, version: str, *, annotation: str = "", terminal: str = ""
) -> Path:
    """A reference FMU that declares a port."""
    text = f'<PowerPorts xmlns="{NAMESPACE}" version="1.0">{annotation}</PowerPorts>'
    if version == "fmi2":
        tag, text = "VendorAnnotations", f'<Tool name="{ANNOTATION}">{text}</Tool>'
        before = "<ModelVariables>"
    else:
        tag, text = "Annotations", f'<Annotation type="{ANNOTATION}">{text}</Annotation>'
        before = "</fmiModelDescription>"
    whole = f"<{tag}>{text}</{tag}>" if annotation else ""
    terminals = (
        "<fmiTerminalsAndIcons fmiVersion='3.0'><Terminals><Terminal name='strut' matchingRule='plug'>"
        f"{terminal}</Terminal></Terminals></fmiTerminalsAndIcons>"
    )
    return changed(
        reference_path(f"{version}/QuarterCar{name.title()}A.fmu"),
        tmp_path / f"{name}.fmu",
        description=lambda d: d.replace(before, whole + before),
        members={FILE: terminals.encode()} if terminal else {},
    )


def quarter_car(chassis: Path, wheel: Path) -> SystemBuilder:
    builder = SystemBuilder("quarter car")
    builder.add("chassis", chassis)
    builder.add("wheel", wheel)
    builder.connect("chassis.velocity", "wheel.velocity")
    builder.connect("wheel.force", "chassis.force", factor=-1.0)
    return builder


def members(force: str, velocity: str) -> str:
    """A terminal with these kinds of variables."""
    kinds = {"force": force, "velocity": velocity}
    return "".join(
        f"<TerminalMemberVariable variableName='{name}' variableKind='{kind}'/>"
        for name, kind in kinds.items()
    )


def run(builder: SystemBuilder, **settings: Any) -> Results:
    return simulate(builder.build(), stop_time=0.05, step_size=1e-3, **settings)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_fmus_declare_their_ports_by_annotations(tmp_path: Path, version: str) -> None:
    """energy.md 7, 4: the same content per port."""
    port = '<PowerPort name="strut" input="{}" output="{}" power="in"/>'
    chassis = fmu_with(tmp_path, "chassis", version, annotation=port.format("force", "velocity"))
    wheel = fmu_with(tmp_path, "wheel", version, annotation=port.format("velocity", "force"))
    r = run(quarter_car(chassis, wheel))
    expected = run(quarter_car(chassis, wheel), power_bonds=[SUSPENSION])
    name = "chassis.strut-wheel.strut"
    assert np.array_equal(r[f"{name}.residual_power"], expected["suspension.residual_power"])
    assert np.array_equal(r[f"{name}.power"], expected["suspension.power"])
    assert r[f"{name}.residual_power"].any()
    assert f"{name}.power" not in expected


def test_bonds_of_a_body_with_one_velocity_and_a_force_at_each_side(
    simulation: Callable[..., Simulation],
) -> None:
    """energy.md 7, 4: two ports of an FMU share an output; no bond gets lost, in whatever order they are listed."""

    def body() -> PythonFmu:
        outputs = {"v": lambda v: 1.0}
        unit = PythonFmu(inputs={"left": 0.0, "right": 0.0}, outputs=outputs)
        return with_ports(unit, ("left", "left", "v", "in"), ("right", "right", "v", "in"))

    def spring() -> PythonFmu:
        outputs = {"fa": lambda v: v.va, "fb": lambda v: v.vb}
        unit = PythonFmu(inputs={"va": 0.0, "vb": 0.0}, outputs=outputs)
        return with_ports(unit, ("a", "va", "fa", "out"), ("b", "vb", "fb", "out"))

    units = {"m1": body(), "s": spring(), "m2": body()}
    links = ["m1.v -> s.va", "s.fa -> m1.right", "m2.v -> s.vb", "s.fb -> m2.left"]
    for order in (units, dict(reversed(units.items()))):
        plan = simulation(order, links, stop_time=1).prepare().plan
        assert [bond.name for bond in plan.power_bonds] == ["m1.right-s.a", "m2.left-s.b"]


def with_ports(unit: PythonFmu, *ports: tuple[str, str, str, Literal["in", "out"]]) -> PythonFmu:
    """The FMU, with these as what its description declares."""
    declared = tuple(PowerPort(*port, where=f"port '{port[0]}'") for port in ports)
    unit.model = replace(unit.model, power_ports=declared)
    return unit


@pytest.mark.parametrize(
    "kinds",
    [(("signal", "inflow"), ("signal", "inflow")), (("signal", "inflow"), ("signal", "signal"))],
)
def test_terminals_of_fmus_are_ports(tmp_path: Path, kinds: Any) -> None:
    """energy.md 7, 3: effort times inflow enters; one side that says so is enough, as the connections give the other."""
    chassis = fmu_with(tmp_path, "chassis", "fmi3", terminal=members(*kinds[0]))
    wheel = fmu_with(tmp_path, "wheel", "fmi3", terminal=members(*kinds[1]))
    r = run(quarter_car(chassis, wheel))
    expected = run(quarter_car(chassis, wheel), power_bonds=[SUSPENSION])
    name = "chassis.strut-wheel.strut"
    assert np.array_equal(r[f"{name}.power_1"], expected["suspension.power_1"])


def test_the_direction_of_a_terminal_is_never_guessed(tmp_path: Path) -> None:
    """energy.md 7, 3: without a flow, a note says how to declare the bond."""
    kinds = members("signal", "signal")
    chassis, wheel = (fmu_with(tmp_path, n, "fmi3", terminal=kinds) for n in ("chassis", "wheel"))
    r = run(quarter_car(chassis, wheel))
    assert r.power_bonds == ()
    (note,) = [n for n in r.statistics.notes if "no power bond is assumed" in n]
    assert "terminal 'strut' of 'chassis' and terminal 'strut' of 'wheel'" in note


def test_directions_of_fmus_that_contradict_the_connections_are_no_bond(tmp_path: Path) -> None:
    chassis = fmu_with(tmp_path, "chassis", "fmi3", terminal=members("signal", "inflow"))
    wheel = fmu_with(tmp_path, "wheel", "fmi3", terminal=members("signal", "outflow"))
    r = run(quarter_car(chassis, wheel))
    assert r.power_bonds == ()
    assert any(
        "No power bond" in n and "contradict the connections" in n for n in r.statistics.notes
    )


def test_a_declaration_that_contradicts_an_fmu_is_refused_with_both_places(tmp_path: Path) -> None:
    """energy.md 7."""
    chassis = fmu_with(tmp_path, "chassis", "fmi3", terminal=members("signal", "outflow"))
    wheel = fmu_with(tmp_path, "wheel", "fmi3", terminal=members("signal", "inflow"))
    with pytest.raises(DescriptionError, match=r"contradicts terminal 'strut' of 'chassis'.*'out'"):
        run(quarter_car(chassis, wheel), power_bonds=[SUSPENSION])


@pytest.mark.parametrize(
    "annotation",
    [
        '<PowerPort name="strut" input="force" output="velocity" power="both"/>',
        '<PowerPort name="strut" input="velocity" output="velocity" power="in"/>',
    ],
)
def test_a_wrong_annotation_of_an_fmu_is_left_aside_with_a_note(
    tmp_path: Path, annotation: str
) -> None:
    fmu = FmuFile(Source(fmu_with(tmp_path, "chassis", "fmi2", annotation=annotation)))
    fmu.close()
    assert fmu.model.power_ports == ()
    assert any("power ports" in note for note in fmu.model.notes)


# Preference -----------------------------------------------------------------------------------------------------------


def described() -> SystemBuilder:
    builder = quarter_car(
        *(reference_path(f"fmi3/QuarterCar{n}A.fmu") for n in ("Chassis", "Wheel"))
    )
    builder.power_bond("suspension", CHASSIS, WHEEL, scale=750.0, tolerance=1e-5)
    return builder


def test_the_user_gives_a_described_bond_another_tolerance() -> None:
    r = run(described(), power_bonds=[replace(SUSPENSION, scale=None, tolerance=1e-6)])
    expected = run(described())["energy_error"]
    assert expected.any()
    assert r["energy_error"] == pytest.approx(10.0 * expected)


@pytest.mark.parametrize(
    ("bond", "message"),
    [
        (replace(SUSPENSION, name="strut"), "its ports are those of Power bond 'suspension' (declared in Python)"),
        (replace(SUSPENSION, ports=(CHASSIS, replace(WHEEL, power="out"))), "contradicts Power bond 'suspension'"),
    ],
)  # fmt: skip
def test_bonds_that_contradict_each_other_are_refused(bond: PowerBond, message: str) -> None:
    """energy.md 7."""
    with pytest.raises(DescriptionError) as caught:
        run(described(), power_bonds=[bond])
    assert message in str(caught.value)
