"""Events of the two-mass system against its exact solution: the figures of the papers, and what goes beyond them."""

from __future__ import annotations

from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from in_turn import in_turn

from fmimaster import AccuracyWarning, Results, reference_path
from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    Jacobi,
    Sequential,
    Waveform,
)
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.front.simulation import Simulation
from fmimaster.inputs import Polynomial
from fmimaster.record.causes import Kind
from fmimaster.run.executor import Backend
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.step_rule import StepContext
from fmimaster.studies.demos.two_mass import Blocks, TwoMassReference, Wall

VERSIONS = ("fmi2", "fmi3", "mixed")
QUINTIC, CUBIC = Polynomial(2, 2), Polynomial(2, 1)

BY_VERSION_AND_BACKEND = pytest.mark.parametrize(
    ("version", "backend"),
    in_turn(VERSIONS, [Backend.REFERENCE, Backend.NATIVE]),
    indirect=["backend"],
)

BLOCKS = Blocks()
STANDING = TwoMassReference(20.0)
MOVING = TwoMassReference(
    7.0,
    # -0.554 (1 - cos(4.255 t)) and -13.823 + 1.024 sin(3.462 t + 2.9), in m
    ceiling=Wall(-0.554, 0.554, 4.255, np.pi / 2),
    floor=Wall(-13.823, 1.024, 3.462, 2.9),
)


class Jump(NamedTuple):
    """Velocities that have jumped at one time."""

    time: float
    name: str
    momentum: float
    """By which it has changed, in kg m/s."""


class Run(NamedTuple):
    """What a run came to."""

    results: Results
    e_rms: float
    e_max: float
    steps: int
    do_steps: int
    restores: int

    def jumps(self) -> list[Jump]:
        """Pairs of rows at one time between which a velocity jumps: collision if both do, else the wall's name."""
        r, found = self.results, []
        for k in np.flatnonzero(np.diff(r.time) == 0):
            upper, lower = np.diff(r["upper.v"])[k], np.diff(r["lower.v"])[k]
            if upper or lower:
                name = "collision" if upper and lower else "ceiling" if upper else "floor"
                found.append(Jump(float(r.time[k]), name, BLOCKS.m1 * upper + BLOCKS.m2 * lower))
        return found


def run(
    version: str,
    algorithm: Algorithm,
    step_size: float | Ramp,
    clock: EventClock | None,
    *,
    benchmark: str = "b3",
    backend: Backend = Backend.FASTEST,
) -> Run:
    path = reference_path(f"systems/two-mass-{benchmark}-{version}.ssp")
    results = Simulation(
        path,
        algorithm=algorithm,
        step_size=step_size,
        event_clock=clock,
        stop_time=20 if benchmark == "b3" else 7,
        backend=backend,
    ).run()
    last = np.append(np.diff(results.time) > 0, True)
    exact = (MOVING if benchmark == "b2" else STANDING)(results.time[last])
    error = np.abs(results["upper.x"][last] - exact[:, 0])
    error += np.abs(results["lower.x"][last] - exact[:, 2])
    s = results.statistics
    return Run(
        results,
        float(np.sqrt(np.mean(error**2))),
        float(error.max()),
        s.steps,
        sum(i.calls for i in s.instances),
        sum(i.restores for i in s.instances),
    )


def assert_events_are_those_of_the_reference(
    r: Run, within: float, reference: TwoMassReference = STANDING, until: float = 20.0
) -> None:
    """None missed, none false, none in one mass only; momentum is conserved at each collision."""
    jumps, expected = r.jumps(), [e for e in reference.events if e.time <= until]
    assert [j.name for j in jumps] == [e.name for e in expected]
    assert [j.time for j in jumps] == pytest.approx([e.time for e in expected], abs=within)
    assert all(abs(j.momentum) <= 1e-12 for j in jumps if j.name == "collision")


# The papers' figures --------------------------------------------------------------------------------------------------


@BY_VERSION_AND_BACKEND
def test_lookahead_takes_the_steps_and_has_the_error_of_the_paper(
    version: str, backend: Backend
) -> None:
    r = run(version, Jacobi(), FreeStep(0.08), LookAhead(), backend=backend)
    assert 279 <= r.steps <= 285
    assert 0.10 <= r.e_rms <= 0.14
    assert (r.do_steps, r.restores) == (2 * r.steps, 0)


@cache
def in_the_master(version: str) -> Run:
    return run(version, Jacobi(), FreeStep(0.08), LookAhead())


