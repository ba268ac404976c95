"""Reader and schema of the proposal accept and refuse the same files.

Thousands of small changes to a manifest and to shared events are read by both. What a schema cannot say is told by the
reader alone, by one of a few rules.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from event_fmus import EVENTS, VARIABLES, event_fmu, event_system, manifest
from lxml import etree
from proposal_schemas import MANIFEST, PROPOSAL, SYSTEM, schema

from fmimaster.base.errors import DescriptionError, FileError, ModelError
from fmimaster.fmu.event_manifest import extend
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest import NAMESPACE, Manifest
from fmimaster.system.model import Model, Source
from fmimaster.system.read import read_system
from fmimaster.system.shared_events import check_each_once

MUTATIONS = (300, pytest.param(1000, marks=pytest.mark.thorough))
SEED = 20170601

BEYOND_THE_SCHEMA = (
    r"no manifest of this standard",  # libxml2 does not always check the fixed value of the name
    r"is not a variable of the FMU",
    r"is an? \w+ \w+( array)? \w+\. Expected",
    r"is (private|coupled) and has a (Payload|Contact)",
    r"two values of the Policy are the same",
    r"starts at .*, but execute is",
    r"has one of parameter and value",
    r"there is an InputPolynomial for '.*' already",
    r"has \d dimensions",
)
"""Rules that XML Schema 1.0 cannot express, by the reader's messages."""

TEXTS: tuple[str, ...] = (
    "",
    " ",
    "a",
    "ceiling",
    "0",
    "1",
    "+1",
    " 1 ",
    "1_0",
    "٣",
    "1.0",
    "2147483648",
    "-2147483648",
)
TEXTS += (
    "true",
    "false",
    "True",
    "private",
    "private ",
    "shared",
    "1e-6",
    "2",
    "nan",
    "INF",
    "-1",
    "x\u00a0",
)
NAMES: tuple[str, ...] = (
    "Event",
    "Indicator",
    "Payload",
    "Contact",
    "Policy",
    "LookAhead",
    "InputPolynomial",
    "Annotations",
    "Annotation",
)
NAMES += ("SharedEvent", "Member", "Partner", "Unheard", "{urn:other}Thing", "{urn:other}Event")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = event_fmu(tmp_path_factory.mktemp("fmu") / "a.fmu", None, variables=VARIABLES)
    fmu = FmuFile(Source(path))
    fmu.close()
    return fmu.model


def is_ours(element: Any, prefix: str) -> bool:
    """Not inside of what others may add: a schema validates there only what it happens to know."""
    outside = (element, *element.iterancestors())
    return all(
        e.tag.startswith(prefix) and "{" not in e.tag.removeprefix(prefix) for e in outside
    ) and not any(e.tag == f"{prefix}Annotation" for e in outside)


def change(root: Any, r: random.Random, prefix: str) -> None:
    """One small change somewhere in a document."""
    element = r.choice([e for e in root.iter("*") if is_ours(e, prefix)])
    attributes = sorted({name for e in root.iter("*") for name in e.attrib if "{" not in name})
    name = r.choice(NAMES)
    below = etree.Element(name if "{" in name or r.random() < 0.1 else prefix + name)
    parent = element.getparent()
    match r.randrange(10):
        case 0 if parent is not None:
            parent.remove(element)
        case 1 if parent is not None:
            parent.insert(r.randrange(len(parent) + 1), copy.deepcopy(element))
        case 2 if parent is not None:
            parent.insert(r.randrange(len(parent)), element)
        case 3 if element.attrib:
            del element.attrib[r.choice(sorted(element.attrib))]
        case 4:
            element.set(r.choice([*attributes, "colour", "{urn:other}colour"]), r.choice(TEXTS))
        case 5 if element.attrib:
            element.set(r.choice(sorted(a for a in element.attrib)), r.choice(TEXTS))
        case 6:  # at any place
            element.insert(r.randrange(len(element) + 1), below)
        case 7 if len(element):
            r.choice(list(element)).tail = r.choice(("text", "\n ", "\u00a0"))
        case 8:
            element.insert(0, etree.Comment("anything"))
        case _:
            element.text = r.choice(("text", "  ", ""))


def compare(
    text: bytes,
    prefix: str,
    accepts: Callable[[Any], bool],
    problems: Callable[[bytes], Sequence[str]],
    mutations: int,
) -> dict[str, int]:
    """Change a document again and again; how often it was valid, invalid, or refused by the reader's own rules."""
    r = random.Random(SEED)
    counts = {"valid": 0, "invalid": 0, "by rules": 0}
    for _ in range(mutations):
        root = etree.fromstring(text, etree.XMLParser(remove_blank_text=True))
        for _ in range(r.randint(1, 3)):
            change(root, r, prefix)
        mutated = etree.tostring(root)
        valid, found = accepts(etree.fromstring(mutated)), problems(mutated)
        if valid and found:
            for problem in found:
                assert any(re.search(rule, problem) for rule in BEYOND_THE_SCHEMA), (
                    mutated.decode(),
                    problem,
                )
            counts["by rules"] += 1
        else:
            assert valid == (not found), (mutated.decode(), found)
            counts["valid" if valid else "invalid"] += 1
    return counts


def of_manifest(text: bytes, model: Model) -> Sequence[str]:
    root: Any = etree.fromstring(text, etree.XMLParser(remove_comments=True, remove_pis=True))
    name, version = (root.get(f"{{{NAMESPACE}}}fmi-ls-{a}") for a in ("name", "version"))
    if name != "org.fmimaster.fmi-ls-events" or version is None:
        return ["no manifest of this standard"]  # told by find_manifest
    try:
        extend(Manifest(root, name, (0, 3), "manifest"), model)
    except ModelError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("mutations", MUTATIONS)
def test_a_manifest_is_accepted_by_the_reader_if_the_schema_accepts_it(
    model: Model, mutations: int
) -> None:
    document = schema(MANIFEST)
    annotation = (
        "<Annotations><Annotation type='a'>any <b xmlns='urn:b'/></Annotation></Annotations>"
    )
    text = manifest(EVENTS + annotation + "<o:Thing xmlns:o='urn:other'/>")
    assert document.validate(etree.fromstring(text))
    assert of_manifest(text, model) == ()
    counts = compare(text, "", document.validate, lambda t: of_manifest(t, model), mutations)
    assert min(counts.values()) > mutations / 20


@pytest.mark.parametrize("mutations", MUTATIONS)
def test_shared_events_are_accepted_by_the_reader_if_the_schema_accepts_them(
    tmp_path: Path, mutations: int
) -> None:
    document = schema(SYSTEM)
    example = etree.parse(PROPOSAL / "examples" / "three-balls-system.xml")
    [element] = example.iter("{https://fmimaster.org/fmi-ls-events}SharedEvents")
    text = etree.tostring(element, with_tail=False)

    def problems(text: bytes) -> Sequence[str]:
        inside = (
            f'<ssc:Annotation type="org.fmimaster.fmi-ls-events">{text.decode()}</ssc:Annotation>'
        )
        try:
            description = read_system(event_system(tmp_path, inside))
            check_each_once(description.system.shared_events)
        except (FileError, DescriptionError) as error:
            return [str(error)]
        return []

    assert problems(text) == []
    prefix = "{https://fmimaster.org/fmi-ls-events}"
    counts = compare(text, prefix, document.validate, problems, mutations)
    assert counts.pop("by rules") == 0
    assert min(counts.values()) > mutations / 20
