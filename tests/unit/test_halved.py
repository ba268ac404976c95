"""Communication points of an earlier run, halved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fmimaster import OptionError, Simulation, reference_path
from fmimaster.instants.instant import Instant
from fmimaster.run import Backend
from fmimaster.steps import FreeStep, Halved, Ramp


def test_each_step_of_the_earlier_run_becomes_two() -> None:
    first = Simulation(
        reference_path("systems/quarter-car-a-fmi3.ssp"), step_size=Ramp(0.01), stop_time=0.1
    )
    coarse = first.run()
    fine = replace(first, step_size=Halved(times=tuple(coarse.time))).run()
    assert fine.time[::2].tolist() == coarse.time.tolist()
    assert np.diff(fine.time) == pytest.approx(np.repeat(np.diff(coarse.time) / 2, 2))


def test_both_executors_step_to_the_same_points() -> None:
    run = Simulation(
        reference_path("systems/quarter-car-a-fmi3.ssp"),
        step_size=Halved(times=(0.0, 0.01, 0.015)),
        stop_time=0.02,  # after the last point the steps are as long as the longest one
    )
    native, python = (replace(run, backend=b).run() for b in (Backend.NATIVE, Backend.REFERENCE))
    assert native.time.tolist() == [0.0, 0.005, 0.01, 0.0125, 0.015, 0.02]
    assert python.columns["wheel.force"].tolist() == native.columns["wheel.force"].tolist()


def test_a_point_that_a_found_time_cannot_be_told_from_is_left_out() -> None:
    rule = Halved(times=(0.0, 1.0))
    assert rule.propose(Instant(0.5 - 1e-12), rule.points).end.seconds == 1.0


def test_an_event_between_the_points_moves_no_point() -> None:
    rule = Halved(times=(0.0, 1.0))
    assert rule.propose(Instant(0.3), rule.points).end.seconds == 0.5


def test_rows_at_events_count_once() -> None:
    assert Halved(times=(0.0, 1.0, 1.0, 2.0)).points == (0.0, 0.5, 1.0, 1.5, 2.0)


@pytest.mark.parametrize("times", [(), (1.0,), (1.0, 0.0), (0.0, float("nan"))])
def test_times_must_increase(times: tuple[float, ...]) -> None:
    with pytest.raises(OptionError, match=r"expected at least two, increasing"):
        Halved(times=times)


def test_two_times_that_doubles_hardly_tell_apart_have_no_middle() -> None:
    near = 1.0 + 2**-52
    assert Halved(times=(0.0, 1.0, near)).points == (0.0, 0.5, 1.0, near)


def test_freely_chosen_steps_stay_exact_next_to_each_other() -> None:
    first = Simulation(
        reference_path("systems/quarter-car-a-fmi2.ssp"), step_size=FreeStep("1/60"), stop_time=0.1
    )
    times = tuple(first.run().time)
    assert set(times) <= set(replace(first, step_size=Halved(times=times)).run().time)
