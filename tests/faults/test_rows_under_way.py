"""A full disk, a reader that has ended, and Ctrl-C, while rows are on their way: no row that was accepted is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EFBIG
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forks import Forks
from numpy.typing import NDArray
from processes import PATIENCE

from fmimaster import Results, Simulation, reference_path
from fmimaster.base.errors import FileError, Interrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and pipes of POSIX")

STEPS: dict[str, Any] = {"stop_time": 100, "step_size": "1/1000"}
ROWS = 100_001
"""More than two blocks."""
ROOM = 1_500_000
"""Bytes, in the second block."""
DAHLQUIST = reference_path("fmi3/Dahlquist.fmu")


def undisturbed(**settings: Any) -> Results:
    return Simulation(DAHLQUIST, **{**STEPS, **settings}).run()


@contextmanager
def full_disk(room: int = ROOM) -> Iterator[None]:
    """No file becomes larger."""
    import resource  # not there on Windows

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def rows_of(error: BaseException) -> Results:
    """What the run has added to an error that is none of FMUs."""
    found: Results = vars(error)["results"]
    return found


def check_whole(in_the_file: Results, left: Results) -> None:
    """The file and the results of the error have all rows that were accepted, and no other ones."""
    expected = undisturbed()
    assert 0 < in_the_file.rows < expected.rows
    times: NDArray[Any] = np.union1d(in_the_file.time, left.time)
    n = len(times)
    assert left.rows
    assert left.time[-1] == times[-1]
    assert n == left.statistics.rows
    for part, first in ((in_the_file, 0), (left, n - left.rows)):
        for name in ("time", "x", "dx"):
            np.testing.assert_array_equal(part[name], expected[name][first : first + part.rows])


# A full disk ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_whole_rows_and_the_error_has_the_others(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    with full_disk(), pytest.raises(FileError) as caught:
        Simulation(DAHLQUIST, **STEPS).run(output_file=file)
    assert str(caught.value) == (
        f"The results cannot be written to '{file}': {os.strerror(EFBIG)}. It ends with the last complete "
        "row. Make room there, or choose another place."
    )
    check_whole(Results.read(file), rows_of(caught.value))


def test_rows_in_memory_are_there_when_the_disk_is_full(tmp_path: Path) -> None:
    results = undisturbed()
    file = tmp_path / "rows.csv"
    with full_disk(), pytest.raises(FileError, match="It ends with the last complete row"):
        results.write(file)
    whole = tmp_path / "whole.csv"
    results.write(whole)
    assert whole.read_bytes().startswith(file.read_bytes())
    assert Results.read(whole).rows == ROWS


@pytest.mark.parametrize("option", [(), ("--check-step",)], ids=["during the run", "at its end"])
def test_the_command_tells_which_file_is_full_and_leaves_whole_rows(
    option: tuple[str, ...], forks: Forks, tmp_path: Path
) -> None:
    limit = f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, ({ROOM}, r.RLIM_INFINITY))"
    settings = ("--stop-time", 100, "--step-size", 0.001, *option)
    command = ("simulate", DAHLQUIST, *settings, "--output-file", "rows.csv")
    done = forks.run(*command, cwd=tmp_path, first=limit)
    assert done.returncode == 2
    assert "cannot be written to '" in done.stderr
    assert "rows.csv': File too large. It ends with the last complete row. Make room" in done.stderr
    written = Results.read(tmp_path / "rows.csv")
    np.testing.assert_array_equal(written["x"], undisturbed()["x"][: written.rows])
    assert ROOM - (tmp_path / "rows.csv").stat().st_size < 100


def test_no_incomplete_file_of_another_format_is_left_by_a_full_disk(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "rows.parquet"
    with full_disk(), pytest.raises(FileError, match="Nothing of it is left; a"):
        Simulation(DAHLQUIST, **{**STEPS, "stop_time": 300}).run(output_file=file)
    assert not list(tmp_path.iterdir())


# A reader that has ended ----------------------------------------------------------------------------------------------


def test_a_closed_pipe_ends_the_run_and_the_error_has_the_rows_that_it_did_not_take(
    tmp_path: Path,
) -> None:
    pipe, taken = tmp_path / "pipe.csv", tmp_path / "taken.csv"
    os.mkfifo(pipe)

    def take() -> None:
        with pipe.open("rb") as stream, taken.open("wb") as file:
            for _ in range(1000):
                file.write(stream.readline())

    reader = threading.Thread(target=take)
    reader.start()
    with pytest.raises(BrokenPipeError) as caught:
        Simulation(DAHLQUIST, **STEPS).run(output_file=pipe)
    reader.join()
    left = rows_of(caught.value)
    assert left.rows == left.statistics.rows > 1000  # nothing of the block was in a file
    expected = undisturbed()
    np.testing.assert_array_equal(left["x"], expected["x"][: left.rows])
    np.testing.assert_array_equal(Results.read(taken)["x"], expected["x"][:999])


def test_a_reader_of_the_standard_output_may_end_early() -> None:
    """As in ``fmimaster … --output-file - | head -1``."""
    settings = ("--stop-time", "100", "--step-size", "0.001", "--output-file", "-")
    command = [sys.executable, "-m", "fmimaster", "simulate", str(DAHLQUIST), *settings]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as begun:
        assert begun.stdout is not None
        assert begun.stderr is not None
        assert begun.stdout.readline() == '"time","x","dx"\n'
        begun.stdout.close()
        assert "error" not in begun.stderr.read()
        assert begun.wait(PATIENCE) == 0


# Ctrl-C ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_a_file", [True, False], ids=["file", "memory"])
def test_ctrl_c_loses_no_row(in_a_file: bool, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    main = threading.main_thread().ident
    assert main is not None
    reached: list[float] = []

    def press() -> None:
        while not reached:
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    pressing = threading.Thread(target=press)
    pressing.start()
    run = Simulation(DAHLQUIST, stop_time=10_000, step_size="1/1000")
    with pytest.raises(Interrupted, match=r"^Interrupted at t = ") as caught:
        run.run(lambda p: reached.append(p.time), output_file=file if in_a_file else None)
    pressing.join()
    assert caught.value.results is not None
    rows = Results.read(file) if in_a_file else caught.value.results
    assert rows.rows == caught.value.results.statistics.rows > 1
    assert str(caught.value).startswith(f"Interrupted at t = {rows.time[-1]:.12g} s")
    steps = np.arange(rows.rows)
    np.testing.assert_array_equal(rows.time, steps / 1000)
    n = min(rows.rows, ROWS)
    np.testing.assert_array_equal(rows["x"][:n], undisturbed()["x"][:n])
