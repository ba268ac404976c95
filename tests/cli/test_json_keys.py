"""The keys that docs/json.md lists are those that the commands print."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import Outcome, reference

Run = Callable[..., Outcome]

PAGE = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")


def documented(command: str) -> list[dict[str, tuple[set[str], bool]]]:
    """For each table of a section: key → the keys inside of it, and whether names of the system are keys there too."""
    section = re.search(rf"^## {command}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert section is not None
    tables: list[dict[str, tuple[set[str], bool]]] = []
    for line in section[1].splitlines():
        if line.startswith("| Key"):
            tables.append({})
        elif line.startswith("| `"):
            keys, inside = line.strip("| ").split(" | ", 1)
            for key in re.findall(r"`(\w+)`", keys):
                tables[-1][key] = set(re.findall(r"`(\w+)`", inside)), "NAME" in inside
    return tables


def keys_inside(value: Any) -> Iterator[str]:
    """All keys of what is nested in a value."""
    if isinstance(value, dict):
        yield from value
    for part in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from keys_inside(part)


def check(answer: dict[str, Any], table: dict[str, tuple[set[str], bool]]) -> None:
    assert set(answer) == set(table)
    for key, (inside, has_names) in table.items():
        printed = set(keys_inside(answer[key]))
        names = set() if not has_names else {k for k in printed if k not in inside}
        assert printed - names <= inside, key


CAR = "systems/quarter-car-a-fmi3.ssp"
MASSES = "systems/two-mass-b1-fmi3.ssp"


@pytest.mark.parametrize(
    ("command", "table", "arguments"),
    [
        ("simulate", 0, (CAR, "--stop-time", "0.1", "--step-size", "0.01")),
        ("info", 0, ("fmi3/TwoMassUpper.fmu",)),
        ("info", 0, ("fmi2/Dahlquist.fmu",)),
        ("info", 0, ("fmi3/ClockKinds.fmu",)),
        ("info", 1, (MASSES,)),
        ("info", 1, (CAR,)),
        ("probe", 0, ("fmi3/BouncingBall.fmu",)),
        ("plan", 0, (MASSES, "--event-clock", "predictive", "--programs")),
        ("plan", 0, (CAR, "--algorithm", "gauss-seidel")),
        ("plan", 0, ("systems/rope-fmi3.ssp",)),
        ("plan", 0, ("fmi3/Partitions.fmu", "--stop-time", "1")),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_keys_are_those_of_the_page(
    run: Run, command: str, table: int, arguments: tuple[str, ...]
) -> None:
    path, *options = arguments
    answer = json.loads(run(command, reference(path), *options, "--json").out)
    check(answer, documented(command)[table])


def test_a_comparison_and_the_steps_have_the_keys_of_the_page(run: Run, tmp_path: Path) -> None:
    masses, file = reference(MASSES), tmp_path / "a.csv"
    options = ("--event-clock", "look-ahead", "--stop-time", "1", "--output-file", file)
    assert run("simulate", masses, *options).status == 0
    check(json.loads(run("steps", file, "--json").out), documented("steps")[0])
    compared = run("simulate", masses, "--stop-time", "1", "--reference-file", file, "--json")
    check(json.loads(compared.out), documented("simulate")[0])


def test_findings_have_the_keys_of_the_page(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.fmu"
    file.write_text("no zip", encoding="utf-8")
    (finding,) = json.loads(run("validate", file, "--json").out)
    assert set(finding) == {"place", "severity", "what", "advice"}
    assert all(f"`{key}`" in PAGE.partition("## validate")[2] for key in finding)


def test_the_keys_of_export(run: Run, tmp_path: Path) -> None:
    system = reference("systems/quarter-car-a-fmi3.ssp")
    printed = run("export", system, "--output-file", tmp_path / "car.fmu", "--json").out
    (table,) = documented("export")
    check(json.loads(printed), table)
