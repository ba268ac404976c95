"""Files and paths as Windows knows them: open in another program, long, with names of devices."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy

import pytest
from command_line import Outcome, changed, reference

Run = Callable[..., Outcome]

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="files of Windows")

OPEN_ELSEWHERE = "(close it if another program has it open, or check your rights)"


@contextmanager
def held(path: Path) -> Iterator[Callable[[], object]]:
    """Hold a file open as a program does that shares it with nobody; gives what lets it go."""
    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.CreateFileW.restype = ctypes.c_void_p
    everything, existing, normal = 0xC000_0000, 3, 0x80
    handle = kernel.CreateFileW(str(path), everything, 0, None, existing, normal, None)
    assert handle not in (None, ctypes.c_void_p(-1).value)
    let_go = threading.Event()

    def close() -> None:
        if not let_go.is_set():
            let_go.set()
            kernel.CloseHandle(ctypes.c_void_p(handle))

    try:
        yield close
    finally:
        close()


@pytest.fixture
def fmu(tmp_path: Path) -> Path:
    return Path(copy(reference("fmi2/Dahlquist.fmu"), tmp_path))


def test_an_fmu_that_another_program_has_open_is_told(run: Run, fmu: Path) -> None:
    with held(fmu):
        message = run("info", fmu).error
    assert f"'{fmu}' cannot be read: " in message
    assert OPEN_ELSEWHERE in message


def test_an_fmu_is_waited_for_while_a_scanner_reads_it(run: Run, fmu: Path) -> None:
    with held(fmu) as let_go:
        timer = threading.Timer(0.3, let_go)
        timer.start()
        assert run("info", fmu).status == 0
        timer.join()


@pytest.mark.parametrize("suffix", [".csv", ".mat"])
def test_results_that_another_program_has_open_are_told(
    run: Run, fmu: Path, tmp_path: Path, suffix: str
) -> None:
    results = tmp_path / f"results{suffix}"
    assert run("simulate", fmu, "--output-file", results).status == 0
    before = results.read_bytes()
    with held(results):
        message = run("simulate", fmu, "--output-file", results).error
    assert f"'{results}' cannot be " in message
    assert OPEN_ELSEWHERE in message
    assert results.read_bytes() == before


def test_results_with_the_name_of_a_device_are_refused(run: Run, fmu: Path, tmp_path: Path) -> None:
    message = run("simulate", fmu, "--output-file", tmp_path / "aux.csv").error
    assert "aux.csv' cannot be the path of a file: 'aux' is a device of Windows." in message


def test_an_fmu_with_a_path_of_more_than_259_characters(
    run: Run, fmu: Path, tmp_path: Path
) -> None:
    """Without results in such a folder: wine cannot resolve its path, as Windows can."""
    folder = Path(f"\\\\?\\{tmp_path}", *["long folder ü"] * 20)
    folder.mkdir(parents=True)
    there = Path(str(folder)[4:])
    assert len(str(there)) > 259
    copy(fmu, folder)
    outcome = run("simulate", there / fmu.name)
    assert outcome.status == 0, outcome.err
    assert run("simulate", there / "gone.fmu").error.endswith("Check the path.\n")


def test_members_of_more_than_259_characters(run: Run, fmu: Path, tmp_path: Path) -> None:
    name = "/".join(["resources", *["long folder"] * 30, "table.txt"])
    path = changed(fmu, tmp_path / "a.fmu", members={name: b"1"})
    assert run("simulate", path).status == 0


def test_members_that_differ_in_capitals_only_are_refused(
    run: Run, fmu: Path, tmp_path: Path
) -> None:
    path = changed(fmu, tmp_path / "a.fmu", members={"resources/A": b"1", "resources/a": b"2"})
    message = run("simulate", path).error
    assert "'resources/A' and 'resources/a' are one file on Windows" in message