@pytest.mark.parametrize("version", VERSIONS)
def test_lookahead_in_the_fmu_and_in_the_master_take_the_same_steps(version: str) -> None:
    in_master = in_the_master(version)
    in_fmu = run(version, Jacobi(), FreeStep(0.08), LookAhead(in_fmu=True))
    assert in_fmu.steps == in_master.steps
    # both compare indicators as they are after two steps, before inputs are set for the next
    assert in_fmu.results.time.tolist() == in_master.results.time.tolist()
    assert 0.10 <= in_fmu.e_rms <= 0.14


def test_under_lookahead_each_event_happens_once_in_each_mass() -> None:
    r = in_the_master("fmi2").results  # counts its events
    counted = [r[f"{n}.out"][-1] for n in ("upper.collision", "lower.collision", "upper.ceiling")]
    names = [e.name for e in STANDING.events]
    assert counted == [names.count("collision"), names.count("collision"), names.count("ceiling")]


@pytest.mark.parametrize("version", VERSIONS)
def test_without_an_event_clock_long_steps_are_useless(version: str) -> None:
    with pytest.warns(AccuracyWarning, match="There is no event clock"):
        short, long = (run(version, Jacobi(), h, None) for h in (0.01, 0.08))
    assert (short.steps, long.steps) == (2000, 250)
    assert 0.06 <= short.e_rms <= 0.09
    assert long.e_rms > 1
    assert long.e_rms > 10 * in_the_master(version).e_rms


DEJACO = Sequential("upper"), Check()


@BY_VERSION_AND_BACKEND
def test_figure_4_of_dejaco(version: str, backend: Backend) -> None:
    r = run(version, DEJACO[0], 0.1, DEJACO[1], benchmark="b1", backend=backend)
    found = [(j.name, j.time) for j in r.jumps()]
    assert [name for name, _ in found] == ["collision"] * 3 + ["ceiling", "collision"]
    expected = [0.5400, 1.6563, 4.6224, 4.8911, 5.2762]
    assert [time for _, time in found] == pytest.approx(expected, abs=0.005)
    assert 0.09 <= r.e_rms <= 0.14
    assert r.results["lower.x"].min() == pytest.approx(-14.32, abs=0.1)


@pytest.mark.parametrize("version", VERSIONS)
def test_figure_5_of_dejaco_has_the_wrong_ceiling_event(version: str) -> None:
    with pytest.warns(AccuracyWarning, match="'collision' was found late"):
        r = run(version, DEJACO[0], 0.3, DEJACO[1], benchmark="b1")
    jumps = r.jumps()
    assert [j.name for j in jumps[:2]] == ["collision", "ceiling"]
    assert 0.85 <= jumps[1].time <= 0.95
    assert -18 <= r.results["lower.x"].min() <= -16.5
    assert r.e_rms > 2


@pytest.mark.parametrize(("step_size", "e_rms"), [(0.01, 0.0011), (0.02, 0.0060), (0.05, 0.0647)])
def test_further_figures_of_dejaco(step_size: float, e_rms: float) -> None:
    r = run("fmi3", DEJACO[0], step_size, DEJACO[1], benchmark="b1")
    assert r.e_rms == pytest.approx(e_rms, rel=0.05)


@pytest.mark.parametrize("version", VERSIONS)
def test_with_the_wrong_sequence_check_finds_the_ceiling(version: str) -> None:
    with pytest.warns(AccuracyWarning, match=r"'upper\.ceiling' was found late"):
        r = run(version, Sequential("lower"), 0.05, Check(), benchmark="b1")
    assert r.e_rms == pytest.approx(0.061, abs=0.002)
    (ceiling,) = [e for e in r.results.events if e.name == "upper.ceiling"]
    assert ceiling.time == pytest.approx(4.90)
    assert ceiling.cause.kind == Kind.DETECTED


class Noted(AutomaticSequence):
    """Notes what it chooses for each step."""

    __slots__ = ()
    chosen: ClassVar[list[int]] = []

    def choose(self, context: StepContext) -> int:
        self.chosen.append(AutomaticSequence.choose(self, context))
        return self.chosen[-1]


@BY_VERSION_AND_BACKEND
def test_figure_6_of_dejaco_the_sequence_follows_the_events(version: str, backend: Backend) -> None:
    Noted.chosen.clear()
    r = run(version, Noted(), 0.05, Check(), benchmark="b2", backend=backend)
    begins = np.unique(r.results.time)[:-1]
    assert len(begins) == len(Noted.chosen)
    switches = begins[1:][np.diff(Noted.chosen) != 0]
    assert switches == pytest.approx([2.40, 3.55, 4.75], abs=0.05)
    assert Noted.chosen[0] == 0  # the upper mass has the first event
    assert r.e_rms == pytest.approx(0.082, abs=0.005)
    assert r.e_max == pytest.approx(0.207, abs=0.005)


