"""Hashes of FMUs: the same hash is the same content, wherever it lies."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from pathlib import Path

from fmimaster import reference_path
from fmimaster.system.archive import source_hash
from fmimaster.system.model import Source

FMU = reference_path("fmi3/BouncingBall.fmu")


def test_the_hash_of_a_file_is_that_of_sha256sum() -> None:
    assert source_hash(Source(FMU)) == sha256(FMU.read_bytes()).hexdigest()


def test_an_fmu_inside_an_archive_has_the_hash_of_the_file(tmp_path: Path) -> None:
    archive = tmp_path / "system.ssp"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(FMU, "resources/ball.fmu")
    assert source_hash(Source(archive, "resources/ball.fmu")) == source_hash(Source(FMU))


def test_the_hash_of_a_folder_depends_on_names_and_contents(tmp_path: Path) -> None:
    hashes = set()
    for folder, name, content in [("a", "x", "1"), ("b", "y", "1"), ("c", "x", "2")]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(content, encoding="utf-8")
        hashes.add(source_hash(Source(tmp_path / folder)))
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "x").write_text("1", encoding="utf-8")
    assert len(hashes) == 3
    assert source_hash(Source(tmp_path / "again")) in hashes
