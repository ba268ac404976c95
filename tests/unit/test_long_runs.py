"""Runs with many events: what is written during the run, what is kept, and how it is read; and what they warn of."""

from __future__ import annotations

import gc
import io
import json
import logging
import re
import warnings
from collections.abc import Callable
from errno import ENOSPC
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
from facts_files import read_facts
from pytest import approx
from python_fmu import PythonFmu

from fmimaster import AccuracyWarning, SimulationError
from fmimaster.base.errors import FileError
from fmimaster.commands.cli import main
from fmimaster.commands.steps import _page
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.fmu.instance import StepAnswer
from fmimaster.front.simulation import Simulation
from fmimaster.record.causes import GRID, RAMP, Event, Steps
from fmimaster.results.facts import Facts
from fmimaster.results.facts_writer import FactsWriter, finish_facts
from fmimaster.results.results import Results
from fmimaster.run.event_execution import MOST_LATE
from fmimaster.steps.ramp import FreeStep
from fmimaster.system.declarations import EventDeclaration, Indicator, Scope
from fmimaster.system.model import DataType

Make = Callable[..., Simulation]
FEW = 10
"""Events and steps that stay in memory in these tests."""
MANY = 500
"""Events of a run."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little stays in memory."""
    monkeypatch.setattr("fmimaster.session.keepers.MOST_EVENTS", FEW)
    monkeypatch.setattr("fmimaster.session.keepers.MOST_STEPS", FEW)


def ticking(during: Callable[[], None] = lambda: None, ends_at: float | None = None) -> PythonFmu:
    """Counts an event in each step."""

    def step(v: Any, h: float) -> StepAnswer | None:
        v.n += 1
        during()
        if ends_at is not None and v.t > ends_at:
            return StepAnswer(v.t, discarded=True)
        return None

    return PythonFmu(
        states={"n": 0},
        outputs={"z": lambda v: 1.0, "count": lambda v: int(v.n)},
        attributes={"n": {"type": DataType.INT32}, "count": {"type": DataType.INT32}},
        step=step,
        events=[EventDeclaration("tick", Scope.PRIVATE, (Indicator("z"),), announce="count")],
    )


def run(simulation: Make, fmu: PythonFmu | None = None, **more: Any) -> Simulation:
    given = {"event_clock": LookAhead(), "step_size": FreeStep(1.0), "stop_time": MANY, **more}
    return simulation({"clock": fmu or ticking()}, **given)


@pytest.mark.usefixtures("few")
def test_a_run_with_a_file_keeps_the_last_events_and_the_file_has_all(
    simulation: Make, tmp_path: Path
) -> None:
    everything = run(simulation).run()
    assert len(everything.events) == MANY
    streamed = run(simulation).run(output_file=tmp_path / "run.csv")
    assert streamed.events == everything.events[-FEW:]
    assert streamed.statistics.events == MANY
    assert read_facts(tmp_path / "run.csv") == (everything.events, everything.steps)


@pytest.mark.usefixtures("few")
def test_the_memory_for_events_does_not_grow(simulation: Make, tmp_path: Path) -> None:
    steps, alive = count(), list[int]()

    def look() -> None:
        if next(steps) % 7 == 0:  # it takes long beside other tests, which leave many objects
            alive.append(sum(isinstance(o, Event | Steps) for o in gc.get_objects()))

    before = sum(isinstance(o, Event | Steps) for o in gc.get_objects())
    run(simulation, ticking(look), stop_time=100).run(output_file=tmp_path / "run.csv")
    assert len(alive) == 15
    # up to twice as many are kept, and 16 steps are done before it is looked at
    assert max(alive) - before <= 2 * (2 * FEW + 16)


@pytest.mark.usefixtures("few")
def test_steps_of_many_sizes_are_written_during_the_run(simulation: Make, tmp_path: Path) -> None:
    """Each step has another cause or size than the one before."""
    table = tmp_path / "input.csv"
    times = [k + 0.25 * (k % 3) for k in range(100)]
    table.write_text(
        "time,a.u\n" + "".join(f"{t},{k}\n{t},{k + 1}\n" for k, t in enumerate(times)),
        encoding="utf-8",
    )
    fmu = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.u})
    given = {"stop_time": 100, "step_size": 1.0, "input": table}
    everything = simulation({"a": fmu}, **given).run()
    assert len(everything.steps) > 90
    streamed = simulation({"a": fmu}, **given).run(output_file=tmp_path / "run.csv")
    assert streamed.steps == everything.steps[-FEW:]
    assert read_facts(tmp_path / "run.csv")[1] == everything.steps


