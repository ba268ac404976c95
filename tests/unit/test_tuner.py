"""Whether threads pay is decided by what steps take: here by given times, so that nothing depends on the machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from fmimaster.kernel._kernel import ffi, lib

from fmimaster.run.native.executor import FIRST_TRIAL

Costs = Callable[[float], float]
"""Time in s since the begin → wall time in s of a step."""


@dataclass
class Run:
    """Steps by a tuner until a time.

    Attributes
    ----------
    seconds, plain : float
        What they took, and what they would have taken without threads.
    threaded : float
        Part of the steps that were done with threads.
    """

    seconds: float
    plain: float
    threaded: float


def run(until: float, *, without: Costs, threads: Costs) -> Run:
    tuner: Any = ffi.new("fm_tuner *")
    lib.fm_tuner_begin(tuner, FIRST_TRIAL)
    now = plain = 0.0
    steps = threaded = 0
    while now < until:
        n, began = tuner.n, now
        for _ in range(n):
            plain += without(now)
            now += threads(now) if tuner.threads else without(now)
        steps += n
        threaded += n if tuner.threads else 0
        lib.fm_tuner_decide(tuner, now - began)
    return Run(now, plain, threaded / steps)


def always(seconds: float) -> Costs:
    return lambda _: seconds


@pytest.mark.parametrize("each", [1e-6, 1e-4, 1e-2])
@pytest.mark.parametrize("factor", [1.0, 1.1, 4.0, 100.0])
def test_threads_that_do_not_pay_cost_little(each: float, factor: float) -> None:
    done = run(max(1.0, 200 * factor * each), without=always(each), threads=always(factor * each))
    one_step = factor * each  # of each trial, of which there are ten at most
    assert done.seconds <= 1.02 * done.plain + 10 * one_step
    assert done.threaded < 0.5


@pytest.mark.parametrize("each", [2e-6, 1e-4, 1e-2])
def test_threads_that_pay_are_used(each: float) -> None:
    done = run(1.0, without=always(each), threads=always(0.6 * each))
    assert done.threaded > 0.95


def test_with_slow_steps_the_second_one_tries_threads() -> None:
    assert run(10.0, without=always(1.0), threads=always(0.5)).threaded >= 0.9


def test_threads_are_tried_again_when_steps_take_longer() -> None:
    done = run(
        8.0,
        without=lambda t: 1e-6 if t < 2.0 else 1e-4,
        threads=lambda t: 2e-6 if t < 2.0 else 6e-5,
    )
    assert done.seconds - 2.0 <= 0.65 * (done.plain - 2.0)


def test_threads_are_given_up_when_steps_get_shorter() -> None:
    done = run(
        8.0,
        without=lambda t: 1e-4 if t < 2.0 else 1e-6,
        threads=lambda t: 6e-5 if t < 2.0 else 2e-6,
    )
    assert done.seconds <= done.plain


@pytest.mark.parametrize("until", [0.15, 10.0])
def test_threads_that_wait_for_other_programs_now_and_then_are_given_up(until: float) -> None:
    """A core that is shared: for 3 ms faster, then nothing is done for 3 ms."""
    wait, last = 3e-3, [0.0]

    def threads(now: float) -> float:
        if now - last[0] < wait:
            return 2.5e-6
        last[0] = now + wait
        return wait

    done = run(until, without=always(4e-6), threads=threads)
    assert done.seconds <= 1.03 * done.plain
