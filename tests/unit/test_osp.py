"""System structures of Open Simulation Platform."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fmimaster import Simulation, read_system, reference_path
from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system import PowerBond
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import Connection, Endpoint
from fmimaster.system.model import Source, Transformation
from fmimaster.system.osp import FILE

NAMESPACE = "http://opensimulationplatform.com/MSMI/OSPSystemStructure"
CONNECTIONS = """
<VariableConnection powerBond="suspension">
  <Variable simulator="chassis" name="velocity"/><Variable simulator="wheel" name="velocity"/>
</VariableConnection>
<SignalConnection><Variable simulator="wheel" name="force"/><Signal function="minus" name="in"/></SignalConnection>
<SignalConnection><Signal function="minus" name="out"/><Variable simulator="chassis" name="force"/></SignalConnection>"""
FUNCTIONS = '<Functions><LinearTransformation name="minus" factor="-1"/></Functions>'


def written(
    folder: Path, connections: str = CONNECTIONS, functions: str = FUNCTIONS, before: str = ""
) -> Path:
    """The quarter car in this form."""
    simulators = "".join(
        f'<Simulator name="{name.lower()}" source="{reference_path(f"fmi3/QuarterCar{name}A.fmu")}">'
        f'<InitialValues><InitialValue variable="micro_steps"><Integer value="10"/></InitialValue></InitialValues>'
        "</Simulator>"
        for name in ("Chassis", "Wheel")
    )
    (folder / FILE).write_text(
        f'<OspSystemStructure xmlns="{NAMESPACE}" version="0.1">{before}<StartTime>0.0</StartTime><EndTime>0.1</EndTime>'
        f"<BaseStepSize>1e-3</BaseStepSize><Simulators>{simulators}</Simulators>{functions}"
        f"<Connections>{connections}</Connections></OspSystemStructure>",
        encoding="utf-8",
    )
    return folder / FILE


def test_simulators_connections_and_times_are_read(tmp_path: Path) -> None:
    plain = CONNECTIONS.replace(' powerBond="suspension"', "")
    variant = tmp_path / "OspSystemStructure_Variant.xml"
    variant.write_bytes(written(tmp_path, plain).read_bytes())
    for path in (tmp_path / FILE, tmp_path, variant):
        described = read_system(path)
        assert [name for name, _ in described.components()] == ["chassis", "wheel"]
        assert described.experiment == Experiment(0.0, 0.1, step_size=1e-3)
        assert described.system.connections == (
            Connection(Endpoint("chassis", "velocity"), Endpoint("wheel", "velocity")),
            Connection(
                Endpoint("wheel", "force"), Endpoint("chassis", "force"), Transformation(-1.0)
            ),
        )


def test_sources_are_paths_with_both_slashes_and_addresses(tmp_path: Path) -> None:
    file = written(tmp_path, CONNECTIONS.replace(' powerBond="suspension"', ""))
    plain = str(reference_path("fmi3/QuarterCarWheelA.fmu"))
    address = (tmp_path / "a b.fmu").as_uri()
    for given, meant in (
        ("a%20b.fmu", "a b.fmu"),
        (r"..\fmus\a.fmu", "../fmus/a.fmu"),
        (address, "a b.fmu"),
    ):
        text = file.read_text(encoding="utf-8").replace(plain, given)
        changed = tmp_path / "OspSystemStructure_Changed.xml"
        changed.write_text(text, encoding="utf-8")
        _, wheel = read_system(changed).system.components
        assert wheel.source == Source(tmp_path / meant)


def test_it_runs_as_the_same_system_in_an_ssp(tmp_path: Path) -> None:
    path = written(tmp_path, CONNECTIONS.replace(' powerBond="suspension"', ""))
    same = reference_path("systems/quarter-car-a-fmi3.ssp")
    (bond,) = read_system(same).system.power_bonds
    assert isinstance(bond, PowerBond)
    results = Simulation(path, power_bonds=[bond]).run()
    expected = Simulation(same, stop_time=0.1).run()
    assert results.names == expected.names
    for name in expected:
        assert np.array_equal(results[name], expected[name])


def test_power_bonds_have_no_direction_there(tmp_path: Path) -> None:
    """energy.md 7, 4: exactly two connections of one name; the direction is never guessed."""
    with pytest.raises(
        DescriptionError, match="power bond 'suspension' has 1 connections, expected 2"
    ):
        read_system(written(tmp_path))
    back = """<VariableConnection powerBond="suspension">
      <Variable simulator="wheel" name="force"/><Variable simulator="chassis" name="force"/></VariableConnection>"""
    (note,) = read_system(
        written(tmp_path, CONNECTIONS[: CONNECTIONS.index("<Signal")] + back)
    ).notes
    assert "suspension (chassis.velocity - wheel.velocity, wheel.force - chassis.force)" in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<Sum name="s" inputCount="2"/>', "sums (Sum) are not supported"),
        ("<VariableGroupConnection/>", "groups of variables (VariableGroupConnection) are not"),
        ("<Algorithm>ecco</Algorithm>", ""),
    ],
)
def test_what_is_not_read_is_refused_or_noted(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, CONNECTIONS.replace(' powerBond="suspension"', ""), before=text)
    if message:
        with pytest.raises(DescriptionError) as caught:
            read_system(path)
        assert message in str(caught.value)
        assert f"{FILE}, line" in str(caught.value)
    else:
        (note,) = read_system(path).notes
        assert "the algorithm is left to the settings of the run: ecco" in note


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'simulator="chassis"',
            'simulator="chasis"',
            "there is no simulator 'chasis'. Did you mean",
        ),
        ('function="minus"', 'function="mines"', "there is no signal 'in' of a function 'mines'"),
        ('name="out"', 'name="outs"', "there is no signal 'outs' of a function 'minus'"),
        ('<Variable simulator="wheel" name="velocity"/>', "", "1 elements Variable, expected 2"),
        ('name="force"', 'nam="force"', "attribute 'name' of Variable is missing"),
    ],
)
def test_names_that_do_not_fit_are_refused_with_their_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    connections = CONNECTIONS.replace(' powerBond="suspension"', "").replace(old, new, 1)
    with pytest.raises((DescriptionError, FileError)) as caught:
        read_system(written(tmp_path, connections))
    assert message in str(caught.value)
    assert f"{FILE}, line" in str(caught.value)


def test_another_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("<Other/>", encoding="utf-8")
    with pytest.raises(FileError, match="the root is Other, expected OspSystemStructure"):
        read_system(tmp_path)
