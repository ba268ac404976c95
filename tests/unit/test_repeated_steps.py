"""Steps of long runs with periodic clocks: those that repeat are a few numbers, and are read as if each was kept."""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from facts_files import read_facts

from fmimaster import Simulation, SystemBuilder, reference_path, resume, simulate
from fmimaster.base.errors import FileError
from fmimaster.commands.cli import main
from fmimaster.instants.instant import Goal, Instant, TimeBase
from fmimaster.record import step_series
from fmimaster.record.causes import GRID, STEP_SIZE, Cause, Kind, Steps
from fmimaster.record.plain_data import step_facts
from fmimaster.record.step_series import (
    MOST_PLACES,
    Part,
    RepeatedSteps,
    StepColumns,
    StepSeries,
    with_more,
)
from fmimaster.results.facts_writer import line
from fmimaster.results.results import Results
from fmimaster.run import Backend
from fmimaster.run.goal import REFRESH
from fmimaster.steps.step_rule import StepRule
from fmimaster.system.description import SystemDescription

TICK, OUTDATED = Cause(Kind.CLOCK, ("c.tick",)), Cause(Kind.OUTDATED_OUTPUTS, ("plant",))
FEW = 200
"""Entries of steps that stay in the state of a run in these tests."""


def controllers(step_size: float = 0.1, *resolutions: int) -> SystemDescription:
    """A plant with sampled controllers, each with its ticks per second."""
    builder = SystemBuilder("controlled")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    for k, resolution in enumerate(resolutions or (10,)):
        settings = {"gain": -0.5, "interval.resolution": resolution}
        builder.add(f"c{k}", reference_path("fmi3/Sampler.fmu"), settings)
        builder.connect("plant.x", f"c{k}.u")
    builder.connect("c0.held", "plant.u")
    return builder.build(start_time=0, stop_time=100, step_size=step_size)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little stays in the state of a run."""
    monkeypatch.setattr("fmimaster.session.keepers.MOST_STEPS", FEW)


def kept(steps: Sequence[Steps]) -> int:
    """How many entries are kept one by one."""
    assert isinstance(steps, StepSeries)
    return sum(len(part) for part in steps.parts if isinstance(part, StepColumns))


@pytest.mark.parametrize("backend", [Backend.NATIVE, Backend.REFERENCE])
@pytest.mark.parametrize("system", [controllers(0.1), controllers(0.25), controllers(0.1, 10, 4)])
def test_steps_of_periodic_clocks_are_not_kept_one_by_one(
    system: SystemDescription,
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {"stop_time": 40, "backend": backend}
    every = simulate(system, **settings).steps
    assert isinstance(every, tuple)
    assert len(every) >= 800
    monkeypatch.setattr("fmimaster.session.keepers.MOST_STEPS", FEW)
    stream = io.StringIO()
    simulation = Simulation(system, **settings)
    for found in (simulation.run(), simulation.run(output_file=stream)):
        assert found.steps == every
        assert (found.steps[7], found.steps[-1]) == (every[7], every[-1])
        assert found.steps[790:-7] == every[790:-7]
        assert kept(found.steps) < 10
    table = tmp_path / "run.csv"
    assert simulation.run(output_file=table).steps == every[-FEW:]
    assert read_facts(table)[1] == every
    assert len((tmp_path / "run.csv.json").read_text(encoding="utf-8").splitlines()) < 30


@pytest.mark.usefixtures("few")
def test_the_page_has_each_of_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pages = []
    for name, most in (("one.csv", FEW), ("other.csv", 10_000)):
        monkeypatch.setattr("fmimaster.session.keepers.MOST_STEPS", most)
        Simulation(controllers()).run(output_file=tmp_path / name)
        assert main(["steps", str(tmp_path / name)]) == 0
        pages.append(capsys.readouterr().out)
    assert pages[0] == pages[1]
    assert pages[0].count("outputs of plant after an event") == 1001


@pytest.mark.usefixtures("few")
def test_a_run_that_was_stopped_and_resumed_has_the_same_steps(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run.checkpoint"
    whole = simulate(controllers())
    Simulation(controllers(), checkpoint=checkpoint).run(lambda p: p.steps < 1100)
    resumed = resume(checkpoint)
    assert resumed.steps == whole.steps
    assert kept(resumed.steps) < 10


@dataclass(frozen=True, slots=True)
class Longer(StepRule[None]):
    """Steps of one size up to 10 s, and of another one behind it: two patterns of entries."""

    def begin(self, base: TimeBase, start: int) -> None:
        del base, start

    def propose(self, now: Instant, memory: None) -> Goal:
        size = 0.25 if now.seconds < 10 else 0.4
        return Goal(Instant((int(now.seconds / size + 1e-9) + 1) * size), STEP_SIZE)


@pytest.mark.usefixtures("few")
def test_a_resumed_run_finds_the_same_patterns(tmp_path: Path) -> None:
    """Their file then has the same text."""
    simulation = Simulation(
        controllers(), step_size=Longer("0.4"), checkpoint=tmp_path / "run.checkpoint"
    )
    whole = replace(simulation, checkpoint=None).run()
    simulation.run(lambda p: p.steps < 600)
    resumed = resume(tmp_path / "run.checkpoint", simulation)
    assert isinstance(whole.steps, StepSeries)
    assert isinstance(resumed.steps, StepSeries)
    assert sum(isinstance(part, RepeatedSteps) for part in whole.steps.parts) > 0
    assert resumed.steps.parts == whole.steps.parts


def columns_of(steps: Iterable[Steps]) -> StepColumns:
    columns = StepColumns()
    for s in steps:
        columns.append(s.begin, s.end, s.cause, s.count)
    return columns


def entries(ends: Iterable[float], causes: Iterable[Cause]) -> list[Steps]:
    """Entries of one step each, from 0 on."""
    found, begin = [], 0.0
    for end, cause in zip(ends, causes, strict=True):
        found.append(Steps(begin, end, cause))
        begin = end
    return found


def irregular(choose: random.Random) -> list[Steps]:
    """Entries of a clock, of which some are unlike all others, or at other times."""
    ends, causes = list[float](), list[Cause]()
    begin = 0.0
    for k in range(1, 400):
        end = k / 7 if k < 200 else k / 7 + 0.05
        if k % 3 == 0:
            ends.append(begin + REFRESH * (end - begin))
            causes.append(OUTDATED)
        ends.append(end)
        causes.append(GRID if choose.random() < 0.005 else TICK)
        begin = end
    return entries(ends, causes)


@pytest.mark.parametrize("seed", range(5))
def test_no_entry_is_lost_where_a_pattern_begins_and_ends(seed: int) -> None:
    choose = random.Random(seed)
    every = irregular(choose)
    parts: tuple[Part, ...] = ()
    done = 0
    while done < len(every):
        n = choose.randrange(1, 120)
        parts = with_more(parts, columns_of(every[done : done + n]), REFRESH)
        done += n
    assert tuple(StepSeries(parts)) == tuple(every)
    assert any(isinstance(part, RepeatedSteps) for part in parts)


def test_each_time_is_shortened_once_at_most() -> None:
    """As of a ball that bounces: step sizes repeat, but times are no short fractions. Patterns of hundreds of sizes are
    tried, and each time is costly to shorten."""
    sizes = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.1, 0.197]
    ends = list(accumulate(sizes[k % 8] for k in range(4000)))
    columns = columns_of(entries(ends, [TICK if k % 8 else GRID for k in range(4000)]))
    step_series._short.cache_clear()
    assert with_more((), columns, REFRESH) == (columns,)
    assert 0 < step_series._short.cache_info().misses <= 2 * MOST_PLACES


def test_times_of_which_each_differs_are_kept_one_by_one() -> None:
    columns = columns_of(entries([k**1.5 for k in range(1, 100)], [TICK] * 99))
    assert with_more((), columns, REFRESH) == (columns,)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ('"entries": 30', '"entries": 31'),
        ('"entries": 30', '"entries": 9223372036854775807'),
        ('"period": 1', '"period": 0'),
        ('"resolution": 10', '"resolution": "10"'),
        ('"share": 0.0', '"share": null'),
        ('"repeated": [', '"repeated": [], "more": ['),
    ],
)
def test_a_damaged_pattern_is_refused(now: str, then: str, tmp_path: Path) -> None:
    repeated = RepeatedSteps(0.0, 30, 1, 10, (1,), (0.0,), (TICK,), (1,))
    results = Results(time=[0.0], columns={"x": [0.0]}, steps=StepSeries([repeated]))
    results.write(tmp_path / "run.csv")
    assert read_facts(tmp_path / "run.csv")[1] == tuple(StepSeries([repeated]))
    document = tmp_path / "run.csv.json"
    whole = document.read_text(encoding="utf-8")
    assert line(step_facts(repeated)) in whole
    assert now in whole
    document.write_text(whole.replace(now, then), encoding="utf-8")
    with pytest.raises(FileError, match=r"does not hold the events and steps of a run \(expected "):
        read_facts(tmp_path / "run.csv")
