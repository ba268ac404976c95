"""An exported system gives the bits of a run: in fmpy, as a component of another system, and with other start values."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import fmpy
import numpy as np
import pytest
from fmpy.validation import validate_fmu
from in_turn import in_turn
from strict_fmu import Strict

from fmimaster import Results, Simulation, SystemBuilder, reference_path
from fmimaster.algorithms import GaussSeidel, Jacobi, Waveform
from fmimaster.base.errors import OptionError

CASES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "gauss-seidel": ("quarter-car-a-fmi2", {"algorithm": GaussSeidel()}),
    "default": ("quarter-car-b-fmi3", {}),
    "nonlinear": ("quarter-car-a-nonlinear-fmi3", {"algorithm": Jacobi()}),
    "chain": ("seat-chain-fmi2", {}),
    "loops": ("four-units-fmi3", {"loops": "all"}),
}


def exported(simulation: Simulation, path: Path, version: int) -> tuple[Results, Any]:
    """Results of the run and of the exported FMU."""
    made = simulation.export(path, fmi_version=version)
    results = simulation.run()
    assert validate_fmu(str(path)) == []
    outputs = [
        v.name for v in fmpy.read_model_description(path).modelVariables if v.causality == "output"
    ]
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=float(results.time[-1]),
        step_size=made.step_size,
        output_interval=made.step_size,
        output=outputs,
    )
    return results, found


@pytest.mark.parametrize(("case", "version"), in_turn([*CASES], [2, 3]))
def test_fmpy_has_the_same_bits_at_all_points(case: str, version: int, tmp_path: Path) -> None:
    name, settings = CASES[case]
    system = reference_path(f"systems/{name}.ssp")
    simulation = Simulation(system, stop_time="1/50", **settings)
    results, found = exported(simulation, tmp_path / "system.fmu", version)
    assert len(found) == results.rows > 10
    components = tuple(f"{name}." for name in simulation.prepare().plan.instances.numbers)
    outputs = [name for name in results if name.startswith(components)]
    assert {*outputs} == {*found.dtype.names} - {"time"}
    for output in outputs:
        assert np.array_equal(results[output], found[output]), output


@pytest.fixture(scope="module")
def car(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quarter car as an FMU of FMI 3.0."""
    path = tmp_path_factory.mktemp("exported") / "car.fmu"
    Simulation(reference_path("systems/quarter-car-a-fmi3.ssp")).export(path)
    return path


def test_it_is_a_component_like_others_and_takes_start_values(car: Path) -> None:
    values = {"wheel.kc": 20000.0}
    system = reference_path("systems/quarter-car-a-fmi3.ssp")
    whole = Simulation(system, stop_time=1, start_values=values).run()
    found = Simulation(car, stop_time=1, start_values=values).run()
    longer = Simulation(car, stop_time=1, step_size="1/100", start_values=values).run()
    for name in found:
        assert np.array_equal(whole[name], found[name]), name
        assert np.array_equal(whole[name][::10], longer[name]), name


def test_it_is_rolled_back_in_another_system(car: Path) -> None:
    """Waveform repeats each step: two cars, of which one stands on the other."""
    builder = SystemBuilder("tower")
    for name in ("lower", "upper"):
        builder.add(name, car)
    builder.connect("lower.chassis.velocity", "upper.wheel.road", suppress_unit_conversion=True)
    tower = builder.build()
    step: dict[str, Any] = {"stop_time": "1/5", "step_size": "1/1000"}
    once = Simulation(tower, algorithm=GaussSeidel(), **step).run()
    again = Simulation(tower, algorithm=Waveform(GaussSeidel(), sweeps=2), **step).run()
    lower = "lower.chassis.velocity"
    assert np.array_equal(once[lower], again[lower])
    assert once["upper.chassis.velocity"].any()


