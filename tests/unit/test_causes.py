"""Results carry events and the causes of steps: in memory, pickled, chosen from, and beside a CSV file."""

from __future__ import annotations

import gc
import json
import pickle
import random
import sys
import tracemalloc
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import reference
from facts_files import read_facts

from fmimaster import Results, Simulation, SimulationError
from fmimaster.algorithms import Jacobi
from fmimaster.base.errors import FileError
from fmimaster.events.event_clock import EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.inputs.polynomial import Polynomial
from fmimaster.instants.instant import Instant
from fmimaster.record.causes import (
    GRID,
    STEP_SIZE,
    Cause,
    Event,
    Kind,
    Steps,
    needs_explanation,
)
from fmimaster.results.facts import facts_path
from fmimaster.results.statistics import InstanceStatistics, Statistics
from fmimaster.run import Backend
from fmimaster.run.log import StepLog, Stretch
from fmimaster.run.loop import RunState, Timeline
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.step_rule import FixedStep, StepRule

COLLISION = Event(
    0.5, 1, "collision", True, ("a", "b"), Cause(Kind.PREDICTED), {"a.v": 1.0}, {"a.v": -1.0}
)
PREDICTED = Cause(Kind.PREDICTED, ("collision",))
STEPS = (Steps(0.0, 0.4, GRID, 4), Steps(0.4, 0.5, PREDICTED))


@pytest.fixture
def explained() -> Results:
    columns: dict[str, list[Any]] = {"a.v": [0.0, 1.0, -1.0], "b.y": [[1.0, 2.0]] * 3}
    return Results(time=[0.0, 0.5, 0.5], columns=columns, events=[COLLISION], steps=STEPS)


def two_mass(version: str = "fmi3", **settings: object) -> Simulation:
    given = {
        "algorithm": Jacobi(Polynomial(2, 2)),
        "event_clock": Predictive(),
        "step_size": 0.1,
        "stop_time": 6,
        **settings,
    }
    return Simulation(reference(f"systems/two-mass-b1-{version}.ssp"), **given)  # type: ignore[arg-type]


def test_they_survive_what_is_done_to_results(explained: Results) -> None:
    for same in (
        explained.select("a.v"),
        explained.expand(),
        pickle.loads(pickle.dumps(explained)),
    ):
        assert same.events == (COLLISION,)
        assert same.steps == STEPS


def test_they_stand_beside_the_table(explained: Results, tmp_path: Path) -> None:
    explained.write(tmp_path / "run.csv")
    assert (tmp_path / "run.csv.json").is_file()
    again = Results.read(tmp_path / "run.csv")
    assert (again.events, again.steps) == ((COLLISION,), STEPS)


