"""docs/architecture.md is true: its rooms, the files that it names, the ten stations. The import rule: test_imports.py."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import house  # type: ignore[import-not-found]
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
STATIONS = ROOT / "docs" / "examples" / "ten_stations.py"
MOST_LINES = 300


def test_the_page_can_be_read_in_one_go() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES


def test_the_page_has_a_line_for_each_room() -> None:
    table = PAGE[PAGE.index("| Room |") : PAGE.index("prints all modules")]
    described = re.findall(r"^\| `(\w+)/` \|", table, re.M)
    rooms = {room.partition("/")[0] for room in house.arrows()}
    assert sorted(described) == sorted(rooms - {"__init__", "__main__", "api"})


def test_every_file_and_folder_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+(?:/|\.(?:py|c|md|yml)))`", PAGE))
    places = [ROOT, ROOT / "fmimaster", ROOT / "fmimaster" / "kernel", ROOT / "tests" / "unit"]
    missing = {name for name in named if not any((place / name).exists() for place in places)}
    assert missing == set()
    assert len(named) > 50


def without_last_places(text: str) -> str:
    return re.sub(r"(\d\.\d{14})\d+", r"\1", text)


def test_the_ten_stations_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(STATIONS), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.findall(r"^(\d+) ", printed, re.M) == [str(k) for k in range(1, 11)]
    same = str if sys.platform == "linux" else without_last_places  # exp() of another C library
    assert same(f"```text\n{printed}```") in same(PAGE)
