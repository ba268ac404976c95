"""Where power bonds are declared: in an SSD, in Python, by the FMUs (energy.md 7)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from quarter_car_units import CHASSIS, SUSPENSION, WHEEL
from ssd_text import annotated, component, elements, read, ssd

from fmimaster.errors import FileError
from fmimaster.system.description import Port, PowerBond
from fmimaster.system.ssp_power_bonds import ANNOTATION, write_power_bonds

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
