"""``fmimaster demo files``: the files of the examples in the documentation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Outcome

from fmimaster import reference_path
from fmimaster.studies.demos.catalogue import EXAMPLE_FILES, ExampleFile


def test_the_files_are_written_and_listed(run: Callable[..., Outcome], tmp_path: Path) -> None:
    outcome = run("demo", "files", "--output-directory", tmp_path)
    assert outcome.status == 0
    assert {path.name for path in tmp_path.iterdir()} == {file.name for file in EXAMPLE_FILES}
    for file in EXAMPLE_FILES:
        assert (tmp_path / file.name).read_bytes() == reference_path(file.reference).read_bytes()
        assert f"{file.name} " in outcome.out


def test_a_second_time_changes_nothing(run: Callable[..., Outcome], tmp_path: Path) -> None:
    assert run("demo", "files", "--output-directory", tmp_path).status == 0
    assert run("demo", "files", "--output-directory", tmp_path).status == 0


def test_a_file_of_the_user_is_kept(run: Callable[..., Outcome], tmp_path: Path) -> None:
    own = tmp_path / "two-mass.ssp"
    own.write_text("mine", encoding="utf-8")
    outcome = run("demo", "files", "--output-directory", tmp_path)
    assert outcome.status == 2
    assert f"'{own}' exists and is not the example file, so nothing was written" in outcome.error
    assert own.read_text(encoding="utf-8") == "mine"
    assert list(tmp_path.iterdir()) == [own]


def test_no_path_is_written_through_what_is_no_file(
    run: Callable[..., Outcome], tmp_path: Path
) -> None:
    (tmp_path / "Dahlquist.fmu").mkdir()
    outcome = run("demo", "files", "--output-directory", tmp_path)
    assert outcome.status == 2
    assert "Dahlquist.fmu" in outcome.error


@pytest.mark.parametrize("file", EXAMPLE_FILES, ids=[file.name for file in EXAMPLE_FILES])
def test_every_example_file_is_used_on_a_page(file: ExampleFile) -> None:
    pages = [
        path.read_text(encoding="utf-8")
        for path in (Path(__file__).parents[2] / "docs").glob("*.md")
    ]
    assert any(file.name in page for page in pages)
