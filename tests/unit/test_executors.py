"""What each instruction means, by small programs on FMUs written in Python."""

from __future__ import annotations

from itertools import pairwise
from time import sleep
from typing import Any

import numpy as np
import pytest
from pytest import approx
from python_fmu import Bench, PythonFmu, parse

from fmimaster.plan.layout import Group
from fmimaster.program.hook import Twin
from fmimaster.run import rows
from fmimaster.run.executor import Backend, InitialTimes, Outcome, Reason, Repeated
from fmimaster.system.model import DataType
from fmimaster.system.states import FmiCall

pytestmark = pytest.mark.usefixtures("each_executor")

only_by_the_interpreter = pytest.mark.parametrize(
    "each_executor", [Backend.REFERENCE], ids=["reference"], indirect=True
)
"""The kernel does as many steps at once as take some time, and measures the time of some steps only."""


def ramp(**options: Any) -> PythonFmu:
    """x grows by u per second; y = x, and t is the time."""

    def step(v: Any, h: float) -> None:
        v.x += h * v.u

    return PythonFmu(
        inputs={"u": 1.0},
        states={"x": 0.0},
        outputs={"y": lambda v: v.x, "t": lambda v: v.t},
        step=step,
        **options,
    )


def bench(*, n_buffers: int = 3, history: int = 0, **options: Any) -> Bench:
    """Two ramps at t = 0, b fed by a; a.y = 0 and b.y = 0 in the store."""
    made = Bench(
        {"a": ramp(), "b": ramp()}, ["a.y -> b.u"], n_buffers=n_buffers, history=history, **options
    )
    made.initialize()
    return made


STEP_A = "STEP a 1.0\nGET a outputs"


# STEP, GET ------------------------------------------------------------------------------------------------------------


def test_a_step_ends_at_its_fraction_of_the_interval() -> None:
    b = bench()
    b.run("STEP a 0.25\nSTEP a 1.0", 0.0, 2.0)
    assert b.instances["a"].called(FmiCall.DO_STEP) == [(0.0, 0.5), (0.5, 1.5)]


def test_a_whole_step_ends_at_the_end_bit_by_bit() -> None:
    begin, end = 0.2, 0.9
    assert begin + (end - begin) != end
    b = Bench({"a": ramp()}, experiment=InitialTimes(begin))
    b.initialize()
    b.run("STEP a 0.5\nSTEP a 1.0", begin, end)
    t, h = b.instances["a"].called(FmiCall.DO_STEP)[-1]
    assert t + h == end


def test_a_step_begins_where_the_instance_stands_not_where_the_interval_begins() -> None:
    b = bench()
    b.run("STEP a 1.0", 0.0, 1.0)
    b.run("STEP b 1.0", 0.0, 3.0)
    assert b.instances["b"].called(FmiCall.DO_STEP) == [(0.0, 3.0)]


def test_outputs_change_in_the_store_only_when_they_are_read() -> None:
    b = bench()
    b.run("STEP a 1.0", 0.0, 1.0)
    assert b.value("a.y") == 0.0
    b.run("GET a outputs", 1.0)
    assert b.value("a.y") == 1.0


def test_the_store_notes_where_the_instance_stood_when_it_was_read() -> None:
    b = bench()
    b.run("STEP a 0.5\nGET a outputs\nSTEP a 1.0\nSTEP b 1.0", 0.0, 2.0)
    assert (b.read_at("a"), b.read_at("b")) == (1.0, 0.0)


# MOVE, SET ------------------------------------------------------------------------------------------------------------


def test_an_input_takes_what_is_in_the_store_when_it_is_moved() -> None:
    b = bench()
    b.run(f"MOVE b continuous\n{STEP_A}\nSET b continuous", 0.0, 5.0)
    assert b.instances["b"].values.u == 0.0
    b.run("MOVE b continuous\nSET b continuous", 5.0)
    assert b.instances["b"].values.u == 5.0


