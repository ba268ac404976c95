"""A run that begins with the FMU states with which another one has ended goes on as one run would."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from edited_fmu import edited_fmu

from fmimaster import (
    Backend,
    FileError,
    OptionError,
    PythonComponent,
    Simulation,
    SystemBuilder,
    reference_path,
)

DAHLQUIST = reference_path("fmi3/Dahlquist.fmu")


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.REFERENCE])
@pytest.mark.parametrize(
    "system",
    [
        "fmi2/Dahlquist.fmu",
        "fmi3/Dahlquist.fmu",
        "systems/quarter-car-a-fmi2.ssp",
        "systems/two-mass-b1-mixed.ssp",
    ],
)
def test_two_runs_with_a_file_between_them_give_the_bits_of_one(
    system: str, backend: Backend, tmp_path: Path
) -> None:
    whole = Simulation(reference_path(system), stop_time=1, step_size="1/64", backend=backend)
    between = tmp_path / "states"
    expected = whole.run()
    with replace(whole, final_fmu_state=between).start() as run:  # FMUs keep their stop time
        run.advance(0.5)
    first = run.results
    then = replace(whole, start_time=0.5, initial_fmu_state=between).run()
    n = first.rows
    assert then.time[0] == first.time[-1] == 0.5
    for name in ("time", *expected.names):
        if "power" in name or "energy" in name:  # counted from the start of a run
            continue
        assert np.array_equal(first[name], expected[name][:n])
        assert np.array_equal(then[name], expected[name][n - 1 :])


def test_the_file_of_a_single_fmu_has_the_bytes_of_its_state(tmp_path: Path) -> None:
    file = tmp_path / "state.bin"
    with Simulation(DAHLQUIST, stop_time=1, step_size=0.5, final_fmu_state=file).start() as run:
        run.advance(0.5)
    assert not zipfile.is_zipfile(file)
    at_half = run["x"]
    assert at_half < 1.0
    settings = {"start_time": 0.5, "stop_time": 1, "step_size": 0.5, "initial_fmu_state": file}
    given = {"u": lambda t: 0.0}  # a table has no state
    with Simulation(DAHLQUIST, input=given, **settings).start() as run:  # type: ignore[arg-type]
        assert run["x"] == at_half


def test_files_that_do_not_fit_are_refused_before_the_run(tmp_path: Path) -> None:
    car = Simulation(
        reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=0.5, step_size=0.125
    )
    file, other = tmp_path / "states.zip", tmp_path / "other.zip"
    replace(car, final_fmu_state=file).run()
    assert json.loads(zipfile.ZipFile(file).read("states.json"))["time"] == 0.5
    at_half = replace(car, start_time=0.5, stop_time=1)
    with pytest.raises(OptionError, match=r"are of t = 0.5 s, but the run begins at 0 s.*0\.5"):
        replace(car, initial_fmu_state=file).run()
    masses = reference_path("systems/two-mass-b1-mixed.ssp")
    with pytest.raises(FileError, match="states of other components: chassis, lower, upper"):
        replace(at_half, system=masses, initial_fmu_state=file).run()
    other.write_bytes(b"no states")
    with pytest.raises(FileError, match="has the state of a single FMU"):
        replace(at_half, initial_fmu_state=other).run()
    with pytest.raises(FileError, match="does not exist"):
        replace(at_half, initial_fmu_state=tmp_path / "missing").run()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("states.json", "{}")
    with pytest.raises(FileError, match="is not a file of FMU states"):
        replace(at_half, initial_fmu_state=other).run()
    with pytest.raises(FileError, match="would overwrite"):
        replace(at_half, initial_fmu_state=file, final_fmu_state=file).run()
    with pytest.raises(OptionError, match="accuracy"):
        replace(car, accuracy=1e-3, final_fmu_state=other)


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_inputs_have_the_values_of_the_state_until_they_are_set(
    version: str, tmp_path: Path
) -> None:
    """A value that is equal to the start value must reach the FMU, whose state has another one."""
    fmu, file = reference_path(f"{version}/Feedthrough.fmu"), tmp_path / "states"
    u, y = "Float64_continuous_input", "Float64_continuous_output"
    usual = Simulation(fmu, stop_time=1, step_size=0.25)
    with replace(usual, final_fmu_state=file).start() as run:
        run[u] = 5.0
        run.advance(0.5)
    with replace(usual, start_time=0.5, initial_fmu_state=file).start() as run:
        assert (run[u], run[y]) == (5.0, 5.0)
        run[u] = 0.0
        run.advance(0.25)
        assert (run[u], run[y]) == (0.0, 0.0)


def test_a_file_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    usual = Simulation(DAHLQUIST, stop_time=1, step_size=0.5)
    with pytest.raises(FileError, match="is a folder"):
        replace(usual, final_fmu_state=tmp_path).run()
    with pytest.raises(FileError, match=r"the folder '.*missing' does not exist"):
        replace(usual, final_fmu_state=tmp_path / "missing" / "states").run()


def test_one_file_for_two_outputs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "one.csv"
    usual = Simulation(DAHLQUIST, stop_time=1, step_size=0.5)
    with pytest.raises(OptionError, match="is given for the results and for the final FMU states"):
        replace(usual, final_fmu_state=file).run(output_file=str(file))
    with pytest.raises(OptionError, match="for the results and for the log of FMI calls"):
        replace(usual, fmi_log_file=file).start(output_file=file)
    assert not file.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_rows_stay_if_states_cannot_be_written() -> None:
    usual = Simulation(DAHLQUIST, stop_time=1, step_size=0.5)
    with pytest.raises(FileError, match="cannot be written") as raised:
        replace(usual, final_fmu_state="/dev/full").run()
    assert raised.value.results.time.tolist() == [0.0, 0.5, 1.0]  # type: ignore[attr-defined]


def test_states_of_a_system_can_be_written_again(tmp_path: Path) -> None:
    car = Simulation(
        reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=0.5, step_size=0.125
    )
    file = tmp_path / "states.zip"
    for _ in range(2):
        replace(car, final_fmu_state=file).run()
    assert zipfile.is_zipfile(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("other", "")
    with pytest.raises(FileError, match="another archive"):
        replace(car, final_fmu_state=file).run()


def test_what_cannot_serialize_is_refused(tmp_path: Path) -> None:
    builder = SystemBuilder()
    builder.add("a", PythonComponent(outputs={"y": 0.0}, step=lambda component, t, h: None))
    without_states = edited_fmu(
        reference_path("fmi3/Faulty.fmu"),
        tmp_path / "Faulty.fmu",
        capabilities={"canSerializeFMUState": None},
    )
    for system, name in ((builder, "a"), (without_states, "Faulty")):
        simulation = Simulation(
            system, stop_time=1, step_size=0.5, final_fmu_state=tmp_path / "states"
        )
        with pytest.raises(OptionError, match=f"The state of '{name}' cannot be written"):
            simulation.run()
    assert not (tmp_path / "states").exists()