def test_types_units_and_dependencies_are_those_of_the_component(tmp_path: Path) -> None:
    path = tmp_path / "feedthrough.fmu"
    source = reference_path("fmi3/Feedthrough.fmu")
    made = Simulation(source, stop_time=1, step_size="1/10").export(path)
    assert made.left_out == ("Binary_input", "Binary_output")
    theirs = {v.name: v for v in fmpy.read_model_description(source).modelVariables}
    ours = fmpy.read_model_description(path)
    for v in ours.modelVariables:
        if v.causality != "independent":
            assert (v.type, v.causality, v.unit) == (
                theirs[v.name].type,
                theirs[v.name].causality,
                theirs[v.name].unit,
            )
    inputs = {
        "Float64_continuous_input": np.pi,
        "Int8_input": -7,
        "Boolean_input": True,
        "String_input": "ü",
    }
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=1.0,
        step_size=0.1,
        start_values=inputs,
        output=["Float64_continuous_output", "Int8_output"],
    )
    assert (found["Float64_continuous_output"] == np.pi).all()
    assert (found["Int8_output"] == -7).all()


def test_the_same_system_gives_the_same_bytes_without_a_path_of_this_machine(
    car: Path, tmp_path: Path
) -> None:
    system = reference_path("systems/quarter-car-a-fmi3.ssp")
    Simulation(system).export(tmp_path / "again.fmu")
    assert (tmp_path / "again.fmu").read_bytes() == car.read_bytes()
    Simulation(system, start_values={"wheel.kc": 20000.0}).export(tmp_path / "other.fmu")
    tokens = {fmpy.read_model_description(path).guid for path in (car, tmp_path / "other.fmu")}
    assert len(tokens) == 2
    with zipfile.ZipFile(car) as archive:
        names = archive.namelist()
        assert str(tmp_path.parent).encode() not in archive.read("resources/system.image")
    assert "resources/members/0/documentation/licenses/license.txt" in names
    assert "resources/members/0/sources/model.c" in names
    assert not any("documentation/index.html" in name for name in names)


def test_every_reason_is_given_at_once(tmp_path: Path) -> None:
    system = reference_path("systems/two-mass-b1-mixed.ssp")
    simulation = Simulation(system, checkpoint=tmp_path / "c", isolate="upper")
    with pytest.raises(OptionError) as found:
        simulation.export(tmp_path / "no.fmu")
    reasons = re.findall("- (.*)", str(found.value))
    assert reasons == [
        "checkpoint: checkpoints are written",
        "event_clock: Predictive finds events in Python",
        "step_size: Ramp has steps that do not follow a fixed grid",
        "component 'upper': it has a process of its own",
        "component 'lower': it has clocks",
    ]
    assert not (tmp_path / "no.fmu").exists()


def test_a_file_that_is_no_export_is_not_replaced(car: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.fmu"
    other.write_bytes(reference_path("fmi3/Dahlquist.fmu").read_bytes())
    simulation = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"))
    with pytest.raises(OptionError, match="fmi_version"):
        simulation.export(other, fmi_version=1)
    with pytest.raises(Exception, match="another archive"):
        simulation.export(other)
    assert other.read_bytes() == reference_path("fmi3/Dahlquist.fmu").read_bytes()


@pytest.mark.parametrize(
    ("members", "version"), in_turn([("fmi2", "fmi3"), ("fmi3", "fmi2")], [2, 3])
)
def test_components_see_no_forbidden_call_and_can_end_the_simulation(
    members: tuple[str, str], version: int, tmp_path: Path
) -> None:
    """FMUs that refuse what FMI forbids; one of them ends the run at 0.5 s."""
    builder = SystemBuilder("strict")
    for name, standard in zip("ab", members, strict=True):
        builder.add(name, Strict(standard).write(tmp_path, standard))
    builder.connect("a.y", "b.u")
    simulation = Simulation(
        builder.build(),
        stop_time=1,
        step_size="1/10",
        algorithm=Waveform(Jacobi()),
        event_clock="none",
        start_values={"b.stop": 0.5},
    )
    path = tmp_path / "system.fmu"
    simulation.export(path, fmi_version=version)
    values = {"b.stop": 0.5, "a.u": 0.25}
    results = replace(simulation, start_values=values).run()
    assert results.time[-1] == 0.5
    found = fmpy.simulate_fmu(
        str(path),
        stop_time=1.0,
        step_size=0.1,
        output_interval=0.1,
        output=["b.y"],
        start_values={"a.u": 0.25},
    )
    nested = Simulation(path, stop_time=1, step_size="1/10", start_values={"a.u": 0.25}).run()
    assert found["time"][-1] == nested.time[-1] == 0.5
    assert np.array_equal(results["b.y"], found["b.y"])
    assert np.array_equal(results["b.y"], nested["b.y"])
