"""Paths that no file can have are refused wherever they come in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import reference

from fmimaster import Results, Simulation, SystemBuilder
from fmimaster.base.errors import FileError
from fmimaster.base.files import given_path, long_path
from fmimaster.front.validation import validate

WINDOWS = sys.platform == "win32"

NO_PATHS = ["", "a\0b", "x" * 5000, "y/" * 20000, *(["a<b", "*.fmu"] if WINDOWS else ["\ud800"])]

USES: dict[str, Callable[[str], Any]] = {
    "system": lambda path: Simulation(path).prepare(),
    "validate": validate,
    "component": lambda path: SystemBuilder("s").add("a", path),
    "table": Results.read,
    "results": lambda path: Results(time=[0.0], columns={}).write(path),
    "input file": lambda path: Simulation(
        reference("fmi3/Feedthrough.fmu"), input=path, stop_time=1
    ).prepare(),
    "output file": lambda path: Simulation(reference("fmi3/Dahlquist.fmu"), stop_time=1).run(
        output_file=path
    ),
}


@pytest.mark.parametrize("path", NO_PATHS, ids=lambda path: ascii(path)[:12])
@pytest.mark.parametrize("use", USES)
def test_what_cannot_be_a_path_is_refused(use: str, path: str) -> None:
    if use == "validate":
        (finding,) = validate(path)
        assert "path of a file" in finding.what
        return
    with pytest.raises(FileError, match=r"cannot be the path of a file|path of a file is empty"):
        USES[use](path)


@pytest.mark.skipif(WINDOWS, reason="a link needs a privilege of Windows")
def test_a_circle_of_links_is_no_path(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(FileError, match="a/c' cannot be the path of a file: Too many levels"):
        given_path(tmp_path / "a" / "c")
    with pytest.raises(FileError, match="a' cannot be the path of a file: Too many levels"):
        given_path(tmp_path / "a")


@pytest.mark.parametrize(
    "path", ["a", "x" * 255, "é", "nowhere/a", "\udcff", *([] if WINDOWS else ["a\nb", "\x1b"])]
)
def test_any_other_path_is_as_it_is_given(path: str) -> None:
    assert given_path(path) == long_path(Path(path))
