"""An FMU loads its own library only; what is said when it cannot be instantiated is its words, or ours."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import pytest
from command_line import Outcome, changed, reference
from misbehaving_fmu import VERSIONS, Act, misbehaving

Run = Callable[..., Outcome]
needs_links = pytest.mark.skipif(
    sys.platform == "win32", reason="a link needs a privilege of Windows"
)


def unpacked(fmu: Path, folder: Path) -> tuple[Path, Path]:
    """An FMU as a folder, and the library in it."""
    with zipfile.ZipFile(fmu) as archive:
        archive.extractall(folder)
    [library] = (folder / "binaries" / fmpy.platform_tuple).iterdir()
    return folder, library


@pytest.fixture
def dahlquist(tmp_path: Path) -> tuple[Path, Path]:
    return unpacked(reference("fmi3/Dahlquist.fmu"), tmp_path / "fmu")


@pytest.mark.parametrize(
    "name", ["../../../Dahlquist", "/{folder}/Dahlquist", "{folder}/Dahlquist"]
)
@pytest.mark.parametrize("command", ["simulate", "plan", "info"])
def test_a_model_identifier_that_leads_out_of_the_fmu_is_refused(
    run: Run, tmp_path: Path, dahlquist: tuple[Path, Path], name: str, command: str
) -> None:
    shutil.copy(dahlquist[1], tmp_path)
    identifier = f'modelIdentifier="{name.format(folder=tmp_path)}"'
    fmu = changed(
        reference("fmi3/Dahlquist.fmu"),
        tmp_path / "a.fmu",
        description=lambda text: text.replace('modelIdentifier="Dahlquist"', identifier),
    )
    message = run(command, fmu).error
    assert "modelDescription.xml, line 4: modelIdentifier of CoSimulation is" in message
    assert "expected the name of a library without any folder" in message


@needs_links
def test_a_library_that_is_a_link_out_of_the_fmu_is_refused(
    run: Run, tmp_path: Path, dahlquist: tuple[Path, Path]
) -> None:
    folder, library = dahlquist
    foreign = tmp_path / "foreign.so"
    library.rename(foreign)
    library.symlink_to(foreign)
    message = run("simulate", folder).error
    assert f"The library of '{folder}' is a link to '{foreign}', outside of the FMU." in message


@needs_links
def test_a_folder_that_is_a_link_out_of_the_fmu_is_refused(
    run: Run, tmp_path: Path, dahlquist: tuple[Path, Path]
) -> None:
    folder, _ = dahlquist
    (folder / "binaries").rename(tmp_path / "foreign")
    (folder / "binaries").symlink_to(tmp_path / "foreign")
    assert "outside of the FMU" in run("simulate", folder).error


@needs_links
def test_links_inside_of_the_fmu_and_to_the_fmu_are_followed(
    run: Run, tmp_path: Path, dahlquist: tuple[Path, Path]
) -> None:
    folder, library = dahlquist
    library.rename(folder / "the_library.so")
    library.symlink_to(folder / "the_library.so")
    (tmp_path / "link").symlink_to(folder)
    assert run("simulate", tmp_path / "link").status == 0


def test_a_very_long_model_identifier_is_no_name_of_a_file(
    run: Run, tmp_path: Path, dahlquist: tuple[Path, Path]
) -> None:
    folder, library = dahlquist
    shutil.copy(library, library.with_name("other" + library.suffix))
    file = folder / "modelDescription.xml"
    file.write_text(
        file.read_text(encoding="utf-8").replace('"Dahlquist"', f'"{"x" * 5000}"'), encoding="utf-8"
    )
    assert "has no binary for this platform" in run("simulate", folder).error


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusal_without_a_message_is_told_in_our_words(
    run: Run, tmp_path: Path, version: str
) -> None:
    fmu = misbehaving(tmp_path, version, Act("Instantiate", "return", 3))
    message = run("simulate", fmu).error
    assert (
        "The FMU gave no message; with debug_logging (--debug-logging) it may give one." in message
    )
    assert "Message of the FMU" not in message
    assert ".." not in message.replace(str(tmp_path), "")


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refusal_with_a_message_is_told_in_the_words_of_the_fmu(
    run: Run, tmp_path: Path, version: str
) -> None:
    acts = (Act("Instantiate", "return", 3), Act("Instantiate", "say", "no licence"))
    message = run("simulate", misbehaving(tmp_path, version, *acts)).error
    assert "Message of the FMU: no licence" in message
    assert "gave no message" not in message
