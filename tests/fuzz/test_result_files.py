"""Hostile tables and files of facts: read, shown, plotted as input, or refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facts_files import read_facts
from fuzzing import survives
from hypothesis import given, settings
from mutations import edited_bytes, edited_json

from fmimaster.commands.steps import _page
from fmimaster.fmu.computed import SignalTable, TableInstance
from fmimaster.record.causes import Activations, Cause, Event, Kind, Steps
from fmimaster.results.csv import read_csv, write_csv
from fmimaster.results.facts import Facts, facts_path
from fmimaster.results.facts_writer import lines
from fmimaster.system.model import DataType

TABLES = [
    b"time,u\n0,1\n1,2.5\n",
    b'"time","a.x","n[1,2]"\n0.0,-1e-3,1\n1.0,nan,2\n1.0,inf,3\n',
    b'time, name, m\n0, "a ""quoted"" text, with a comma", 1\n\n1, "b\nc", \n',
    b"\xef\xbb\xbftime,x\r\n0,1\r\n1e300,2\r\n",
]

CAUSE = Cause(Kind.EARLY_RETURN, ("upper", "lower"))
WRITTEN = "\n".join(
    lines(
        [
            Event(
                0.25,
                1,
                "collision",
                True,
                ("upper", "lower"),
                CAUSE,
                {"upper.v": 1.0},
                {"upper.v": -1.0},
            ),
            Event(
                1.0, 2, "tick", False, ("a",), CAUSE, {"x": [1.0, [2.0, float("nan")]]}, {"x": "b"}
            ),
        ],
        [Steps(0.0, 0.25, CAUSE), Steps(0.25, 1.0, Cause(Kind.GRID), 3)],
        [
            Activations("a.tick", Fraction(0), Fraction(1), 11, Fraction(1, 10)),
            Activations("b.late", Fraction(1, 3), Fraction(1, 3), 1, None),
        ],
        {"u": "m/s"},
        {"settings": {"stop_time": 1.0}},
    )
)
FACTS = json.loads(WRITTEN)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "a.csv"


@settings(max_examples=150)
@given(document=edited_bytes(TABLES))
def test_a_table(document: bytes, table: Path) -> None:
    table.write_bytes(document)
    table.with_name("a.csv.json").unlink(missing_ok=True)
    read: Any = survives(read_csv, table)
    if isinstance(read, Exception):
        return
    copy = table.with_name("copy.csv")
    write_csv(read, copy)
    again = read_csv(copy)
    assert again.names == read.names
    assert again.time.tolist() == read.time.tolist()
    survives(_used_as_input, read)


def _used_as_input(read: Any) -> None:
    if not read.rows:
        return
    numbers = {
        n: v for n, v in read.columns.items() if v.dtype.kind == "f" and not np.ma.is_masked(v)
    }
    signals = SignalTable("table", read.time, numbers, dict.fromkeys(numbers, DataType.FLOAT64))
    signals.jumps()
    instance = TableInstance(signals, "table")
    values = np.zeros(2 * len(numbers))
    instance.enter_initialization_mode(0.0, None, None)
    instance.do_step(0.0, 0.5)
    with np.errstate(all="ignore"):
        instance.getter(DataType.FLOAT64, range(2 * len(numbers)), values)()


@settings(max_examples=150)
@given(document=edited_bytes([json.dumps(FACTS, indent=1).encode(), json.dumps(FACTS).encode()]))
def test_a_file_of_facts(document: bytes, table: Path) -> None:
    _facts_survive(document, table)


@settings(max_examples=150)
@given(document=edited_json(lambda: WRITTEN))
def test_facts_of_other_types(document: bytes, table: Path) -> None:
    _facts_survive(document, table)


@settings(max_examples=150)
@given(document=edited_bytes([WRITTEN.encode()]))
def test_facts_that_are_read_line_by_line(document: bytes, table: Path) -> None:
    _facts_survive(document, table)


def _facts_survive(document: bytes, table: Path) -> None:
    table.with_name("a.csv.json").write_bytes(document)
    facts = Facts(facts_path(table))
    read: Any = survives(
        lambda: (*read_facts(table), tuple(facts.activations()), facts.units(), facts.metadata())
    )
    if not isinstance(read, Exception):
        survives(lambda: "\n".join(_page(facts)))
        survives(lambda: json.loads("\n".join(lines(*read))))
