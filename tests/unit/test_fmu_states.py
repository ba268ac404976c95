"""A run that begins with the FMU states with which another one has ended goes on as one run would."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from edited_fmu import edited_fmu
from in_turn import in_turn

from fmimaster import (
    AccuracyWarning,
    FileError,
    OptionError,
    PythonComponent,
    Simulation,
    SystemBuilder,
    reference_path,
)
from fmimaster.run import Backend

DAHLQUIST = reference_path("fmi3/Dahlquist.fmu")


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
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
    whole = Simulation(
        reference_path(system),
        stop_time=1,
        step_size="1/64",
        algorithm="Jacobi",
        event_clock="none",
        backend=backend,
    )
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


def test_lines_begin_anew_with_the_states_of_a_file(tmp_path: Path) -> None:
    """With the algorithm that is chosen if none is given; a note says it, and the difference is small."""
    between = tmp_path / "states"
    whole = Simulation(
        reference_path("systems/quarter-car-a-fmi2.ssp"), stop_time=1, step_size="1/64"
    )
    expected = whole.run()
    with replace(whole, final_fmu_state=between).start() as run:
        run.advance(0.5)
    then = replace(whole, start_time=0.5, initial_fmu_state=between).run()
    told = [
        any("no values of earlier steps" in n for n in r.statistics.notes) for r in (expected, then)
    ]
    assert told == [False, True]
    velocity = expected["chassis.velocity"][-then.rows :]
    assert 0.0 < np.abs(then["chassis.velocity"] - velocity).max() < 0.02 * np.abs(velocity).max()


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


@pytest.mark.parametrize(
    ("fmu", "between", "backend"),
    in_turn(
        ["ClockKinds", "Countdown", "TrafficLight", "BouncingBall", "EventSource"],
        ["1/2", "9/20"],
        [Backend.NATIVE, Backend.REFERENCE],
    ),
)
def test_clocks_and_time_events_go_on(
    fmu: str, between: str, backend: Backend, tmp_path: Path
) -> None:
    whole = Simulation(
        reference_path(f"fmi3/{fmu}.fmu"),
        stop_time=1,
        step_size="1/20",
        backend=backend,
        event_mode=True,
    )
    expected, file = whole.run(), tmp_path / "states"
    with replace(whole, final_fmu_state=file).start() as run:
        run.advance(float(Fraction(between)))
    n = run.results.rows
    then = replace(whole, start_time=between, initial_fmu_state=file).run()
    assert np.array_equal(then.time, expected.time[n - 1 :])
    assert then.statistics.warnings == ()
    for name in expected.names:  # the ticks of the first row belong to the run before
        parts = then[name][1:], expected[name][n:]
        here, there = (np.ma.filled(np.ma.asarray(part), 0) for part in parts)
        assert np.array_equal(here, there), name
        absent, also_absent = map(np.ma.getmaskarray, parts)
        assert np.array_equal(absent, also_absent), name


def test_a_held_value_goes_on(tmp_path: Path) -> None:
    builder = SystemBuilder()
    builder.add("source", reference_path("fmi3/EventSource.fmu"))
    builder.add("logger", reference_path("fmi3/Feedthrough.fmu"))
    for name, values in (("times", [3]), ("values", [1.5])):
        builder.set(f"source.{name}", [*values, *[0] * 7])
    builder.set("source.resolution", 10)
    builder.connect("source.value", "logger.Float64_continuous_input")
    builder.connect("source.text", "logger.String_input")
    whole = Simulation(builder, stop_time=1, step_size="1/10")
    file = tmp_path / "states"
    with replace(whole, final_fmu_state=file).start() as run:
        run.advance(0.5)
    then = replace(whole, start_time=0.5, initial_fmu_state=file).run()
    assert set(then["logger.Float64_continuous_output"]) == {1.5}
    texts = set(then["logger.String_output"])
    assert len(texts) == 1
    assert texts == {run.results["logger.String_output"][-1]}


def test_a_file_that_says_nothing_of_clocks_is_a_warning(tmp_path: Path) -> None:
    whole = Simulation(reference_path("fmi3/Countdown.fmu"), stop_time=1, step_size="1/20")
    file, raw = tmp_path / "states", tmp_path / "raw"
    with replace(whole, final_fmu_state=file).start() as run:
        run.advance(0.5)
    with zipfile.ZipFile(file) as archive:
        raw.write_bytes(archive.read("states/0"))
    with pytest.warns(AccuracyWarning, match="does not say when clocks tick"):
        replace(whole, start_time=0.5, initial_fmu_state=raw).run()


@pytest.mark.parametrize(
    ("clock", "why"),
    [
        ({"next": [1, 10]}, "is over"),
        ({"next": [1, 0]}, "is not a file of FMU states"),
        ({"next": [1, 1], "interval": [0, 1]}, "positive interval"),
        ({"next": [1, 1], "interval": []}, "is not a file of FMU states"),
        ([], "is not a file of FMU states"),
    ],
)
def test_clocks_that_cannot_be(clock: object, why: str, tmp_path: Path) -> None:
    whole = Simulation(reference_path("fmi3/ClockKinds.fmu"), stop_time=1, step_size="1/20")
    file, other = tmp_path / "states", tmp_path / "other"
    with replace(whole, final_fmu_state=file).start() as run:
        run.advance(0.5)
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(other, "w") as damaged:
        index = json.loads(archive.read("states.json"))
        index["events"]["clocks"]["ClockKinds.constant"] = clock
        damaged.writestr("states.json", json.dumps(index))
        damaged.writestr("states/0", archive.read("states/0"))
    with pytest.raises(FileError, match=why):
        replace(whole, start_time=0.5, initial_fmu_state=other).run()