def test_an_fmu_that_was_told_a_polynomial_is_told_too_when_its_input_is_held_again() -> None:
    b = bench()
    held = "MOVE b continuous\nSET b continuous\nSTEP b 1.0"
    b.run(held, 0.0, 1.0)
    assert b.instances["b"].told == []
    b.run("FIT b 0.0 1 0 ()\nSET b continuous\nSTEP b 1.0", 1.0, 2.0)
    b.run(held, 2.0, 3.0)
    assert b.instances["b"].told == [1.0, 2.0]


# SAVE, RESTORE --------------------------------------------------------------------------------------------------------


def test_restore_brings_back_the_state_and_where_the_instance_stands() -> None:
    b = bench()
    b.run("STEP a 0.5\nSAVE a 0\nSTEP a 1.0\nRESTORE a 0\nSTEP a 0.75\nGET a outputs", 0.0, 4.0)
    assert b.instances["a"].called(FmiCall.DO_STEP) == [(0.0, 2.0), (2.0, 2.0), (2.0, 1.0)]
    assert (b.value("a.y"), b.value("a.t")) == (3.0, 3.0)


def test_restore_leaves_the_outputs_in_the_store_as_they_are() -> None:
    b = bench()
    b.run(f"SAVE a 0\n{STEP_A}\nRESTORE a 0", 0.0, 1.0)
    assert (b.value("a.y"), b.read_at("a")) == (1.0, 1.0)
    b.run("GET a outputs", 0.0)
    assert (b.value("a.y"), b.read_at("a")) == (0.0, 0.0)


def test_a_place_keeps_its_state_when_it_is_restored_from_twice() -> None:
    b = bench()
    b.run("SAVE a 0\nSTEP a 1.0\nRESTORE a 0\nSTEP a 1.0\nRESTORE a 0\nGET a outputs", 0.0, 1.0)
    assert b.value("a.y") == 0.0


def test_places_are_told_apart_and_saved_over() -> None:
    b = bench()
    b.run("SAVE a 0\nSTEP a 0.5\nSAVE a 1\nSAVE a 0\nSTEP a 1.0\nSAVE a 2\nRESTORE a 0", 0.0, 2.0)
    assert b.instances["a"].values.x == 1.0
    b.run("RESTORE a 2", 0.0, 2.0)
    assert b.instances["a"].values.x == 2.0


def test_restoring_one_instance_does_not_move_another() -> None:
    b = bench()
    b.run("SAVE a 0\nSAVE b 1\nSTEP a 1.0\nSTEP b 1.0\nRESTORE a 0", 0.0, 1.0)
    assert (b.instances["a"].values.t, b.instances["b"].values.t) == (0.0, 1.0)


# KEEP, RECALL ---------------------------------------------------------------------------------------------------------


def test_recall_brings_back_the_outputs_of_all_instances_and_when_they_were_read() -> None:
    b = bench()
    b.run("STEP b 1.0\nGET b outputs\nKEEP 1", 0.0, 1.0)
    b.run(f"{STEP_A}", 0.0, 1.0)
    b.run("RECALL 1", 1.0)
    assert (b.value("a.y"), b.value("b.t")) == (0.0, 1.0)
    assert (b.read_at("a"), b.read_at("b")) == (0.0, 1.0)


def test_buffers_are_told_apart() -> None:
    b = bench()
    b.run(f"KEEP 0\n{STEP_A}\nKEEP 1\nRECALL 0", 0.0, 1.0)
    assert b.value("a.y") == 0.0
    b.run("RECALL 1", 1.0)
    assert b.value("a.y") == 1.0


def test_revert_brings_back_the_outputs_of_one_instance_and_when_they_were_read() -> None:
    b = bench()
    step_b = "STEP b 1.0\nGET b outputs"
    b.run(f"KEEP 1\nKEEP 0\n{STEP_A}\n{step_b}\nREVERT a 1", 0.0, 1.0)
    assert (b.value("a.y"), b.value("b.t")) == (0.0, 1.0)
    assert (b.read_at("a"), b.read_at("b")) == (0.0, 1.0)


