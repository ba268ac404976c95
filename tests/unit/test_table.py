"""A CSV file as a component."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fmimaster.base.errors import CallError, FileError
from fmimaster.fmu.computed import SignalTable, TableInstance
from fmimaster.fmu.load import Loader
from fmimaster.system.description import Component, Connector
from fmimaster.system.model import Causality, DataType, Source


def table(time: list[float], **columns: list[Any]) -> SignalTable:
    """Columns whose names begin with n are Int32, with b Boolean, all others Float64."""
    kinds = {"n": DataType.INT32, "b": DataType.BOOLEAN}
    types = {name: kinds.get(name[0], DataType.FLOAT64) for name in columns}
    arrays = {name: np.array(c, types[name].dtype) for name, c in columns.items()}
    return SignalTable("table", np.array(time, float), arrays, types)


def at(t: SignalTable, name: str, *times: float) -> list[Any]:
    variable = t.model.variable(name)
    assert variable is not None
    return [t.signals[variable.value_reference](time) for time in times]


def test_floats_are_interpolated_linearly() -> None:
    assert at(table([0, 1, 3], u=[0, 2, 6]), "u", 0, 0.25, 1, 2, 3) == [0, 0.5, 2, 4, 6]


def test_all_other_types_keep_their_value_until_the_next_row() -> None:
    t = table([0, 1, 2], n=[5, 7, 9], b=[False, True, False])
    assert at(t, "n", 0, 0.999, 1, 1.5, 2) == [5, 5, 7, 7, 9]
    assert at(t, "b", 0.5, 1, 1.999, 2) == [False, True, True, False]


def test_outside_of_the_table_the_nearest_value_counts() -> None:
    t = table([1, 2], u=[3, 4], n=[5, 6])
    assert at(t, "u", 0, 9) == [3, 4]
    assert at(t, "n", 0, 9) == [5, 6]


def test_at_a_jump_the_later_row_counts() -> None:
    t = table([0, 1, 1, 2], u=[0, 1, 5, 6])
    assert at(t, "u", 1.0, 1.5) == [5, 5.5]
    assert at(t, "u", np.nextafter(1.0, 0.0)) == pytest.approx([1], abs=1e-15)


def test_the_slope_to_the_right_is_an_output() -> None:
    t = table([0, 1, 1, 2], u=[0, 2, 5, 4])
    assert at(t, "der(u)", 0, 0.5, 1, 1.5) == [2, 2, -1, -1]
    slope = t.model.variable("der(u)")
    assert slope is not None
    assert slope.derivative_of == "u"


def test_outside_of_the_table_the_slope_is_zero() -> None:
    assert at(table([0, 1], u=[0, 2]), "der(u)", -1, 1, 2) == [0, 0, 0]


def test_held_signals_have_no_slope() -> None:
    t = table([0, 1], n=[1, 2], u=[0, 1])
    assert [v.name for v in t.model.variables] == ["n", "u", "der(u)", "left(n)"]
    assert at(t, "der(u)", 0.5) == [1]


def test_jumps_are_repeated_times_and_changes_of_held_signals() -> None:
    t = table([0, 1, 1, 2, 3, 4], u=[0, 1, 5, 6, 7, 8], n=[1, 1, 1, 1, 2, 2])
    assert t.jumps() == {1.0: {"u"}, 3.0: {"n"}}


def test_equal_rows_at_one_time_are_no_jump() -> None:
    t = table([0, 1, 1, 2, 2, 2], u=[0, 5, 5, 6, 7, 6], n=[1, 1, 1, 1, 2, 1])
    assert t.jumps() == {}


def test_a_table_of_one_row_is_constant() -> None:
    t = table([1], u=[7])
    assert at(t, "u", 0, 1, 2) == [7, 7, 7]
    assert t.jumps() == {}


# As an instance -------------------------------------------------------------------------------------------------------


def test_an_instance_reads_where_it_stands_and_goes_back_where_it_was_saved() -> None:
    instance = TableInstance(table([0, 8], u=[0, 80], w=[0, -80]), "input")
    values = np.zeros(2)
    read = instance.getter(DataType.FLOAT64, [1, 0], values)
    instance.enter_initialization_mode(2.0, None, None)
    read()
    assert values.tolist() == [-20, 20]
    instance.save(0)
    assert instance.do_step(2.0, 1.5) is None
    read()
    assert values.tolist() == [-35, 35]
    instance.restore(0)
    read()
    assert values.tolist() == [-20, 20]


def test_a_table_has_nothing_to_set() -> None:
    instance = TableInstance(table([0], u=[0]), "input")
    with pytest.raises(
        CallError,
        match=r"SetFloat64 was called for 'input', which does not have variables that can be set",
    ):
        instance.setter(DataType.FLOAT64, [0], np.zeros(1))


# Through the loader ---------------------------------------------------------------------------------------------------


def component(path: Path, **kinds: DataType) -> Component:
    connectors = tuple(Connector(n, Causality.OUTPUT, kind) for n, kind in kinds.items())
    return Component("input", Source(path), connectors)


def test_a_csv_file_is_loaded_with_the_types_of_its_connectors(tmp_path: Path) -> None:
    path = tmp_path / "input.csv"
    path.write_text("time,u,n\n0,0,1\n1,2,3\n", encoding="utf-8")
    with Loader() as loader:
        source = component(path, n=DataType.INT32)
        model = loader.model(source)
        assert [(v.name, v.type) for v in model.variables] == [
            ("u", DataType.FLOAT64),
            ("n", DataType.INT32),
            ("der(u)", DataType.FLOAT64),
            ("left(n)", DataType.INT32),
        ]
        assert loader.table(source).columns["n"].tolist() == [1, 3]


def test_what_is_neither_an_fmu_nor_a_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_text("", encoding="utf-8")
    with (
        pytest.raises(FileError, match=r"is neither an FMU \(\.fmu\) nor a table \(\.csv\)"),
        Loader() as loader,
    ):
        loader.model(component(path))


def test_rows_are_moved_in_a_copy_with_those_between() -> None:
    t = table([0, 0.25, 0.3, 3 * 0.1, 1], u=[0, 1, 2, 5, 6])
    moved = t.moved({3 * 0.1: 0.3, 0.25: 0.2})
    assert moved.time.tolist() == [0, 0.2, 0.3, 0.3, 1]
    assert moved.model == t.model
    assert at(moved, "u", 0.2, 0.3) == [1, 5]
    assert t.time.tolist() == [0, 0.25, 0.3, 3 * 0.1, 1]


def test_many_rows_are_moved_at_once() -> None:
    """One array for all of them: one array for each took some seconds."""
    times = [k * 0.1 for k in range(10_000)]
    t = table(times, u=times)
    begin = time.process_time()
    moved = t.moved({before: round(before, 1) for before in times})
    assert time.process_time() - begin < 1
    assert moved.time.tolist() == [k / 10 for k in range(10_000)]
