"""Temporary folders of this process, and of those that have died."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from fmimaster import Simulation, reference_path
from fmimaster.base.own_folder import OwnFolder, remove_folders_of_the_dead

HOLD = """
import sys
from fmimaster.base.own_folder import OwnFolder
folder = OwnFolder()
(folder.path / "file").touch()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_of_a_process_that_was_killed_is_removed_by_the_next_run(temporary: Path) -> None:
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        Simulation(reference_path("fmi3/BouncingBall.fmu"), stop_time=0.1).run()
        assert (folder / "file").exists(), "it is in use"
        process.kill()
    Simulation(reference_path("fmi3/BouncingBall.fmu"), stop_time=0.1).run()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_folder_of_a_forked_process_stays(temporary: Path) -> None:
    reading, writing = os.pipe()
    folder = OwnFolder()
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(folder._number)  # as if this process had died
    remove_folders_of_the_dead()
    assert folder.path.is_dir()
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)
    remove_folders_of_the_dead()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_folders_that_are_not_known_stay(temporary: Path) -> None:
    (temporary / "fmimaster-of-another-version").mkdir()
    (temporary / "elsewhere").mkdir()
    (temporary / "fmimaster-link").symlink_to(temporary / "elsewhere")
    (temporary / "fmimaster-link.lock").touch()
    (temporary / "fmimaster-a.lock").symlink_to(temporary / "elsewhere")
    before = sorted(temporary.iterdir())
    remove_folders_of_the_dead()
    assert sorted(temporary.iterdir()) == before


def test_it_is_removed_at_the_end(temporary: Path) -> None:
    folder = OwnFolder()
    folder.remove()
    folder.remove()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform != "win32", reason="short names of Windows")
def test_the_folder_of_a_user_with_an_umlaut_has_a_name_in_ascii(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "Jürgen Müller"))
    (temporary / "Jürgen Müller").mkdir()
    folder = OwnFolder()
    assert str(folder.path).isascii()
    (folder.path / "file").touch()
    assert [p.name for p in (temporary / "Jürgen Müller").glob("*/*")] == ["file"]
    folder.remove()
    assert list((temporary / "Jürgen Müller").iterdir()) == []


@pytest.mark.skipif(sys.platform != "win32", reason="other systems remove a file that is in use")
def test_a_folder_with_a_file_in_use_is_removed_by_the_next_run(temporary: Path) -> None:
    folder = OwnFolder()
    (folder.path / "read").write_bytes(b"")
    with (folder.path / "library").open("xb"):
        folder.remove()
        assert [p.name for p in folder.path.iterdir()] == ["library"]
        remove_folders_of_the_dead()
        assert folder.path.is_dir()
    remove_folders_of_the_dead()
    assert list(temporary.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be taken away there")
def test_another_run_that_finds_the_file_before_it_is_locked_takes_no_folder_away(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, made = tempfile.mkstemp, []

    def seen_by_another(suffix: str, prefix: str) -> tuple[int, str]:
        made.append(make(suffix, prefix))
        if len(made) == 1:
            remove_folders_of_the_dead()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkstemp", seen_by_another)
    folder = OwnFolder()
    (folder.path / "file").touch()
    remove_folders_of_the_dead()
    assert len(made) == 2, "the first file was taken away"
    assert {entry.name for entry in temporary.iterdir()} == {
        folder.path.name,
        f"{folder.path.name}.lock",
    }
    assert (folder.path / "file").exists()
    folder.remove()
    assert list(temporary.iterdir()) == []
