"""Rows on their way from the executor to the results."""

from __future__ import annotations

import gc
import threading
import tracemalloc
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from fuzzing import survives
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu, describe, plan_of

from fmimaster import reference_path
from fmimaster.base.errors import NotANumberError
from fmimaster.front.simulation import Simulation
from fmimaster.plan.layout import Group, Signal, make_layout
from fmimaster.plan.variables import Chosen, place_columns
from fmimaster.program.store import ValueStore
from fmimaster.results.csv import CsvWriter
from fmimaster.results.kept_rows import KeptRows, _Part
from fmimaster.results.recorder import Recorder
from fmimaster.run import rows as run_rows
from fmimaster.run.executor import Backend
from fmimaster.run.rows import RowBlock
from fmimaster.system.model import DataType, Variability
from fmimaster.system.resolve import resolve


class Column(NamedTuple):
    """A column as the recorder sees it."""

    name: str
    type: str
    column: slice
    shape: tuple[int, ...] = ()
    unit: str = ""
    present: tuple[str, tuple[int, ...]] | None = None
    is_signal: bool = False

    def converted(self, values: np.ndarray) -> np.ndarray:
        return values


COLUMNS = (Column("x", "float", slice(0, 1), unit="m"), Column("m", "float", slice(1, 5), (2, 2)))


