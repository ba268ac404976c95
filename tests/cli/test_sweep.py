"""``fmimaster sweep``, and its data set."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Outcome
from forks import Forks

from fmimaster import Results, Simulation, reference_path, sweep
from fmimaster.base.errors import FileError, OptionError
from fmimaster.studies.sweeps import (
    Choices,
    FullGrid,
    Processes,
    Range,
    Sobol,
    SweptRuns,
    ThisProcess,
)

parquet = pytest.importorskip("pyarrow.parquet")

CAR = Simulation(reference_path("systems/quarter-car-a-fmi3.ssp"), stop_time=0.1)
FAULTY = Simulation(
    reference_path("fmi3/Faulty.fmu"),
    stop_time=1,
    step_size=0.1,
    start_values={"call": "DoStep", "faultTime": 0.5},
)
Run = Callable[..., Outcome]
DESIGN = Sobol({"wheel.dc": (500, 2000), "wheel.kc": Range(12e3, 18e3)}, n=16)


def equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether two sweeps have the same runs, bit for bit."""
    return [*a] == [*b] and all(
        np.ma.filled(a[n], "-" if a[n].dtype == object else 0).tolist()
        == np.ma.filled(b[n], "-" if b[n].dtype == object else 0).tolist()
        for n in a
    )


def peak(results: Results) -> dict[str, float]:
    """A scalar of a user."""
    return {"peak": float(np.abs(results["wheel.force"]).max())}


def test_each_run_is_the_run_with_these_start_values(tmp_path: Path) -> None:
    found = sweep(CAR, DESIGN, tmp_path / "s", rows=True, executor=ThisProcess())
    assert found.parameters == ("wheel.dc", "wheel.kc")
    values = {name: found[name][5].item() for name in found.parameters}
    alone = Simulation(CAR.system, stop_time=0.1, start_values=values, error_estimate=False).run()
    rows = found.rows(5)
    assert [*rows] == [*alone]
    assert all(rows[name].tobytes() == alone[name].tobytes() for name in rows)
    assert rows.units == alone.units
    assert found["max(wheel.force)"][5] == alone["wheel.force"].max()


def test_processes_give_the_same_data_set_and_other_programs_read_it(tmp_path: Path) -> None:
    here = sweep(CAR, DESIGN, tmp_path / "a", scalars=peak, executor=ThisProcess())
    apart = sweep(CAR, DESIGN, tmp_path / "b", scalars=peak, executor=Processes(2))
    assert equal(here, apart)
    read = parquet.read_table(tmp_path / "b")
    assert read["run"].to_pylist() == [*range(16)]
    assert read["peak"].to_pylist() == here["peak"].tolist()


def test_a_run_that_ends_its_process_is_a_row_and_the_others_go_on(tmp_path: Path) -> None:
    crash, error, fine = 9, 3, 0
    faults = [fine, fine, error, crash, fine, crash, fine]
    design = {"fault": faults, "k": [1.0] * 7}
    found = sweep(FAULTY, design, tmp_path / "s", scalars="last(x)", executor=Processes(1))
    assert found.units == {"k": "1/s"}
    status = found["status"].tolist()
    assert [s == "failed" for s in status] == [fault != fine for fault in faults]
    assert "returned fmi3Error at t = 0.5 s" in found["error"][2]
    assert "The process of the run was ended by SIGSEGV" in found["error"][3]
    assert np.ma.getmaskarray(found["last(x)"]).tolist() == [s == "failed" for s in status]
    assert len({*found["last(x)"][[0, 1, 4, 6]]}) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_sweep_that_is_killed_continues_and_has_the_same_runs(tmp_path: Path, run: Run) -> None:
    words = ["--parameter", "wheel.dc=500:2000", "--parameter", "wheel.kc=12e3:18e3", "-n", "64"]
    given = [str(CAR.system), *words, "--scalar", "max(*)", "--workers", "2", "--stop-time", "1"]
    given.append("--output-folder")
    folder = tmp_path / "killed"
    process = subprocess.Popen(
        [sys.executable, "-m", "fmimaster", "sweep", *given, str(folder)], stderr=subprocess.PIPE
    )
    while len([*folder.glob("0*.parquet")] if folder.exists() else []) < 5:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = {f: f.stat().st_mtime_ns for f in folder.glob("0*.parquet")}
    part = SweptRuns.read(folder)
    assert 0 < part.runs < 64
    (folder / "_00000063-00000063.parquet.0123abcd.part").write_bytes(b"PAR1")
    found = run("sweep", *given, folder)
    assert found.status == 0
    assert f"complete from before: {part.runs} of 64 runs" in found.err
    assert {f: f.stat().st_mtime_ns for f in before} == before
    assert not [*folder.glob("*.part")]
    assert run("sweep", *given, tmp_path / "whole", "--workers", 1).status == 0
    assert equal(SweptRuns.read(folder), SweptRuns.read(tmp_path / "whole"))


