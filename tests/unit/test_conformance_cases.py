"""What a conformance run finds in a folder: FMUs, the files beside them, exporters, times."""

from __future__ import annotations

import shutil
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from edited_fmu import edited_fmu

from fmimaster import reference_path
from fmimaster.base.errors import FileError, OptionError
from fmimaster.conformance.cases import NOT_COMPLIANT, exporter_of, find_cases
from fmimaster.conformance.experiment import MOST_STEPS, ReferenceOptions, read_options, times_of
from fmimaster.system.declarations import Capabilities, Experiment, Interface

VARIES = Capabilities(can_handle_variable_communication_step_size=True)


def placed(source: str, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(reference_path(source), target)
    return target


def options(folder: Path, text: str) -> Path:
    file = folder / "M_ref.opt"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_folders_of_the_cross_check_name_exporter_and_interface(tmp_path: Path) -> None:
    fmu = placed("fmi2/Dahlquist.fmu", tmp_path / "fmus/2.0/cs/linux64/Tool A/1.2/Test/Test.fmu")
    for end in ("_ref.csv", "_ref.opt", "_in.csv"):
        fmu.with_name(f"Test{end}").touch()
    [case] = find_cases(tmp_path)
    assert (case.name, case.fmi_version, case.interface) == (
        "fmus/2.0/cs/linux64/Tool A/1.2/Test/Test",
        "2.0",
        Interface.CO_SIMULATION,
    )
    assert (case.exporter, case.exporter_version) == ("Tool A", "1.2")
    assert [f and f.name for f in (case.reference, case.options, case.inputs)] == [
        "Test_ref.csv",
        "Test_ref.opt",
        "Test_in.csv",
    ]
    assert case.results.startswith("results/2.0/cs/")
    assert case.results.endswith("/Tool A/1.2/Test")


def test_a_folder_below_the_root_of_the_cross_check_is_understood_as_well(tmp_path: Path) -> None:
    placed("fmi2/Dahlquist.fmu", tmp_path / "fmus/2.0/cs/linux64/Tool/1/Test/Test.fmu")
    [case] = find_cases(tmp_path / "fmus/2.0/cs/linux64")
    assert (case.name, case.exporter) == ("Tool/1/Test/Test", "Tool")


def test_two_fmus_of_one_name_have_folders_of_their_own(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        placed("fmi3/Dahlquist.fmu", tmp_path / folder / "Dahlquist.fmu")
    one, two = find_cases(tmp_path, [Interface.CO_SIMULATION])
    assert two.results == f"{one.results}-2"


@pytest.mark.skipif(sys.platform == "win32", reason="no folder of Windows has these names")
def test_names_of_tools_become_folders_that_every_file_system_has(tmp_path: Path) -> None:
    placed("fmi2/Dahlquist.fmu", tmp_path / "2.0/cs/linux64/A: B/..../Test/Test.fmu")
    [case] = find_cases(tmp_path)
    assert "/A_ B/unknown/Test" in case.results


def test_a_mark_beside_an_fmu_says_that_it_does_not_follow_the_rules(tmp_path: Path) -> None:
    placed("fmi2/Dahlquist.fmu", tmp_path / "Dahlquist.fmu")
    (tmp_path / NOT_COMPLIANT).touch()
    assert not any(case.follows_rules for case in find_cases(tmp_path))


def test_an_fmu_that_cannot_be_read_is_a_case_as_well(tmp_path: Path) -> None:
    (tmp_path / "broken.fmu").write_bytes(b"PK no archive")
    [case] = find_cases(tmp_path)
    assert (case.interface, case.fmi_version) == (None, "")
    assert "damaged or incomplete zip archive" in case.problem


def test_a_large_model_description_is_read_up_to_its_variables(tmp_path: Path) -> None:
    fmu = edited_fmu(
        reference_path("fmi3/Dahlquist.fmu"), tmp_path / "a.fmu", variables={"x": {"start": "?"}}
    )
    cases = find_cases(tmp_path, [Interface.CO_SIMULATION])
    assert [(case.path, case.problem) for case in cases] == [(fmu, "")]


def test_a_folder_without_fmus_is_an_error_that_says_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="has no file"):
        find_cases(tmp_path)
    (tmp_path / "results/2.0").mkdir(parents=True)
    (tmp_path / "results/2.0/passed").touch()
    with pytest.raises(FileError, match="It is a tree of results"):
        find_cases(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        find_cases(tmp_path / "nowhere")
    with pytest.raises(FileError, match="is a file"):
        find_cases(tmp_path / "results/2.0/passed")


@pytest.mark.parametrize(
    ("tool", "name", "version"),
    [
        ("", "", ""),
        ("20-sim", "20-sim", ""),
        ("20-sim 4.7.1", "20-sim", "4.7.1"),
        ("Dymola Version 2023x Refresh 1, 2023-04-12", "Dymola", "2023x"),
        ("Hopsan2.23.0.20250820.1508", "Hopsan", "2.23.0.20250820.1508"),
        ("Reference FMUs (v0.0.36)", "Reference FMUs", "0.0.36"),
        ("Reference FMUs (development build)", "Reference FMUs", ""),
        ("OpenModelica Compiler OMCompiler v1.12.0-dev.1", "OpenModelica", "1.12.0-dev.1"),
        ("Altair Activate: Inline code generator", "Altair Activate", ""),
        ("Simulink 9.6 (R2021b) with FMI Kit 3.0", "Simulink", "9.6"),
    ],
)
def test_tools_write_their_versions_in_many_ways(tool: str, name: str, version: str) -> None:
    assert exporter_of(tool) == (name, version)


def test_the_options_of_a_reference_are_read(tmp_path: Path) -> None:
    text = "StepSize, 0.0 // variable\nStartTime,1\nStopTime,3\n\nRelTol,1e-4\nSolverType,Dassl\nOutputIntervalLength,0.5\n"
    assert read_options(options(tmp_path, text)) == ReferenceOptions(
        start_time=1.0, stop_time=3.0, step_size=None, tolerance=1e-4, output_interval=0.5
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "StartTime,0\nStoptime,1\n",
            "line 2: 'Stoptime' is not an option.*Did you mean 'StopTime'",
        ),
        ("StopTime,one", "line 1: StopTime is 'one', expected a number"),
        ("StopTime,inf", "expected a number"),
        ("StartTime,1\nStopTime,1", "the stop time 1 s is not after the start time 1 s"),
    ],
)
def test_options_that_cannot_be_meant_are_errors(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_options(options(tmp_path, text))


def test_the_times_are_those_of_the_reference_first() -> None:
    suggested = Experiment(start_time=0.0, stop_time=10.0, step_size=0.1)
    given = ReferenceOptions(start_time=1.0, stop_time=2.0, step_size=0.25)
    times = times_of(suggested, VARIES, given, (0.0, 5.0))
    assert (times.start, times.stop, times.step) == (Fraction(1), Fraction(2), Fraction(1, 4))
    times = times_of(suggested, VARIES, ReferenceOptions(), (0.0, 5.0))
    assert (times.start, times.stop, times.step) == (Fraction(0), Fraction(5), Fraction(1, 10))
    times = times_of(suggested, VARIES, ReferenceOptions(), None)
    assert (times.stop, times.notes) == (Fraction(10), ())


@pytest.mark.parametrize("stop", [None, 0.0, 2.0])
def test_an_fmu_that_suggests_no_stop_time_after_the_start_runs_all_the_same(
    stop: float | None,
) -> None:
    suggested = Experiment(start_time=2.0, stop_time=stop)
    times = times_of(suggested, VARIES, ReferenceOptions(), None)
    assert (times.start, times.stop) == (Fraction(2), Fraction(3))
    assert "suggests no stop time after the start" in times.notes[0]


def test_a_run_without_a_reference_has_a_limited_number_of_steps() -> None:
    suggested = Experiment(stop_time=1e8, step_size=1.0)
    assert times_of(suggested, VARIES, ReferenceOptions(), None).stop == MOST_STEPS
    assert times_of(suggested, VARIES, ReferenceOptions(), (0.0, 1e8)).stop == 10**8


def test_steps_of_one_size_end_where_the_reference_is_covered() -> None:
    suggested = Experiment(stop_time=1.0, step_size=0.3)
    times = times_of(suggested, Capabilities(), ReferenceOptions(), (0.0, 1.0))
    assert times.stop == Fraction(6, 5)
    assert "all steps must have the same size" in times.notes[0]
    assert times_of(suggested, Capabilities(), ReferenceOptions(), None).stop == Fraction(9, 10)


def test_a_reference_of_one_instant_is_an_error() -> None:
    with pytest.raises(OptionError, match="is not after the start time"):
        times_of(Experiment(), VARIES, ReferenceOptions(), (1.0, 1.0))