def block(times: list[float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows in which x is the time and m has its multiples."""
    t = np.array(times)
    return t, {"float": np.column_stack([t, t, 2 * t, 3 * t, 4 * t]).reshape(len(t), 5)}


def test_blocks_become_columns_with_their_shapes_and_units() -> None:
    recorder = Recorder(COLUMNS)
    recorder.take(*block([0.0, 1.0]))
    recorder.take(*block([2.0]))
    results = recorder.results()
    assert results.time.tolist() == [0, 1, 2]
    assert results["x"].tolist() == [0, 1, 2]
    assert results["m"][2].tolist() == [[2, 4], [6, 8]]
    assert results.units == {"x": "m"}


def test_without_any_row_the_columns_are_empty() -> None:
    results = Recorder(COLUMNS).results()
    assert (results.rows, results["m"].shape) == (0, (0, 2, 2))


def test_with_an_interval_the_first_row_at_or_after_each_multiple_is_kept() -> None:
    recorder = Recorder(COLUMNS, start=1.0, interval=0.5)
    recorder.take(*block([1.0, 1.1, 1.4, 1.6, 1.7, 2.0, 3.3]))
    assert recorder.results().time.tolist() == [1.0, 1.6, 2.0, 3.3]


@pytest.mark.parametrize("interval", [0.1, 0.3])
def test_a_point_of_the_output_grid_counts_in_spite_of_rounding(interval: float) -> None:
    t = [k / 10 for k in range(31)]  # 0.6 / 0.1 is below 6 in doubles
    recorder = Recorder(COLUMNS, interval=interval)
    recorder.take(*block(t))
    assert recorder.results().time.tolist() == t[:: round(10 * interval)]


times = st.lists(st.floats(0, 10), min_size=1, max_size=20).map(sorted)


@given(times, st.integers(0, 20), st.sampled_from([None, 0.1, 1.0, 3.0]))
def test_how_rows_are_cut_into_blocks_does_not_matter(
    t: list[float], cut: int, interval: float | None
) -> None:
    whole, parts = (Recorder(COLUMNS, interval=interval) for _ in range(2))
    whole.take(*block(t))
    parts.take(*block(t[:cut]))
    parts.take(*block(t[cut:]))
    assert parts.results().time.tolist() == whole.results().time.tolist()
    assert parts.results()["m"].tolist() == whole.results()["m"].tolist()


# NaN and infinity -----------------------------------------------------------------------------------------------------


def broken(value: float = np.nan) -> tuple[np.ndarray, dict[str, Any]]:
    t, values = block([0.0, 1.0, 2.0])
    values["float"][1, 3] = value
    return t, values


NOT_FINITE = [(np.nan, "NaN"), (np.inf, "infinite"), (-np.inf, "infinite")]


@pytest.mark.parametrize(("value", "what"), NOT_FINITE)
def test_a_value_that_is_not_finite_is_an_error_that_names_the_output_and_the_time(
    value: float, what: str
) -> None:
    with pytest.raises(
        NotANumberError, match=rf"Output 'm' is {what} at t = 1 s.*--allow-nan"
    ) as caught:
        Recorder(COLUMNS).take(*broken(value))
    assert caught.value.time == 1.0


def test_of_values_that_are_not_finite_the_first_is_reported() -> None:
    t, values = broken(np.inf)
    values["float"][2, 0] = np.nan
    with pytest.raises(NotANumberError, match=r"Output 'm' is infinite at t = 1 s"):
        Recorder(COLUMNS).take(t, values)


@pytest.mark.parametrize(("value", "_"), NOT_FINITE)
def test_rows_before_a_value_that_is_not_finite_are_kept(value: float, _: str) -> None:
    recorder = Recorder(COLUMNS)
    recorder.take(*block([-1.0]))
    with pytest.raises(NotANumberError):
        recorder.take(*broken(value))
    assert recorder.results().time.tolist() == [-1.0, 0.0]


@pytest.mark.parametrize(("value", "_"), NOT_FINITE)
def test_values_that_are_not_finite_may_be_allowed(value: float, _: str) -> None:
    recorder = Recorder(COLUMNS, allow_nan=True)
    recorder.take(*broken(value))
    assert recorder.results().rows == 3


# Memory ---------------------------------------------------------------------------------------------------------------


def test_what_is_reserved_for_rows_to_come_has_a_limit_in_bytes() -> None:
    """75 GiB would be needed for so many rows of 1000 outputs."""

    def record() -> int:
        columns = [Column(f"y{k}", "float", slice(k, k + 1)) for k in range(1000)]
        recorder = Recorder(columns, expected_rows=10**7)
        for k in range(3):
            recorder.take(np.array([float(k)]), {"float": np.full((1, 1000), float(k))})
        return recorder.results().rows

    assert survives(record) == 3


@pytest.mark.parametrize("expected", [0, 3, 30, 1000])
def test_more_or_fewer_rows_come_than_were_expected(
    expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.results.kept_rows.PART_BYTES", 100)
    recorder = Recorder(COLUMNS, expected_rows=expected)
    for k in range(0, 50, 5):
        recorder.take(*block([float(n) for n in range(k, k + 5)]))
        results = recorder.results()
        assert results.time.tolist() == results["x"].tolist() == list(range(k + 5))
        assert results["m"][:, 1, 0].tolist() == [3.0 * n for n in range(k + 5)]


@pytest.mark.parametrize("expected", [0, 100_000], ids=["unknown", "expected"])
def test_rows_take_little_more_memory_than_themselves(
    expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is twice as much reserved while they come. Then their parts are freed."""
    monkeypatch.setattr("fmimaster.results.kept_rows.PART_BYTES", 2**16)
    columns = [Column("y", "float", slice(0, 1))]
    times, values = np.arange(1000.0), np.ones((1000, 1))
    tracemalloc.start()
    try:
        recorder = Recorder(columns, expected_rows=expected)
        for k in range(100):
            recorder.take(times + 1000 * k, {"float": values})
        _, reserved = tracemalloc.get_traced_memory()
        results = recorder.results()
        present, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = results.time.nbytes + results["y"].nbytes
    assert results.rows == 100_000
    assert reserved < 1.1 * size
    assert present < 1.1 * size


def test_rows_that_are_written_to_a_file_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """18 blocks more take less memory than half of one."""
    block = 2**16
    monkeypatch.setattr("fmimaster.run.rows.BLOCK_BYTES", block)

    def peak(steps: int) -> int:
        run = Simulation(reference_path("fmi3/Dahlquist.fmu"), stop_time=steps, step_size=1.0)
        gc.collect()
        tracemalloc.start()
        try:
            results = run.run(output_file=tmp_path / "run.csv")
            assert results.statistics.rows == steps + 1
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    rows = block // (2 * 8)
    peak(rows)  # what is made once
    assert peak(20 * rows) - peak(2 * rows) < block / 2


def test_rows_that_are_made_where_they_are_kept_are_not_copied() -> None:
    kept, like = KeptRows(expected=10, row_bytes=16), {"f": np.empty((0, 1))}
    assert kept.room_for(11, 11, like) is None
    first = kept.room_for(10, 11, like)
    assert first is not None
    assert kept.joined()[1]["f"].shape == (0, 1)
    first[0][0], first[1]["f"][0] = 0.0, 5.0
    kept.append(first[0][:1], {"f": first[1]["f"][:1]})
    more, made = kept.room_for(2, 3, like), kept.room_for(2, 2, like)
    assert made is not None
    assert more is not None
    times, values = made
    assert [len(more[0]), len(more[1]["f"]), len(times)] == [3, 3, 2]
    times[:], values["f"][:, 0] = (1.0, 2.0), (6.0, 7.0)
    kept.append(times[:1], {"f": values["f"][:1]})
    kept.append(times[1:], {"f": values["f"][1:]})
    assert kept.room_for(10**7, 10**8, like) is None
    kept.append(np.array([3.0]), {"f": np.array([[8.0]])})
    joined = kept.joined()
    assert joined[0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert joined[1]["f"].tolist() == [[5.0], [6.0], [7.0], [8.0]]
    assert np.shares_memory(joined[1]["f"], values["f"])
    assert np.shares_memory(joined[1]["f"], first[1]["f"])


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_blocks_of_a_run_follow_each_other(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are made where they are kept, from the first one on; values of clocks and of several types, too."""
    settings: dict[str, Any] = {"stop_time": 3.0, "step_size": "1/1000", "backend": backend}
    system = reference_path("fmi3/BouncingBall.fmu")
    expected = Simulation(system, **settings).run()
    lent = list[bool]()
    move = RowBlock.move

    def noted(self: RowBlock, memory: Any) -> None:
        lent.append(memory is not None)
        move(self, memory)

    monkeypatch.setattr(run_rows, "MOST_ROWS", 50)
    monkeypatch.setattr(run_rows, "LEAST_ROWS", 50)
    monkeypatch.setattr(run_rows, "SPARE_ROWS", 64)
    monkeypatch.setattr(RowBlock, "move", noted)
    found = Simulation(system, **settings).run()
    assert lent[0]
    assert lent.count(True) > 10
    assert found.time.tobytes() == expected.time.tobytes()
    for name in expected.names:
        assert found[name].tobytes() == expected[name].tobytes()


# The block of rows in the executor ------------------------------------------------------------------------------------


def rows() -> tuple[RowBlock, np.ndarray]:
    """A block of four rows of two outputs, and the outputs in the store."""
    plan = plan_of({"a": PythonFmu(outputs={"y": lambda v: 0.0, "z": lambda v: 0.0})})
    store = ValueStore(plan.layout, 1, 0)
    return RowBlock(plan, store, capacity=4), store.outputs[DataType.FLOAT64]


def test_a_row_that_equals_the_last_one_at_the_same_time_is_not_taken_again() -> None:
    block, outputs = rows()
    for time in (0.0, 0.0, 1.0, 1.0):
        outputs[:] = time
        block.append(time)
    assert block.take()[0].tolist() == [0.0, 1.0]


def test_a_row_with_an_active_clock_is_taken_although_it_equals_the_last_one() -> None:
    """Two iterations may activate a clock with the same value."""
    block, _ = rows()
    clocks = np.zeros((len(block.times), 2), np.bool_)
    clocks[:2, 1] = True
    block.values = {**block.values, DataType.CLOCK: clocks}
    for _ in range(4):
        block.append(1.0)
    assert block.take()[0].tolist() == [1.0, 1.0]


def test_other_values_at_the_same_time_are_a_row_of_their_own() -> None:
    block, outputs = rows()
    for value in (5.0, 6.0):
        outputs[1] = value
        block.append(0.0)
    times, values = block.take()
    assert times.tolist() == [0.0, 0.0]
    assert values[DataType.FLOAT64][:, 1].tolist() == [5.0, 6.0]


def test_equal_values_at_another_time_are_a_row_of_their_own() -> None:
    block, _ = rows()
    block.append(0.0)
    block.append(1.0)
    assert block.count == 2


def test_taken_rows_make_room() -> None:
    block, outputs = rows()
    outputs[:] = 1.0
    block.append(0.0)
    assert block.room == 3
    times, values = block.take()
    assert (times.tolist(), values[DataType.FLOAT64].tolist()) == ([0.0], [[1.0, 1.0]])
    assert block.room == 4


@pytest.mark.parametrize("interval", [None, 10.0])
@pytest.mark.parametrize("streams", [False, True])
def test_recorded_rows_do_not_change_when_their_block_is_filled_again(
    streams: bool, interval: float | None
) -> None:
    writer = CsvWriter(StringIO()) if streams else None
    recorder = Recorder(COLUMNS, interval=interval, writer=writer)
    times, values = block([0.0, 1.0])
    recorder.take(times, values)
    times[:] = values["float"][:] = 0.0
    recorder.finish()
    results = recorder.results()
    assert (results.time[-1], results["x"][-1], results["m"][-1].tolist()) == (
        1,
        1,
        [[1, 2], [3, 4]],
    )


@pytest.mark.parametrize(("outputs", "rows"), [(1, 50_000), (31, 8192), (2000, 131)])
def test_a_block_is_as_large_as_a_cache_within_limits(outputs: int, rows: int) -> None:
    plan = plan_of({"a": PythonFmu(outputs={f"y{i}": lambda v: 0.0 for i in range(outputs)})})
    assert RowBlock(plan, ValueStore(plan.layout, 1, 0)).capacity == rows


def test_recorded_variables_may_lie_anywhere_in_the_store() -> None:
    unit = PythonFmu(outputs={name: lambda v: 0.0 for name in "abcd"})
    sink = PythonFmu(inputs={"u": 0.0, "w": 0.0})
    plan = plan_of({"s": unit, "t": sink}, ["s.b -> t.u", "s.c -> t.w"], outputs=["s.a", "s.d"])
    store = ValueStore(plan.layout, 2, 0)
    store.outputs[DataType.FLOAT64][:] = [1, 2, 3, 4]
    block = RowBlock(plan, store)
    block.append(0.0)
    assert block.take()[1][DataType.FLOAT64].tolist() == [[1.0, 4.0]]


# Values that are absent -----------------------------------------------------------------------------------------------


def test_a_clocked_value_is_masked_where_no_clock_of_its_is_active() -> None:
    """And its cells in a CSV file are empty; a whole column without values is nothing special."""
    clocked = Column("w", "float", slice(0, 2), (2,), present=("clock", (0, 2)))
    text = StringIO()
    kept, streamed = Recorder([clocked]), Recorder([clocked], writer=CsvWriter(text))
    times, values = np.array([0.0, 1.0, 2.0]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    clocks = np.array([[False, True, False], [True, False, False], [False, False, True]])
    for recorder in (kept, streamed):
        recorder.take(times, {"float": values, "clock": clocks})
    results = kept.results()
    assert np.ma.getmaskarray(results["w"]).tolist() == [[True, True], [False, False], [False] * 2]
    assert results["w"][1:].tolist() == [[3.0, 4.0], [5.0, 6.0]]
    assert text.getvalue() == '"time","w[1]","w[2]"\n0.0,,\n1.0,3.0,4.0\n2.0,5.0,6.0\n'


@pytest.mark.parametrize("at_once", [1, 2, 9])
def test_with_an_interval_the_ticks_of_a_row_that_is_kept_stay(at_once: int) -> None:
    """The row that is kept is the left limit, in which the value is absent."""
    recorder = Recorder([Column("w", "float", slice(0, 1), present=("clock", (0,)))], interval=0.5)
    times = np.array([0.0, 0.0, 0.25, 0.25, 0.5, 0.5, 0.5, 0.75, 1.0])
    clocks = np.array([[False, True, False, True, False, True, True, False, False]]).T
    for k in range(0, len(times), at_once):
        part = slice(k, k + at_once)
        recorder.take(times[part], {"float": times[part, None], "clock": clocks[part]})
    recorder.finish()
    results = recorder.results()
    assert results.time.tolist() == [0.0, 0.0, 0.5, 0.5, 0.5, 1.0]
    assert results["w"].tolist() == [None, 0.0, None, 0.5, 0.5, None]


def test_clocked_variables_and_signals_have_places_of_their_own() -> None:
    """Outputs and signals come first, since they are copied together; then what is read at events only."""
    clock = {"type": DataType.CLOCK}
    unit = PythonFmu(
        outputs={"tick": lambda v: True, "w": lambda v: 1.0, "y": lambda v: 2.0},
        attributes={"tick": clock, "w": {"variability": Variability.DISCRETE, "clocks": ("tick",)}},
    )
    by_name = {v.name: v for v in unit.model.variables}
    members = {
        Group.OUTPUTS: [by_name["y"]],
        Group.CLOCKED: [by_name["w"]],
        Group.CLOCKS: [by_name["tick"]],
    }
    layout = make_layout([members], [Signal("power", "W")])
    assert layout.output_sizes == {DataType.FLOAT64: 2, DataType.CLOCK: 0}
    resolved = resolve(describe({"a": unit}), {"a": unit.model})
    chosen = [
        Chosen(None, "power", "power", is_output=True),
        Chosen(0, "a.w", "w", is_output=True),
        Chosen(0, "a.y", "y", is_output=True),
    ]
    columns, rows = place_columns(resolved.components, chosen, layout)
    assert rows == {DataType.FLOAT64: (1, 2, 0), DataType.CLOCK: (0,)}
    assert [c.present for c in columns] == [None, (DataType.CLOCK, (0,)), None]
    assert [c.column for c in columns] == [slice(k, k + 1) for k in range(3)]


def test_results_that_are_asked_for_after_each_row_are_seldom_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With more rows than one part has room for."""
    monkeypatch.setattr("fmimaster.results.kept_rows.PART_BYTES", 100 * 48)
    recorder = Recorder(COLUMNS)
    copies: list[np.ndarray] = []
    for k in range(2000):
        recorder.take(*block([float(k)]))
        time = recorder.results().time
        if not copies or not np.shares_memory(time, copies[-1]):
            copies.append(time)
    assert time.tolist() == list(range(2000))
    assert len(copies) < 50


def test_two_threads_may_ask_for_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that listens, and the one of an FMU that has been left alone and returns just then."""
    monkeypatch.setattr("fmimaster.results.kept_rows.PART_BYTES", 10 * 48)
    recorder = Recorder(COLUMNS)
    for k in range(50):
        recorder.take(*block([float(k)]))
    append = _Part.append
    others: list[threading.Thread] = []
    found: list[list[float]] = []

    def ask() -> None:
        found.append(recorder.results().time.tolist())

    def append_while_another_asks(part: _Part, *rows: Any) -> None:
        if not others:
            others.append(threading.Thread(target=ask))
            others[0].start()
            others[0].join(0.1)
        append(part, *rows)

    monkeypatch.setattr(_Part, "append", append_while_another_asks)
    ask()
    others[0].join()
    assert found == [list(range(50))] * 2