def test_the_command_prints_the_ranges_of_the_scalars(tmp_path: Path, run: Run) -> None:
    words = ["--parameter", "wheel.dc=500:2000:3", "--sample", "grid", "--stop-time", "0.1"]
    folder = tmp_path / "s"
    given = ("sweep", CAR.system, *words, "--scalar", "max(chassis.velocity)", "--output-folder")
    found = run(*given, folder, "--workers", 1)
    assert found.status == 0
    assert found.out.splitlines()[0] == "3 runs, 0 failed"
    [one] = json.loads(run(*given, folder, "--json").out)["scalars"]
    table = SweptRuns.read(folder)["max(chassis.velocity)"]
    assert one["largest"] == table.max()
    assert one["smallestRun"] == int(table.argmin())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parameter", "wheel.dc=2:1", "-n", "4"], "wheel.dc=2:1: The range 2:1 is empty"),
        (["--parameter", "wheel.dc=2:x", "-n", "4"], "expected LOW:HIGH"),
        (["--parameter", "wheel.dc=1:2"], "--sample sobol needs the number of runs: -n N"),
        (["-n", "4"], "The design is empty"),
        (["--parameter", "wheel.dc=1:2", "--sample", "sobal", "-n", "4"], "Did you mean 'sobol'"),
        (["--parameter", "wheel.dcc=1:2", "-n", "4"], "no variable 'dcc'. Did you mean 'dc'"),
        (
            ["--parameter", "wheel.x=1:2", "--parameter", "wheel.force=1:2", "-n", "4"],
            "2 parameters of the sweep cannot vary:",
        ),
        (
            ["--parameter", "wheel.dc=1:2", "-n", "4", "--scalar", "max(wheel.forc)"],
            "'wheel.force'",
        ),
        (["--parameter", "wheel.dc=1:2", "-n", "4", "--scalar", "maxi(*)"], "Did you mean 'max'"),
        (["--parameter", "wheel.dc=1:2", "-n", "4", "--workers", "0"], "expected 1 or more"),
        (["--parameter", "wheel.dc=1:2", "-n", "4", "--accuracy", "0.1"], "is for a single run"),
    ],
)
def test_a_sweep_that_cannot_be_made_is_refused(
    words: list[str], message: str, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "s"
    assert message in run("sweep", CAR.system, *words, "--output-folder", folder).error
    assert not [*folder.glob("0*")]


def test_values_fit_their_variables(tmp_path: Path) -> None:
    feed = Simulation(reference_path("fmi3/Feedthrough.fmu"), stop_time=0.2)
    kinds: list[tuple[str, Range, str]] = [
        ("Boolean_input", Range(0, 1), "'Boolean_input' is of type Boolean, which has no range"),
        ("Int32_input", Range(0.5, 2), "whole numbers only"),
        (
            "Enumeration_input",
            Range(1, 2),
            "is an enumeration, which has no range 1:2. Choose items",
        ),
    ]
    for name, one, message in kinds:
        with pytest.raises(OptionError, match=message):
            sweep(feed, FullGrid({name: one}, n=2), tmp_path / "s", executor=ThisProcess())
    choices: dict[str, Any] = {"Boolean_input": Choices([False, True]), "Int32_input": Range(1, 3)}
    found = sweep(feed, FullGrid(choices, n=3), tmp_path / "s", executor=ThisProcess())
    assert found["Boolean_input"].dtype == bool
    assert found["last(Int32_output)"].tolist() == [1, 2, 3, 1, 2, 3]
    assert found["last(Boolean_output)"].tolist() == [0, 0, 0, 1, 1, 1]


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    def again(design: object, **more: Any) -> None:
        sweep(CAR, design, tmp_path / "s", executor=ThisProcess(), **more)

    again({"wheel.dc": [500, 600]}, scalars="max(*)")
    with pytest.raises(OptionError, match=r"another sweep \(scalars.*max.*now.*peak"):
        again({"wheel.dc": [500, 600]}, scalars=peak)
    with pytest.raises(OptionError, match=r"another sweep \(design: hash differs\)"):
        again({"wheel.dc": [500, 601]}, scalars="max(*)")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("a", encoding="utf-8")
    with pytest.raises(FileError, match="has other files"):
        sweep(CAR, {"wheel.dc": [500]}, tmp_path / "other")
    with pytest.raises(FileError, match="is not the data set of a sweep"):
        SweptRuns.read(tmp_path / "other")
    [file] = [*(tmp_path / "s").glob("00000000-*.parquet")]
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(FileError, match="is not a Parquet file"):
        SweptRuns.read(tmp_path / "s")


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
def test_a_full_disk_ends_a_sweep_and_what_is_complete_stays(tmp_path: Path, forks: Forks) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"
    given: list[Any] = [
        "sweep",
        CAR.system,
        "--parameter",
        "wheel.dc=500:2000:3",
        "--sample",
        "grid",
        "--rows",
    ]
    given += ["--workers", 1, "--output-folder", tmp_path / "s", "--stop-time"]
    assert forks.run(*given, "0.1", first=limit).returncode == 0
    ended = forks.run(*given[:-2], tmp_path / "t", "--stop-time", "3", first=limit)
    assert ended.returncode == 2
    assert "0 of 3 runs are complete. Make room" in ended.stderr
    assert not [*(tmp_path / "t").rglob("*.part")]


def test_a_function_that_other_processes_do_not_find_is_named(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.modules['cloudpickle'] = None\nfrom fmimaster import Simulation, sweep\n"
        f"def f(results):\n    return {{'n': results.rows}}\n"
        f"sweep(Simulation({str(CAR.system)!r}), {{'wheel.dc': [1.0]}}, 's', scalars=f)\n",
        encoding="utf-8",
    )
    ended = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert "is defined in the script that is run" in ended.stderr
    assert "executor=ThisProcess()" in ended.stderr


def test_a_figure_shows_scalars_over_parameters_and_outputs_over_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    choices: dict[str, Any] = {"fault": Choices([0, 3]), "k": Range(1, 2, 3)}
    given: dict[str, Any] = {"scalars": ["last(x)", "min(dx)"], "rows": True}
    found = sweep(FAULTY, FullGrid(choices), tmp_path / "s", executor=ThisProcess(), **given)
    figure = found.plot()
    *dots, x, dx, _ = figure.axes
    assert [axes.get_ylabel() for axes in dots] == ["last(x)", "", "min(dx)", ""]
    assert [axes.get_xlabel() for axes in dots] == ["", "", "fault", "k in 1/s"]
    assert [axes.get_ylabel() for axes in (x, dx)] == ["x", "dx"]
    done, failed = dots[1].get_lines()
    assert np.isfinite(np.asarray(done.get_ydata(), float)).sum() == 3
    assert list(np.asarray(failed.get_xdata())) == [1.0, 1.5, 2.0]
    assert len(x.get_lines()) == 6
    assert "3 failed" in figure.get_suptitle()