@pytest.mark.usefixtures("few")
def test_a_run_that_fails_late_has_all_events_in_its_file(simulation: Make, tmp_path: Path) -> None:
    with pytest.raises(SimulationError) as failed:
        run(simulation, ticking(ends_at=300.5)).run(output_file=tmp_path / "run.csv")
    events, steps = read_facts(tmp_path / "run.csv")
    assert len(events) == 301
    assert sum(s.count for s in steps) == 301
    assert failed.value.results is not None
    assert failed.value.results.events == events[-FEW:]


@pytest.mark.usefixtures("few")
def test_beside_a_stream_there_is_no_file_so_that_all_events_are_kept(simulation: Make) -> None:
    assert len(run(simulation).run(output_file=io.StringIO()).events) == MANY


@pytest.mark.usefixtures("few")
def test_facts_that_cannot_be_written_during_the_run_end_it(
    simulation: Make, tmp_path: Path
) -> None:
    (tmp_path / "run.csv.json").mkdir()
    with pytest.raises(FileError, match=r"run\.csv\.json' cannot be written"):
        run(simulation).run(output_file=tmp_path / "run.csv")


def test_facts_that_could_not_be_written_once_are_not_begun_anew_without_their_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full, and the file is removed: then there is room again."""

    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    writer = FactsWriter(tmp_path / "run.csv.json")
    steps = [Steps(0.0, 1.0, GRID, 1)]
    writer.take([], steps)
    with monkeypatch.context() as patched:
        patched.setattr("fmimaster.results.facts_writer._write", full)
        with pytest.raises(FileError, match=r"run\.csv\.json' cannot be written: No space left"):
            writer.take([], steps)
    with pytest.raises(FileError, match="No space left"):
        finish_facts(writer, [], [Steps(1.0, 1.5, RAMP, 1)], Results(time=[], columns={}))
    assert not writer.path.exists()


def test_facts_of_an_earlier_table_are_gone_as_soon_as_that_is(
    simulation: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is killed must not leave a table with the events of another one."""
    table, file, seen = tmp_path / "run.csv", tmp_path / "run.csv.json", list[bool]()
    run(simulation).run(output_file=table)
    monkeypatch.setattr("fmimaster.run.rows._rows_of_a_block", lambda _: 200)
    run(simulation, ticking(lambda: seen.append(file.exists()))).run(output_file=table)
    assert seen[0]
    assert not seen[-1]  # the last events are written when the run has ended
    assert len(read_facts(table)[0]) == MANY


def test_a_document_with_other_line_breaks_is_read_and_shown_the_same(
    simulation: Make, tmp_path: Path
) -> None:
    run(simulation, stop_time=30).run(output_file=tmp_path / "run.csv")
    shown, read = list(_page(Facts(tmp_path / "run.csv.json"))), read_facts(tmp_path / "run.csv")
    file = tmp_path / "run.csv.json"
    file.write_text(
        json.dumps(json.loads(file.read_text(encoding="utf-8")), indent=1), encoding="utf-8"
    )
    assert list(_page(Facts(tmp_path / "run.csv.json"))) == shown
    assert read_facts(tmp_path / "run.csv") == read


def test_a_file_that_ends_in_the_middle_is_told(simulation: Make, tmp_path: Path) -> None:
    run(simulation, stop_time=30).run(output_file=tmp_path / "run.csv")
    file = tmp_path / "run.csv.json"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    for end in (3, 10, len(lines) - 6):
        file.write_text("".join(lines[:end]), encoding="utf-8")
        with pytest.raises(FileError, match="it ends in the middle"):
            read_facts(tmp_path / "run.csv")


# Warnings -------------------------------------------------------------------------------------------------------------


def dropping() -> PythonFmu:
    """Its indicator jumps below 0 where nobody can predict it; the trigger lifts it again."""

    def step(v: Any, h: float) -> None:
        if v.t < 0.5 <= v.t + h:
            v.x = -1.0

    def update(v: Any) -> None:
        if v.lift:
            v.x = 1.0

    return PythonFmu(
        inputs={"lift": False},
        states={"x": 1.0},
        outputs={"z": lambda v: v.x, "dz": lambda v: 0.0},
        attributes={"lift": {"type": DataType.CLOCK}, "dz": {"derivative_of": "z"}},
        step=step,
        update=update,
        events=[EventDeclaration("drop", Scope.PRIVATE, (Indicator("z", "dz"),), trigger="lift")],
        has_event_mode=True,
    )