# REMEMBER, FORGET -----------------------------------------------------------------------------------------------------


def history(b: Bench) -> list[tuple[float, float]]:
    """Time and value of a.y of each point of the history."""
    points = b.executor.store.history
    return [(float(read[0]), float(values[DataType.FLOAT64][0])) for values, read in points]


def remembered(times: int) -> Bench:
    b = bench(history=2)
    for k in range(times):
        b.run(STEP_A, k, k + 1)
        b.run("REMEMBER", k + 1)
    return b


def test_the_history_has_the_newest_point_first() -> None:
    assert history(remembered(2)) == [(2.0, 2.0), (1.0, 1.0)]


def test_the_oldest_point_of_the_history_is_dropped() -> None:
    assert history(remembered(3)) == [(3.0, 3.0), (2.0, 2.0)]


def test_remembering_does_not_touch_other_buffers() -> None:
    b = remembered(1)
    b.run("KEEP 2", 1.0)
    b.run(STEP_A, 1.0, 2.0)
    b.run("REMEMBER\nREMEMBER", 2.0)
    b.run("RECALL 2", 2.0)
    assert b.value("a.y") == 1.0


def test_a_point_of_the_history_may_come_from_a_buffer() -> None:
    b = remembered(1)
    b.run(f"STEP a 0.5\nGET a outputs\nKEEP 2\n{STEP_A}", 1.0, 2.0)
    b.run("REMEMBER 2\nREMEMBER", 2.0)
    assert history(b) == [(2.0, 2.0), (1.5, 1.5)]


def test_after_forgetting_no_point_of_the_history_has_a_time() -> None:
    b = remembered(2)
    b.run("KEEP 2\nFORGET", 2.0)
    store = b.executor.store
    assert [np.isnan(read).all() for _, read in store.history] == [True, True]
    assert not np.isnan(store.buffers[2][1]).any()


# REPEAT, UNTIL --------------------------------------------------------------------------------------------------------


def counting(sequence: list[float], **attributes: Any) -> Bench:
    """A unit whose output runs through a sequence, one element each time that it is read, and stays at the last."""
    rest = [sequence[0]]

    def output(_: Any) -> float:
        return rest.pop(0) if len(rest) > 1 else rest[0]

    unit = PythonFmu(outputs={"y": output}, attributes={"y": attributes})
    b = Bench({"a": unit})
    b.initialize()
    rest[:] = sequence
    return b


def passes(b: Bench, repeat: str, until: str) -> tuple[int, Outcome]:
    """Number of passes of a REPEAT that reads the output, and the outcome."""
    before = len(b.instances["a"].called(FmiCall.GET))
    outcome = b.run(f"REPEAT {repeat}\nGET a outputs\nUNTIL {until}")
    return len(b.instances["a"].called(FmiCall.GET)) - before, outcome


def test_a_repeat_ends_when_outputs_have_come_to_rest() -> None:
    count, outcome = passes(counting([5, 6, 7, 7, 7]), "1 100", "0")
    assert (count, outcome) == (4, Outcome(0.0))


def test_the_first_pass_is_never_at_rest() -> None:
    assert passes(counting([5, 5]), "1 100", "0")[0] == 2


def test_at_least_so_many_passes_are_done() -> None:
    assert passes(counting([5, 5]), "7 100", "0")[0] == 7


def test_an_infinite_tolerance_asks_for_the_number_of_passes_only() -> None:
    assert passes(counting([5, 6, 7, 8, 9]), "3 3", "inf") == (3, Outcome(0.0))


def test_a_change_counts_relative_to_the_magnitude() -> None:
    # 1001 -> 1002 changes by 1/1002, less than 1e-3
    assert passes(counting([1000, 900, 1001, 1002, 2000]), "1 100", "1e-3")[0] == 4


