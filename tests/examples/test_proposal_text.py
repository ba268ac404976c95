"""The text of the proposal renders everywhere; its requirements are numbered, its links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from proposal_schemas import MANIFEST, PROPOSAL, SYSTEM

from fmimaster.studies.demos.methods import METHODS, run_method

ROOT = PROPOSAL.parents[1]
PARTS = sorted(PROPOSAL.glob("*.adoc"))
TEXT = "\n".join(part.read_text(encoding="utf-8") for part in PARTS)
NORMATIVE = "\n".join(part.read_text(encoding="utf-8") for part in PARTS if part.name[0] in "23456")
REQUIREMENT = re.compile(r"^\[\[R-([MFIS])(\d+)\]\](\w+)(?: \(([\w -]+)\))?::\n(.+)$", re.MULTILINE)
CLASSES = {"indicators", "triggers", "look-ahead", "shared", "optional feature", ""}
KEY_WORDS = (
    r"\b(MUST|MUST NOT|SHOULD|SHOULD NOT|MAY|REQUIRED|SHALL|SHALL NOT|RECOMMENDED|OPTIONAL)\b"
)


def test_requirements_are_numbered_without_gaps_and_name_a_class() -> None:
    numbers: dict[str, list[int]] = {}
    for letter, number, name, of_class, _ in REQUIREMENT.findall(TEXT):
        assert name == letter + number
        assert of_class in CLASSES, name
        numbers.setdefault(letter, []).append(int(number))
    assert set(numbers) == set("MFIS")
    for letter, found in numbers.items():
        assert sorted(found) == list(range(1, len(found) + 1)), letter
    assert len(REQUIREMENT.findall(TEXT)) == TEXT.count("[[R-")


def test_a_requirement_has_a_key_word_of_rfc_2119_and_other_normative_text_has_none() -> None:
    requirements = {name: text for _, _, name, _, text in REQUIREMENT.findall(TEXT)}
    without = {name for name, text in requirements.items() if not re.search(KEY_WORDS, text)}
    assert without == set()
    rest = REQUIREMENT.sub("", NORMATIVE)
    notes = re.sub(r"^NOTE: .+(\n.+)*", "", rest, flags=re.MULTILINE)
    assert re.findall(rf"^.*{KEY_WORDS}.*$", notes, re.MULTILINE) == []


def test_every_reference_has_a_target_and_every_link_a_file() -> None:
    targets = set(re.findall(r"\[\[([\w-]+)\]\]", TEXT))
    assert set(re.findall(r"<<([\w-]+),", TEXT)) <= targets
    assert re.findall(r"<<[\w-]+>>", TEXT) == []  # the two renderers make other texts of it
    for file in re.findall(r"link:([\w./-]+)\[", TEXT):
        assert (PROPOSAL / file).exists(), file


def test_the_text_names_every_element_and_attribute_of_the_schemas() -> None:
    for path in (MANIFEST, SYSTEM):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'<xs:(?:element|attribute) name="(\w+)"', text):
            assert f"`{name}`" in NORMATIVE, name


METHODS_OF_THE_TABLE = {
    ("LookAhead", "0.08"): "|0.08 |0.12 |284 |568 |0 |0",
    ("PZ", "0.1"): "|0.1 |4.1e-5 |256 |512 |0 |0",
    ("E2", "0.2"): "|0.2 |6.0e-5 |106 |497 |285 |0",
}


@pytest.mark.parametrize(("name", "size"), METHODS_OF_THE_TABLE)
def test_the_figures_of_the_rationale_are_those_of_today(name: str, size: str) -> None:
    row = METHODS_OF_THE_TABLE[name, size]
    assert f"\n{row}\n" in TEXT
    [method] = [m for m in METHODS if (m.short, str(m.size), m.benchmark) == (name, size, "b3")]
    s = run_method(method, "fmi3").score
    error = f"{s.e_rms:.2g}" if s.e_rms > 0.01 else f"{s.e_rms:.1e}".replace("e-0", "e-")
    wrong = s.missed + s.false + s.one_sided
    found = (size, error, s.steps, s.do_steps, s.restores, wrong)
    assert row == "|" + " |".join(map(str, found))


@pytest.mark.skipif(shutil.which("asciidoctor") is None, reason="asciidoctor is not installed")
def test_asciidoctor_renders_it_without_a_complaint(tmp_path: Path) -> None:
    """It is what the FMI project uses, with these options."""
    command = ["asciidoctor", "-b", "html5", "--failure-level", "INFO", "-v"]
    command += ["-o", str(tmp_path / "index.html"), str(PROPOSAL / "index.adoc")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def page() -> Any:
    if find_spec("asciidoc") is None:
        pytest.skip("asciidoc is not installed")
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import asciidoc_pages  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    return asciidoc_pages.render(PROPOSAL / "index.adoc"), asciidoc_pages


def test_the_documentation_renders_it(page: Any) -> None:
    root, tool = page
    identifiers = {e.get("id") for e in root.iter("*") if e.get("id")}
    local = {a.get("href")[1:] for a in root.iter("a") if a.get("href", "").startswith("#")}
    assert local <= identifiers
    requirements = {f"R-{a}{b}" for a, b, *_ in REQUIREMENT.findall(TEXT)}
    assert requirements <= identifiers
    [title] = tool.contents(root)
    assert title["name"] == "FMI Layered Standard for Events (FMI-LS-EVENTS)"
    assert [c["name"][:2] for c in title["children"]] == [f"{k}." for k in range(1, 10)]


def test_requirements_are_not_inside_of_other_lists(page: Any) -> None:
    """A list right after another one would become a part of it."""
    root, _ = page
    assert root.xpath(".//li//dt[@id] | .//dd//dt[@id]") == []


def test_examples_are_shown_in_colours(page: Any) -> None:
    root, _ = page
    [block, *_] = root.xpath(
        ".//div[@class='highlight']//code[contains(., 'two-mass') or contains(., 'Event')]"
    )
    assert block.xpath(".//span[@class='nt']")
    assert "&lt;" not in block.text_content()