def test_an_event_that_is_found_late_is_a_warning_at_the_line_that_simulates(
    simulation: Make, caplog: pytest.LogCaptureFixture
) -> None:
    late = simulation({"a": dropping()}, event_clock=Predictive(), step_size=0.2, stop_time=1)
    with (
        pytest.warns(AccuracyWarning, match=r"'a\.drop' was found late once") as warned,
        caplog.at_level(logging.WARNING, "fmimaster"),
    ):
        results = late.run()
    assert [w.filename for w in warned] == [__file__]
    assert results.statistics.warnings == tuple(str(w.message) for w in warned)
    assert ["found late" in record.getMessage() for record in caplog.records] == [True]


def falling_or_dropping(drops: Callable[[int], bool], lifts: int = 10**6) -> PythonFmu:
    """Its indicator falls from 1 by 1 per second, so that its event can be predicted; or it drops below 0 after half a
    second, depending on the number of the event. The first events lift it again."""

    def step(v: Any, h: float) -> None:
        v.x -= h
        if drops(int(v.n)) and v.x < 0.5:
            v.x = -1.0

    def update(v: Any) -> None:
        if v.lift:
            v.x, v.n = 1.0 if v.n < lifts else v.x, v.n + 1

    return PythonFmu(
        inputs={"lift": False},
        states={"x": 1.0, "n": 0},
        outputs={"z": lambda v: v.x, "dz": lambda v: -1.0},
        attributes={"lift": {"type": DataType.CLOCK}, "dz": {"derivative_of": "z"}},
        step=step,
        update=update,
        events=[EventDeclaration("drop", Scope.PRIVATE, (Indicator("z", "dz"),), trigger="lift")],
        has_event_mode=True,
    )


def test_a_run_goes_on_while_events_are_late_less_often_than_in_time(simulation: Make) -> None:
    """More late ones than end a run where all are late."""
    unit = falling_or_dropping(lambda n: n % 3 == 0)
    many = simulation({"a": unit}, event_clock=Predictive(), step_size=0.2, stop_time=100)
    with pytest.warns(AccuracyWarning, match=r"'a\.drop' was found late (\d+) times") as warned:
        results = many.run()
    [times] = re.findall(r"late (\d+) times", str(warned[0].message))
    assert int(times) > 1.5 * MOST_LATE
    assert int(times) == approx(len(results.events) / 3, abs=1)


def test_a_run_ends_if_events_are_late_for_ever(simulation: Make) -> None:
    """Though a hundred were in time before."""
    unit = falling_or_dropping(lambda n: n >= 100)
    many = simulation({"a": unit}, event_clock=Predictive(), step_size=0.2, stop_time=200)
    with pytest.raises(SimulationError, match=rf"'a\.drop' .*late.* {MOST_LATE} times"):
        many.run()


def test_an_event_that_is_still_on_after_it_was_late_is_told_to_need_smaller_steps(
    simulation: Make,
) -> None:
    """Events that happen where members do not approach each other are more often wrong inputs than a wrong FMU."""
    unit = falling_or_dropping(lambda n: n == 0, lifts=1)
    with pytest.raises(
        SimulationError, match=r"is still on after it has happened at t = 1\.5"
    ) as e:
        simulation({"a": unit}, event_clock=Predictive(), step_size=0.2, stop_time=4).run()
    assert "'a.drop' was found late once, first at t = 0.5" in str(e.value)
    assert "use smaller steps" in str(e.value)


def test_results_come_before_their_warnings(simulation: Make, tmp_path: Path) -> None:
    """Also where a warning is an error: then all is in the files."""
    late = simulation({"a": dropping()}, event_clock=Predictive(), step_size=0.2, stop_time=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AccuracyWarning):
            late.run(output_file=tmp_path / "run.csv")
    assert len(list(chain(*read_facts(tmp_path / "run.csv")))) > 1


def test_the_command_line_tells_a_late_event_without_warnings_of_python(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(_arguments: object) -> int:
        warnings.warn("late", AccuracyWarning, stacklevel=1)
        return 0

    monkeypatch.setattr("fmimaster.commands.simulate.run", late)
    assert main(["simulate", "a.fmu"]) == 0  # here each warning is an error
    assert "late" not in capfd.readouterr().err