def test_a_change_counts_relative_to_the_nominal_value_if_that_is_larger() -> None:
    # 0 -> 0.09 -> 0.1: changes of 0.09 and 0.01 are 9e-4 and 1e-4 of 100
    assert passes(counting([0.0, 0.09, 0.1], nominal=100.0), "1 100", "2e-4")[0] == 3
    assert passes(counting([0.0, 0.09, 0.1], nominal=100.0), "1 100", "1e-3")[0] == 2


def test_outputs_that_are_no_floats_must_be_equal() -> None:
    assert passes(counting([1, 2, 2], type=DataType.INT32), "1 100", "1e9")[0] == 3


def test_a_nan_is_never_at_rest() -> None:
    _, outcome = passes(counting([float("nan")] * 9), "1 5", "1.0")
    assert outcome.stopped is not None


def test_a_repeat_that_does_not_come_to_rest_stops_the_program() -> None:
    b = counting([1, 2, 4, 8, 16, 32])
    outcome = b.run("REPEAT 1 4\nGET a outputs\nUNTIL 1e-3\nSTEP a 1.0", 0.0, 1.0)
    assert outcome.stopped is not None
    stop = outcome.stopped
    assert (stop.reason, stop.instance, stop.instruction) == (Reason.NOT_CONVERGED, -1, 2)
    assert stop.change == 0.5
    assert b.instances["a"].called(FmiCall.DO_STEP) == []


def test_a_bounded_repeat_goes_on_after_its_last_pass() -> None:
    b = counting([1, 2, 4, 8, 16, 32])
    outcome = b.run("REPEAT 1 4 true\nGET a outputs\nUNTIL 1e-3\nSTEP a 1.0", 0.0, 1.0)
    assert outcome == Outcome(1.0)
    assert b.value("a.y") == 8
    assert len(b.instances["a"].called(FmiCall.DO_STEP)) == 1


def test_a_bounded_repeat_ends_sooner_if_it_converges() -> None:
    assert passes(counting([5, 6, 6, 7]), "1 100 true", "0")[0] == 3


def test_a_waveform_of_restored_steps_converges_to_the_implicit_solution() -> None:
    # b's input over the step is a's value at its end, and a's is b's: x = 1 + h y, y = 1 + h x
    b = Bench({"a": ramp(), "b": ramp()}, ["a.y -> b.u", "b.y -> a.u"], {"a.x": 1.0, "b.x": 1.0})
    b.initialize()
    b.run(
        """
        SAVE a 0
        SAVE b 1
        REPEAT 2 100
        RESTORE a 0
        RESTORE b 1
        MOVE a continuous
        SET a continuous
        STEP a 1.0
        GET a outputs
        MOVE b continuous
        SET b continuous
        STEP b 1.0
        GET b outputs
        UNTIL 1e-14
        """,
        0.0,
        0.5,
    )
    # contraction 1/4: the error is a third of the last change, 1e-14 relative
    assert b.value("a.y") == approx(2.0, rel=1e-14)
    assert b.value("b.y") == approx(2.0, rel=1e-14)


# SAMPLE ---------------------------------------------------------------------------------------------------------------


def test_a_sample_is_a_row_of_the_outputs_in_the_store() -> None:
    b = bench()
    b.executor.rows.take()
    b.run(f"{STEP_A}\nSAMPLE", 0.0, 2.0)
    times, values = b.executor.rows.take()
    assert times.tolist() == [2.0]
    assert values[DataType.FLOAT64].tolist() == [[2.0, 2.0, 0.0, 0.0]]


def test_a_sample_that_equals_the_last_one_at_its_time_is_no_row() -> None:
    b = bench()
    b.executor.rows.take()
    b.run(f"SAMPLE\nSAMPLE\n{STEP_A}\nSAMPLE\nSAMPLE", 2.0)
    assert b.executor.rows.take()[0].tolist() == [
        2.0,
        2.0,
    ]  # before the outputs were read, and after


