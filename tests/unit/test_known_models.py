"""The model of an FMU is read once in a process, and again when the file holds something else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from edited_fmu import edited_fmu

from fmimaster import reference_path
from fmimaster.base.errors import FileError
from fmimaster.fmu import library
from fmimaster.fmu.description.model_description import read_model
from fmimaster.fmu.library import FmuFile
from fmimaster.system.model import Model, Source

DAHLQUIST = reference_path("fmi3/Dahlquist.fmu")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the FMUs whose models have been read; none is known before."""
    library._known.cache_clear()
    names, usual = list[str](), read_model

    def noted(folder: Path, where: str, *rest: object, **named: object) -> Model:
        names.append(Path(where).name)
        return usual(folder, where, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(library, "read_model", noted)
    return names


def model_of(path: Path, *, whole: bool = False) -> Model:
    fmu = FmuFile(Source(path), whole=whole)
    fmu.close()
    return fmu.model


def test_it_is_read_once(read: list[str]) -> None:
    first, second = model_of(DAHLQUIST), model_of(DAHLQUIST)
    assert first is second
    assert read == ["Dahlquist.fmu"]


def test_a_file_with_other_content_is_read_again(read: list[str], tmp_path: Path) -> None:
    """Even one with the same size and date."""
    path, other = tmp_path / "a.fmu", tmp_path / "b.fmu"
    edited_fmu(DAHLQUIST, path, variables={"k": {"start": "1"}})
    edited_fmu(DAHLQUIST, other, variables={"k": {"start": "2"}})
    starts = [model_of(path).variable("k").start]  # type: ignore[union-attr]
    date = path.stat()
    assert date.st_size == other.stat().st_size
    shutil.copyfile(other, path)
    os.utime(path, ns=(date.st_atime_ns, date.st_mtime_ns))
    starts.append(model_of(path).variable("k").start)  # type: ignore[union-attr]
    assert starts == [("1",), ("2",)]
    assert read == ["a.fmu", "a.fmu"]


def test_a_folder_is_read_again(read: list[str], tmp_path: Path) -> None:
    """Its files have no checksums."""
    shutil.unpack_archive(DAHLQUIST, tmp_path / "a", "zip")
    model_of(tmp_path / "a")
    model_of(tmp_path / "a")
    assert read == ["a", "a"]


def test_a_large_one_is_not_kept(read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_LARGEST_KNOWN", 100)
    model_of(DAHLQUIST)
    model_of(DAHLQUIST)
    assert len(read) == 2


def test_a_whole_one_is_read_with_its_description(read: list[str]) -> None:
    assert model_of(DAHLQUIST, whole=True) == model_of(DAHLQUIST)
    assert len(read) == 2


def test_one_that_cannot_be_read_is_refused_each_time(read: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.fmu"
    edited_fmu(DAHLQUIST, path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    for _ in range(2):
        with pytest.raises(FileError, match="damaged or incomplete"):
            model_of(path)
    path.write_bytes(content)
    assert model_of(path).name == "Dahlquist"
    assert read == ["a.fmu"]
