"""The text of the proposal renders everywhere; its requirements are numbered, its links lead somewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from proposal_schemas import MANIFEST, POLYNOMIALS, PROPOSAL, SYSTEM

from fmimaster.studies.demos.methods import METHODS, run_method

ROOT = PROPOSAL.parents[1]
DOCUMENTS = ("events", "shared-events", "input-polynomials")
PARTS = {d: sorted((PROPOSAL / d).glob("*.adoc")) for d in DOCUMENTS}
TEXTS = {d: "\n".join(p.read_text(encoding="utf-8") for p in parts) for d, parts in PARTS.items()}
TEXT = "\n".join(TEXTS.values())
INFORMATIVE = re.compile(
    r"^\[\[(introduction|sequences|rationale|appendix)\]\]\n== .+", re.MULTILINE
)
NORMATIVE = "\n".join(
    part.read_text(encoding="utf-8").partition("[[rationale]]")[0]
    for parts in PARTS.values()
    for part in parts
    if not INFORMATIVE.match(part.read_text(encoding="utf-8"))
)
REQUIREMENT = re.compile(r"^\[\[R-([MFIS])(\d+)\]\](\w+)(?: \(([\w -]+)\))?::\n(.+)$", re.MULTILINE)
CLASSES = {"indicators", "triggers", "look-ahead", "shared", "contacts", "polynomials", ""}
KEY_WORDS = (
    r"\b(MUST|MUST NOT|SHOULD|SHOULD NOT|MAY|REQUIRED|SHALL|SHALL NOT|RECOMMENDED|OPTIONAL)\b"
)
USED_BEFORE = {"M": 13, "F": 17, "I": 39, "S": 8}
"""The last numbers of version 0.2."""


def numbers_not_used() -> set[str]:
    """Those of the appendix: numbers are never used for another requirement."""
    table = TEXT[TEXT.index("[[numbers]]") : TEXT.index("[[contributions]]")]
    rows = re.findall(r"^\|([MFIS]\d+(?:, [MFIS]\d+)*)$", table, re.MULTILINE)
    return {number for row in rows for number in row.split(", ")}


def test_requirements_are_numbered_once_and_name_a_class() -> None:
    names: list[str] = []
    for letter, number, name, of_class, _ in REQUIREMENT.findall(TEXT):
        assert name == letter + number
        assert of_class in CLASSES, name
        names.append(name)
    assert len(names) == len(set(names)) == TEXT.count("[[R-")
    retired = numbers_not_used()
    assert retired.isdisjoint(names)
    assert {f"{a}{k}" for a, last in USED_BEFORE.items() for k in range(1, last + 1)} <= {
        *retired,
        *names,
    }
    assert len(names) == 47


def test_each_requirement_has_a_test_in_the_kit() -> None:
    """Those of FMUs are judged by the checker, those of importers and systems by a case."""
    kit = PROPOSAL / "kit"
    page = (kit / "index.md").read_text(encoding="utf-8")
    table = page[page.index("## Which test shows which requirement") :]
    rows = re.findall(r"^\| ([MFIS]\d.*?) \| (.*) \|$", table, re.MULTILINE)
    shown = [number for numbers, _ in rows for number in numbers.split(", ")]
    assert sorted(shown) == sorted(name for _, _, name, _, _ in REQUIREMENT.findall(TEXT))
    checker = "".join(
        p.read_text(encoding="utf-8") for p in kit.glob("*.py") if p.name != "report.py"
    )
    cases = json.loads((kit / "cases.json").read_text(encoding="utf-8"))["cases"]
    known = {case["name"] for case in cases} | {f"the class {case['class']}" for case in cases}
    for numbers, shown_by in rows:
        if numbers[0] in "MF":
            assert all(f'"{number}"' in checker for number in numbers.split(", ")), numbers
        else:
            assert any(name in shown_by for name in known), numbers


def test_a_requirement_has_a_key_word_of_rfc_2119_and_other_normative_text_has_none() -> None:
    requirements = {name: text for _, _, name, _, text in REQUIREMENT.findall(TEXT)}
    without = {name for name, text in requirements.items() if not re.search(KEY_WORDS, text)}
    assert without == set()
    rest = REQUIREMENT.sub("", NORMATIVE)
    notes = re.sub(r"^NOTE: .+(\n.+)*", "", rest, flags=re.MULTILINE)
    assert re.findall(rf"^.*{KEY_WORDS}.*$", notes, re.MULTILINE) == []


def test_every_reference_has_a_target_and_every_link_a_file() -> None:
    targets = {d: set(re.findall(r"\[\[([\w-]+)\]\]", text)) for d, text in TEXTS.items()}
    for document, text in TEXTS.items():
        assert set(re.findall(r"<<([\w-]+),", text)) <= targets[document]
        for file, place in re.findall(r"link:([\w./-]+)(?:#([\w-]+))?\[", text):
            assert (PROPOSAL / document / file.replace(".html", ".adoc")).exists(), file
            assert not place or place in targets[file.split("/")[1]], place
    assert re.findall(r"<<[\w-]+>>", TEXT) == []  # the two renderers make other texts of it


def test_the_text_names_every_element_and_attribute_of_the_schemas() -> None:
    for path in (MANIFEST, POLYNOMIALS, SYSTEM):
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
@pytest.mark.parametrize("document", DOCUMENTS)
def test_asciidoctor_renders_it_without_a_complaint(document: str, tmp_path: Path) -> None:
    """It is what the FMI project uses, with these options."""
    command = ["asciidoctor", "-b", "html5", "--failure-level", "INFO", "-v"]
    command += ["-o", str(tmp_path / "index.html"), str(PROPOSAL / document / "index.adoc")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def pages() -> Any:
    if find_spec("asciidoc") is None:
        pytest.skip("asciidoc is not installed")
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import asciidoc_pages  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    rendered = {d: asciidoc_pages.render(PROPOSAL / d / "index.adoc") for d in DOCUMENTS}
    return rendered, asciidoc_pages


def test_the_documentation_renders_it(pages: Any) -> None:
    rendered, tool = pages
    for document, root in rendered.items():
        identifiers = {e.get("id") for e in root.iter("*") if e.get("id")}
        local = {a.get("href")[1:] for a in root.iter("a") if a.get("href", "").startswith("#")}
        assert local <= identifiers
        requirements = {f"R-{a}{b}" for a, b, *_ in REQUIREMENT.findall(TEXTS[document])}
        assert requirements <= identifiers
        [title] = tool.contents(root)
        sections = [c["name"][:2] for c in title["children"]]
        assert sections == [f"{k}." for k in range(1, len(sections) + 1)]
        assert title["name"].startswith("FMI Layered Standard for ")


def test_requirements_are_not_inside_of_other_lists(pages: Any) -> None:
    """A list right after another one would become a part of it."""
    for root in pages[0].values():
        assert root.xpath(".//li//dt[@id] | .//dd//dt[@id]") == []


def test_examples_are_shown_in_colours(pages: Any) -> None:
    root = pages[0]["events"]
    [block, *_] = root.xpath(".//div[@class='highlight']//code[contains(., 'Event')]")
    assert block.xpath(".//span[@class='nt']")
    assert "&lt;" not in block.text_content()