# What stops a program -------------------------------------------------------------------------------------------------


def failing(at: int, status: str) -> Bench:
    """Two ramps of which b fails at this call after its initialization."""
    units = {"a": ramp(), "b": ramp()}
    b = Bench(units)
    b.initialize()
    units["b"].fails_at = len(b.instances["b"].log) + at
    units["b"].status = status
    return b


def test_a_discarded_step_stops_the_program_and_says_where() -> None:
    b = failing(2, "Discard")
    outcome = b.run("STEP a 1.0\nSTEP b 0.5\nSTEP b 1.0\nGET a outputs", 0.0, 2.0)
    assert outcome.stopped is not None
    stop = outcome.stopped
    assert (stop.reason, stop.instance, stop.instruction, stop.time) == (
        Reason.DISCARDED,
        1,
        2,
        1.0,
    )
    assert outcome.end == 1.0
    assert b.value("a.y") == 0.0  # nothing is done after it


def test_in_a_repeat_the_number_is_that_of_the_instruction_in_the_whole_program() -> None:
    b = failing(1, "Discard")
    outcome = b.run("STEP a 0.5\nREPEAT 1 1\nSTEP a 1.0\nSTEP b 1.0\nUNTIL inf", 0.0, 2.0)
    assert outcome.stopped is not None
    assert outcome.stopped.instruction == 3


def test_an_fmu_that_ends_the_simulation_lets_the_program_go_on_to_its_end() -> None:
    b = failing(1, "Terminate")
    outcome = b.run("STEP b 1.0\nSTEP a 1.0\nGET a outputs", 0.0, 2.0)
    assert outcome == Outcome(2.0, terminate=True)
    assert b.value("a.y") == 2.0


def test_the_wish_to_end_does_not_outlast_the_program() -> None:
    b = failing(1, "Terminate")
    b.run("STEP b 1.0", 0.0, 1.0)
    assert b.run("STEP b 1.0", 1.0, 2.0) == Outcome(2.0)


# Many intervals -------------------------------------------------------------------------------------------------------


def repeated(b: Bench, times: list[float]) -> tuple[int, Outcome]:
    done, outcome, _ = b.executor.repeat([b.programs.attempt], b.programs.commit, times)
    return done, outcome


def test_the_last_interval_comes_back_uncommitted() -> None:
    b = bench()
    assert repeated(b, [0.0, 1.0, 2.0, 3.0]) == (2, Outcome(3.0))
    assert b.executor.rows.take()[0].tolist() == [0.0, 1.0, 2.0]
    assert b.instances["a"].values.t == 3.0


def test_it_comes_back_at_the_first_attempt_that_does_not_simply_succeed() -> None:
    units = {"a": ramp()}
    b = Bench(units)
    b.initialize()
    units["a"].status = "Terminate"
    units["a"].fails_at = len(b.instances["a"].log) + 3  # step, get, step
    count, outcome = repeated(b, [0.0, 1.0, 2.0, 3.0])
    assert (count, outcome) == (1, Outcome(2.0, terminate=True))


def test_a_pattern_of_programs_is_gone_through_again_and_again() -> None:
    """a steps in each interval, b in each third one, over three of them."""
    b = bench()
    both = parse(f"{STEP_A}\nSTEP b 1.0\nGET b outputs", b.plan)
    only = parse(STEP_A, b.plan)
    times = [k / 8 for k in range(9)]
    found = b.executor.repeat([only, only, both], b.programs.commit, times)
    assert found == Repeated(7, Outcome(1.0))
    assert b.instances["b"].called(FmiCall.DO_STEP) == [(0.0, 3 / 8), (3 / 8, 3 / 8)]
    assert len(b.instances["a"].called(FmiCall.DO_STEP)) == 8


