"""What belongs to a release agrees: versions, names of fragments of the changelog."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from fmimaster.base.installation import installed_version

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "CITATION.cff").exists(), reason="no checkout: the files of a release are not there"
)


def test_the_version_is_the_same_everywhere() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    [version] = re.findall(r'^version = "(.+)"$', project, re.MULTILINE)
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [version]


@pytest.mark.parametrize(
    "name", ["fmimaster.egg-info/PKG-INFO", "fmimaster-1.2.3.dist-info/METADATA"]
)
def test_the_version_is_that_of_sources_and_of_installed_packages(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(
        "Metadata-Version: 2.4\nName: fmimaster\nVersion: 1.2.3\n", encoding="utf-8"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path)])
    assert installed_version.__wrapped__() == "1.2.3"


def test_fragments_of_the_changelog_have_names_that_are_found() -> None:
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"readme.md"}
    wrong = [
        n
        for n in names
        if not re.fullmatch(r"(\d+|\+[\w-]+)\.(added|changed|fixed|removed)\.md", n)
    ]
    assert wrong == []


def test_all_has_all_extras_for_users() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = project.split("[project.optional-dependencies]\n")[1].split("\ntest = ")[0]
    extras = re.findall(r"^(\w+) = ", table, re.MULTILINE)
    [everything] = re.findall(r'^all = \["fmimaster\[(.+)\]"\]$', table, re.MULTILINE)
    assert [*everything.split(","), "all"] == extras