def test_a_table_on_the_grid_has_nothing_beside_it(tmp_path: Path) -> None:
    steps = [Steps(0.0, 0.4, GRID, 4), Steps(0.4, 0.5, Cause(Kind.STOP_TIME))]
    Results(time=[0.0], columns={"x": [0.0]}, steps=steps).write(tmp_path / "run.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]
    assert not needs_explanation((), steps)


def test_facts_of_an_earlier_table_of_that_name_do_not_stay(
    explained: Results, tmp_path: Path
) -> None:
    explained.write(tmp_path / "run.csv")
    Results(time=[0.0], columns={"x": [0.0]}).write(tmp_path / "run.csv")
    assert Results.read(tmp_path / "run.csv").events == ()


def test_a_file_of_that_name_that_is_no_file_of_facts_stays(tmp_path: Path) -> None:
    (tmp_path / "run.csv.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FileError, match=r"run\.csv\.json' would be overwritten by units, settings"):
        Results(time=[0.0], columns={"x": [0.0]}).write(tmp_path / "run.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv.json"]
    (tmp_path / "run.csv").write_text("time\n0\n", encoding="utf-8")
    with pytest.raises(FileError, match=r"does not hold the events and steps of a run"):
        read_facts(tmp_path / "run.csv")


def test_values_that_json_lacks_come_back(tmp_path: Path) -> None:
    left = {"x": inf, "y": [-inf, [nan, 1.5]], "text": "inf", "none": nan}
    event = Event(1.0, 1, "e", False, ("a",), GRID, left, {})
    results = Results(time=[0.0], columns={}, events=[event])
    results.write(tmp_path / "run.csv")
    json.loads((tmp_path / "run.csv.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    ((read,), _) = read_facts(tmp_path / "run.csv")
    assert repr(read.left) == repr(left)  # NaN is not equal to itself


DAMAGED = {
    "not JSON": '{"format": "fmimaster results 1", "events": [',
    "deep": '{"format": "fmimaster results 1", "events": ' + "[" * 100_000,
    "another format": '{"format": "fmimaster events 2", "events": [], "steps": []}',
    "no steps": '{"format": "fmimaster results 1", "events": []}',
    "no list": '{"format": "fmimaster results 1", "events": 5, "steps": []}',
    "no object": '{"format": "fmimaster results 1", "events": [5], "steps": []}',
    "empty": "",
    "bytes": "\x00\x01",
}
ONE_STEP = '{"format": "fmimaster results 1", "events": [], "steps": [{"begin": 0, "end": %s, "count": %s, "cause": %s}]}'
for what, values in {
    "count": (1, 0, '{"kind": "grid", "who": []}'),
    "count no number": (1, '"1"', '{"kind": "grid", "who": []}'),
    "time": ("NaN", 1, '{"kind": "grid", "who": []}'),
    "time too large": ("1e400", 1, '{"kind": "grid", "who": []}'),
    "kind": (1, 1, '{"kind": "nothing", "who": []}'),
    "who": (1, 1, '{"kind": "grid", "who": "me"}'),
    "no cause": (1, 1, "null"),
}.items():
    DAMAGED[what] = ONE_STEP % values


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_of_facts_is_an_error_that_names_it(damage: str, tmp_path: Path) -> None:
    (tmp_path / "run.csv").write_text("time\n0\n", encoding="utf-8")
    (tmp_path / "run.csv.json").write_text(DAMAGED[damage], encoding="utf-8")
    with pytest.raises(FileError, match=r"run\.csv\.json' does not hold the events and steps"):
        read_facts(tmp_path / "run.csv")


def test_a_huge_file_that_holds_no_facts_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "run.csv.json").open("wb") as file:
        file.truncate(10**12)  # it has no blocks on the disk
    with pytest.raises(FileError, match=r"not with the format 'fmimaster results 1'"):
        read_facts(tmp_path / "run.csv")


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
def test_facts_that_do_not_fit_on_the_disk_leave_no_part_of_a_file(
    explained: Results, tmp_path: Path
) -> None:
    import resource  # not there on Windows

    explained.write(tmp_path / "run.csv")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limit[1]))
    try:
        with pytest.raises(FileError, match=r"run\.csv\.json' cannot be written: File too large"):
            explained.write(tmp_path / "run.csv")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert [p.name for p in tmp_path.iterdir()] == ["run.csv"]


@pytest.mark.parametrize("name", ["run.csv", "run.csv.json"])
def test_the_name_of_the_file_follows_from_the_table(name: str) -> None:
    assert facts_path(name) == Path("run.csv.json")


def test_numbers_that_json_does_not_know_are_left_out(tmp_path: Path) -> None:
    odd = Event(
        0.0, 1, "e", False, ("a",), Cause(Kind.DETECTED), {"a.x": float("nan")}, {"a.x": 1.0}
    )
    Results(time=[0.0], columns={}, events=[odd]).write(tmp_path / "run.csv")
    json.loads((tmp_path / "run.csv.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert str(Results.read(tmp_path / "run.csv").events[0].left["a.x"]) == "nan"


def test_statistics_tell_events_and_restores_only_if_there_are_any() -> None:
    def lines(events: int, restores: int) -> str:
        one = InstanceStatistics("a", 10, 0.1, restores)
        return "\n".join(Statistics(10, 10, 0, 1.0, instances=(one,), events=events).lines())

    assert "event" not in lines(0, 0)
    assert "restores" not in lines(0, 0)
    assert "10 steps, 1 event in 1 s" in lines(1, 0)
    assert lines(2, 7).splitlines()[1:] == [
        "instance  calls  seconds  share  restores",
        "a            10      0.1  10.0%         7",
        "(rest)               0.9  90.0%",
    ]


# From a run -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["fmi2", "fmi3", "mixed"])
def test_left_and_right_values_are_those_of_the_rows(version: str) -> None:
    results = two_mass(version).run()
    assert [e.name for e in results.events] == ["collision"] * 3 + ["upper.ceiling", "collision"]
    for event in results.events:
        right = int(((results.time == event.time) & (results.index == event.index)).argmax())
        for name, value in event.right.items():
            assert results[name][right] == value
            assert results[name][right - 1] == event.left[name]
    ceiling = results.events[3]
    assert (ceiling.shared, ceiling.components) == (False, ("upper",))
    assert {name.partition(".")[0] for name in ceiling.left} == {"upper"}
    assert ceiling.right["upper.v"] == -ceiling.left["upper.v"]


def test_they_are_the_same_when_no_row_is_kept(tmp_path: Path) -> None:
    kept = two_mass().run()
    streamed = two_mass().run(output_file=tmp_path / "run.csv")
    thinned = two_mass(output_interval=1.0).run()
    assert streamed.events == thinned.events == kept.events
    assert read_facts(tmp_path / "run.csv") == (kept.events, kept.steps)


def test_the_last_row_of_a_block_may_be_the_left_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = two_mass(backend=Backend.REFERENCE).run()
    for rows in range(7, 12):  # some block ends right before an event, or within it
        monkeypatch.setattr("fmimaster.run.rows._rows_of_a_block", lambda _, n=rows: n)
        assert two_mass(backend=Backend.REFERENCE).run().events == kept.events


def test_steps_cover_the_run_without_a_gap() -> None:
    results = two_mass().run()
    assert results.steps[0].begin == 0.0
    assert results.steps[-1].end == 6.0
    assert all(a.end == b.begin for a, b in zip(results.steps, results.steps[1:], strict=False))
    assert sum(s.count for s in results.steps) == results.statistics.steps
    assert PREDICTED in [s.cause for s in results.steps]


def test_how_an_event_was_found_is_told() -> None:
    kinds = {e.cause.kind for e in two_mass().run().events}
    assert kinds == {Kind.PREDICTED, Kind.DETECTED}
    early = two_mass(event_clock=EarlyReturn(), step_size=0.2).run()
    assert {str(e.cause) for e in early.events} <= {
        f"early return of {who}" for who in ("upper", "lower", "upper and lower")
    }


def test_a_run_that_fails_has_its_events_until_then(tmp_path: Path) -> None:
    ball = Simulation(
        reference("fmi3/BouncingBall.fmu"),
        event_clock=EarlyReturn(),
        step_size=0.1,
        stop_time=10,
        start_values={"v_min": 0.0},
    )
    with pytest.raises(SimulationError) as failed:
        ball.run(output_file=tmp_path / "ball.csv")
    assert failed.value.results is not None
    events = failed.value.results.events
    assert len(events) > 3
    assert read_facts(tmp_path / "ball.csv")[0] == events


# The log of steps -----------------------------------------------------------------------------------------------------


def test_quiet_stretches_are_one_entry() -> None:
    log = StepLog()
    for k in range(4):
        log.add(0.1 * k, 0.1 * (k + 1), STEP_SIZE)
    log.add(0.4, 0.45, PREDICTED)
    log.add(0.45, 0.5, STEP_SIZE)
    log.add(0.5, 0.6, STEP_SIZE)
    assert [(s.cause, s.count) for s in log.objects()] == [
        (STEP_SIZE, 4),
        (PREDICTED, 1),
        (STEP_SIZE, 1),
        (STEP_SIZE, 1),
    ]


def test_a_stretch_of_controlled_steps_is_the_same_as_its_steps() -> None:
    choose = random.Random(7)
    causes = (STEP_SIZE, PREDICTED, Cause(Kind.CONTROLLED, ("a",)))
    one, other = StepLog(), StepLog()
    now = 0.0
    for _ in range(60):
        n = choose.choice([0, 1, 5, 20, 200])
        stretch = Stretch.empty(now, 300, causes)
        assert stretch.codes is not None
        assert isinstance(stretch.times, np.ndarray)
        size, code = 0.01, 0
        for k in range(n):
            if choose.random() < 0.5:  # others are equal but for rounding
                size *= choose.choice([1.5, 0.2, 1 + 9e-10, 1 - 9e-10, 1 + 3e-9, 1 + 1e-14])
                size = min(max(size, 1e-3), 0.1)
            if choose.random() < 0.1:
                code = choose.randrange(3)
            stretch.codes[k], stretch.times[k + 1] = code, now + size
            one.add(now, now + size, causes[code])
            now += size
        other.add_stretch(stretch, n)
        assert other == one
    assert sum(one.counts) > len(one) + 1000


def test_steps_that_are_all_unlike_leave_nothing_for_the_collector_of_garbage() -> None:
    log, n = StepLog(), 2000
    gc.collect()
    before = len(gc.get_objects())
    tracemalloc.start()
    for k in range(n):
        log.add(k**2.0, (k + 1) ** 2.0, STEP_SIZE)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(gc.get_objects()) - before < 100
    assert size < 48 * n  # four columns with room to grow; a tuple with two floats has 144 bytes
    assert log.objects()[-2] == Steps((n - 2) ** 2.0, (n - 1) ** 2.0, STEP_SIZE)


def test_steps_of_a_stretch_count_while_it_is_done() -> None:
    stretch = Stretch.empty(1.0, 5, (STEP_SIZE, PREDICTED))
    state = RunState(Instant(1.0), Timeline.of([]), steps=7, attempts=8, stretch=stretch)
    assert (state.counts(0.5), state.entries(0.5).objects()) == ((7, 9), [])
    assert stretch.codes is not None
    assert isinstance(stretch.times, np.ndarray)
    stretch.times[1:4], stretch.codes[1] = [1.1, 1.2, 1.3], 1
    entries = [Steps(1.0, 1.1, STEP_SIZE), Steps(1.1, 1.2, PREDICTED)]
    assert (state.counts(1.2), state.entries(1.2).objects()) == ((9, 11), entries)


# The rule that goes with an event clock -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clock", "rule"),
    [
        (None, FixedStep(0.1)),
        (LookAhead(), FreeStep(0.1)),
        (EarlyReturn(), FreeStep(0.1)),
        (Predictive(), Ramp(0.1)),
    ],
)
def test_a_number_is_the_step_that_the_clock_is_usually_used_with(
    clock: EventClock | None, rule: StepRule[Any]
) -> None:
    assert (FixedStep(0.1) if clock is None else clock.usual_rule(0.1)) == rule
    given = two_mass(event_clock=clock, algorithm=Jacobi())
    assert given.prepare().schedule.rule == rule
    fixed = two_mass(event_clock=clock, algorithm=Jacobi(), step_size=FixedStep(0.1))
    assert fixed.prepare().schedule.rule == FixedStep(0.1)