@pytest.mark.parametrize("each_executor", [Backend.NATIVE], ids=["native"], indirect=True)
def test_it_comes_back_at_the_first_attempt_that_a_watch_does_not_let_pass() -> None:
    b = bench()
    slots = np.array([b.plan.layout.slots[0, Group.OUTPUTS, "y"][1].start])
    values, before = b.executor.store.values[DataType.FLOAT64], np.zeros(1)
    arrays = {"slots": slots, "values": values, "before": before}
    watches = b.executor.watches([Twin("changes", {"n": 1, "size": 8, "is_float": 1}, arrays)])
    b.instances["a"].values.u = 0.0

    def repeated_with_watch(begin: float) -> tuple[int, Outcome]:
        times = [begin + k for k in range(4)]
        return b.executor.repeat([b.programs.attempt], b.programs.commit, times, watches)[:2]

    assert repeated_with_watch(0.0) == (2, Outcome(3.0))
    b.instances["a"].values.u = 1.0
    assert repeated_with_watch(3.0) == (0, Outcome(4.0))
    b.instances["a"].values.u = 0.0
    before[:] = 1.0
    assert repeated_with_watch(4.0) == (2, Outcome(7.0))
    before[:] = values[slots] = b.instances["a"].values.x = np.nan
    assert repeated_with_watch(7.0) == (0, Outcome(8.0))


@only_by_the_interpreter
def test_it_comes_back_when_the_next_row_is_the_last_that_has_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 1000)
    b = bench()
    capacity = b.executor.rows.capacity
    assert capacity == 1000
    count, _ = repeated(b, [k / 8 for k in range(capacity + 2)])
    # the first row is that of the start
    assert (count, b.executor.rows.room) == (capacity - 2, 1)


@only_by_the_interpreter
def test_it_comes_back_when_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench()
    run = b.executor.run
    monkeypatch.setattr(b.executor, "run", lambda *a: (b.executor.ask(), run(*a))[1])
    assert repeated(b, [0.0, 1.0, 2.0]) == (0, Outcome(1.0))


@only_by_the_interpreter
def test_wall_time_in_steps_is_counted_per_instance() -> None:
    b = bench()
    b.run("STEP a 1.0", 0.0, 1.0)
    assert b.executor.seconds[0] > 0.0
    assert b.executor.seconds[1] == 0.0


def slow_at_first(seconds: float) -> PythonFmu:
    """An FMU whose first step takes so long, and all others nearly nothing."""
    pauses = [seconds]
    return PythonFmu(step=lambda _v, _h: sleep(pauses.pop()) if pauses else None)


@pytest.mark.parametrize("single", [False, True])
def test_a_first_step_that_takes_long_does_not_count_for_others(single: bool) -> None:
    b = Bench({"a": slow_at_first(0.02)})
    b.initialize()
    steps, commit = b.programs.attempt, b.programs.commit
    times = [k / 8 for k in range(101)]
    if single:
        for begin, end in pairwise(times):
            b.executor.stepping(steps, commit)(begin, end)
    else:
        b.executor.repeat([steps], commit, times)
    assert 0.02 <= b.executor.seconds[0] < 0.1


@pytest.mark.parametrize("every", [1, 2, 3, 4, 7])
def test_measured_steps_stand_for_those_of_each_program_of_a_pattern(every: int) -> None:
    stood_for, n = list[int](), 3000

    def step(_v: Any, _h: float) -> None:
        stood_for.append(kernel.measuring if kernel else 1)

    b = Bench({"a": ramp(), "b": PythonFmu(step=step)})
    kernel = getattr(b.executor, "kernel", None)
    b.initialize()
    only_a, both = parse("STEP a 1.0", b.plan), parse("STEP a 1.0\nSTEP b 1.0", b.plan)
    times = np.arange(n + 1) / 8
    assert (
        b.executor.repeat([both, *[only_a] * (every - 1)], b.programs.commit, times).done == n - 1
    )
    assert sum(stood_for) == approx(len(stood_for), rel=0.25)