@pytest.mark.parametrize(
    ("version", "figures"), in_turn(VERSIONS, [(0.1, 11, 0.174), (0.05, 8, 0.071)])
)
def test_where_no_event_is_in_sight_steps_are_parallel(
    version: str, figures: tuple[float, int, float]
) -> None:
    step_size, others, e_rms = figures
    Noted.chosen.clear()
    r = run(version, Noted(parallel=True), step_size, Check(), benchmark="b1")
    assert sum(way != 2 for way in Noted.chosen) == others
    assert r.e_rms == pytest.approx(e_rms, rel=0.02)


# Beyond the papers: goals G1 to G5 ------------------------------------------------------------------------------------


def early_return(inputs: Polynomial = QUINTIC) -> Algorithm:
    return Waveform(Aligned(Jacobi(inputs)), sweeps=2)


@BY_VERSION_AND_BACKEND
def test_g1_the_predictive_event_clock_needs_no_going_back(version: str, backend: Backend) -> None:
    r = run(version, Jacobi(QUINTIC), Ramp(0.1), Predictive(), backend=backend)
    assert r.e_rms <= 2e-4
    assert r.steps <= 262
    assert r.do_steps <= 524
    assert r.restores == 0
    assert_events_are_those_of_the_reference(r, within=2e-5)


@BY_VERSION_AND_BACKEND
def test_g2_early_return_with_long_steps(version: str, backend: Backend) -> None:
    r = run(version, early_return(), FreeStep(0.2), EarlyReturn(), backend=backend)
    assert r.e_rms <= 2e-4
    assert r.steps <= 110
    assert r.do_steps <= 560
    assert_events_are_those_of_the_reference(r, within=2e-5)


@pytest.mark.parametrize("version", VERSIONS)
def test_g3_early_return_is_exact_to_seven_digits(version: str) -> None:
    r = run(version, early_return(), FreeStep(0.08), EarlyReturn())
    assert r.e_rms <= 3e-7
    assert r.steps <= 260
    assert_events_are_those_of_the_reference(r, within=3e-8)


@pytest.mark.parametrize("version", VERSIONS)
def test_g4_outputs_without_accelerations_suffice(version: str) -> None:
    r = run(version, early_return(CUBIC), FreeStep(0.08), EarlyReturn())
    assert r.e_rms <= 3e-4
    assert_events_are_those_of_the_reference(r, within=3e-5)


@BY_VERSION_AND_BACKEND
def test_g5_sequential_steps_need_no_going_back_either(version: str, backend: Backend) -> None:
    algorithm = Sequential("upper", QUINTIC, synchronised=True)
    r = run(version, algorithm, 0.1, Check(), backend=backend)
    assert r.e_rms <= 2e-4
    assert_events_are_those_of_the_reference(r, within=2e-5)


@pytest.mark.parametrize(
    ("version", "method"),
    in_turn(
        VERSIONS,
        [
            (Jacobi(QUINTIC), Ramp(0.1), Predictive(), 2e-4),
            (early_return(), FreeStep(0.1), EarlyReturn(), 1e-6),
        ],
    ),
)
def test_moving_walls_grow_errors_270_fold(
    version: str, method: tuple[Algorithm, Ramp, EventClock, float]
) -> None:
    algorithm, step_size, clock, e_rms = method
    r = run(version, algorithm, step_size, clock, benchmark="b2")
    assert r.e_rms <= e_rms
    assert_events_are_those_of_the_reference(r, within=e_rms, reference=MOVING, until=7.0)


@pytest.mark.parametrize(
    ("method", "step_size"),
    in_turn(
        [(Jacobi(QUINTIC), Predictive()), (early_return(), EarlyReturn())], [0.02, 0.2, 0.16, 0.04]
    ),
)
def test_no_step_size_misses_an_event_or_invents_one(
    method: tuple[Algorithm, EventClock], step_size: float
) -> None:
    algorithm, clock = method
    rule = Ramp(step_size) if isinstance(clock, Predictive) else FreeStep(step_size)
    r = run("fmi3", algorithm, rule, clock)
    assert_events_are_those_of_the_reference(r, within=0.05)


def test_the_order_of_the_predictor_is_seen_in_the_error() -> None:
    """Halving the step: at least order 3 with prediction, 5 with early return (events.md 8)."""
    predicted = [run("fmi3", Jacobi(QUINTIC), Ramp(h), Predictive()).e_rms for h in (0.08, 0.04)]
    located = [run("fmi3", early_return(), FreeStep(h), EarlyReturn()).e_rms for h in (0.08, 0.04)]
    assert predicted[0] / predicted[1] > 2**3
    assert located[0] / located[1] > 2**5
