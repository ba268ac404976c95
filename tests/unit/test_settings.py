"""A setting is its field, its text, and its row: they have the same names."""

from __future__ import annotations

import re
from dataclasses import fields
from inspect import cleandoc
from typing import Any

import pytest

from fmimaster import OptionError, Simulation
from fmimaster.base.public_names import at_place
from fmimaster.commands.parser import GROUPS, CommandParser
from fmimaster.configure.setting_kinds import Row
from fmimaster.configure.setting_rows import ROWS, TABLE
from fmimaster.configure.settings import Settings

OPTIONS = [row for row in TABLE if row.option is not None]


def test_each_setting_has_a_field_a_text_and_a_row() -> None:
    settings = {f.name for f in fields(Settings)}
    described = re.findall(r"^(\w+) : ", cleandoc(Settings.__doc__ or ""), re.MULTILINE)
    assert len(described) == len(set(described))
    assert ROWS.keys() == settings == set(described)
    assert len(ROWS) == sum(not row.is_part for row in TABLE)


@pytest.mark.parametrize("row", OPTIONS, ids=lambda row: row.name)
def test_each_option_has_a_group_and_a_help(row: Row) -> None:
    parser = CommandParser(command="simulate", prog="fmimaster simulate")
    parser.fill()
    action = parser._option_string_actions[row.spelled]
    assert action.dest == row.name
    assert len(str(action.help)) > 10
    assert row.option is not None
    assert row.option.group in GROUPS


@pytest.mark.parametrize("row", [r for r in ROWS.values() if r.not_with], ids=lambda row: row.name)
def test_settings_that_exclude_each_other_are_refused_with_the_reason(row: Row) -> None:
    for other, why in row.not_with.items():
        given: dict[str, Any] = {row.name: 1e-3, other: "file" if ROWS[other].is_file else 1e-3}
        with pytest.raises(OptionError, match=re.escape(why)):
            Simulation("a.fmu", **given)


def test_what_a_setting_cannot_go_with_is_a_setting() -> None:
    assert {other for row in TABLE for other in row.not_with} <= ROWS.keys()


def test_a_setting_that_is_not_given_has_its_default_read() -> None:
    defaults = Simulation("a.fmu")
    for f in fields(Settings):
        value = getattr(defaults, f.name)
        assert ROWS[f.name].value(value) == value, f.name


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_what_a_row_names_by_its_place_exists(row: Row) -> None:
    named = [row.read, row.instance[0] if row.instance else "", row.convert]
    places = [place for place in named if isinstance(place, str) and place]
    assert all(callable(at_place(place)) for place in places)
