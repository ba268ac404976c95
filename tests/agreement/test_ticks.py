"""Clocks that tick: both executors give the same rows, steps, activations and FMI calls, with any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from in_turn import in_turn
from kernel_encodings import as_written

from fmimaster import Results, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Jacobi
from fmimaster.events import EarlyReturn, LookAhead, Predictive
from fmimaster.events.event_clock import EventClock
from fmimaster.inputs import Polynomial
from fmimaster.run import Backend
from fmimaster.run.native.executor import NativeExecutor
from fmimaster.run.ticks_ahead import TicksAhead


def sampler(counter: int, resolution: int, shift: int = 0) -> dict[str, Any]:
    """Start values of a Sampler with this interval and shift."""
    return {
        "interval.counter": counter,
        "interval.resolution": resolution,
        "shift.counter": shift,
        "gain": -0.5,
    }


def controlled() -> SystemBuilder:
    """A sampled controller and a continuous plant."""
    builder = SystemBuilder("controlled")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("controller", reference_path("fmi3/Sampler.fmu"), sampler(1, 10))
    builder.connect("plant.x", "controller.u")
    builder.connect("controller.held", "plant.u")
    return builder


def two_rates() -> SystemBuilder:
    """Two samplers of one plant with intervals 1/10 and 1/3, of which the first also feeds a plant."""
    builder = SystemBuilder("rates")
    builder.add("plant", reference_path("fmi3/Dahlquist.fmu"))
    builder.add("a", reference_path("fmi3/Sampler.fmu"), sampler(1, 10))
    builder.add("b", reference_path("fmi3/Sampler.fmu"), sampler(1, 3, shift=1))
    builder.connect("plant.x", "a.u")
    builder.connect("a.held", "b.u")
    builder.connect("b.held", "plant.u")
    return builder


def partitions() -> SystemBuilder:
    """Scheduled Execution, with a countdown clock among periodic ones."""
    builder = SystemBuilder("partitions")
    builder.add("partitions", reference_path("fmi3/Partitions.fmu"))
    return builder


def kinds() -> SystemBuilder:
    """Clocks of all kinds in one FMU."""
    builder = SystemBuilder("kinds")
    builder.add("kinds", reference_path("fmi3/ClockKinds.fmu"))
    return builder


def countdowns() -> SystemBuilder:
    """A unit that ticks by itself, with a text and a binary, which are logged."""
    builder = SystemBuilder("events")
    builder.add("source", reference_path("fmi3/EventSource.fmu"))
    builder.add("logger", reference_path("fmi3/Logger.fmu"))
    builder.connect("source.event", "logger.write")
    builder.connect("source.text", "logger.text")
    builder.connect("source.data", "logger.data")
    return builder


SYSTEMS = [controlled, two_rates, partitions, kinds, countdowns]
STEPS = ["1/10", "0.077", "0.25"]


def run(
    make: Callable[[], SystemBuilder],
    step: str,
    backend: Backend,
    *,
    ahead: bool | None = None,
    **settings: Any,
) -> Results:
    """A run in which the loop looks at each tick itself, unless ``ahead``; the kernel is given ticks ahead by default."""
    experiment: dict[str, Any] = {"start_time": 0, "stop_time": "20.03", "step_size": step}
    settings = experiment | settings
    with pytest.MonkeyPatch.context() as patch:
        if not (backend is Backend.NATIVE if ahead is None else ahead):
            patch.setattr(TicksAhead, "steps_to", lambda *_: None)
        return simulate(make(), backend=backend, output_variables=["*"], **settings)


def facts(results: Results) -> dict[str, Any]:
    """All that two runs must have in common."""
    return {
        "time": results.time.tobytes(),
        "columns": {name: column.tolist() for name, column in results.items()},
        "steps": results.steps,
        "activations": results.activations,
        "calls": [(i.calls, i.restores, i.events) for i in results.statistics.instances],
    }


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("make", SYSTEMS)
def test_both_executors_give_the_same(make: Callable[[], SystemBuilder], step: str) -> None:
    expected = facts(run(make, step, Backend.REFERENCE))
    found = facts(run(make, step, Backend.NATIVE))
    for name, value in expected.items():
        assert found[name] == value, name


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
@pytest.mark.parametrize("make", SYSTEMS)
def test_ticks_ahead_give_what_ticks_one_by_one_give(
    make: Callable[[], SystemBuilder], backend: Backend
) -> None:
    one, many = (facts(run(make, "0.077", backend, ahead=ahead)) for ahead in (False, True))
    assert many == one


@pytest.mark.parametrize("inputs", [Polynomial(2, 0), Polynomial(1, 1)], ids=str)
def test_with_extrapolated_inputs(inputs: Polynomial) -> None:
    """The first step after a tick has no history."""
    both = [
        run(two_rates, "1/10", b, algorithm=Jacobi(inputs))
        for b in (Backend.REFERENCE, Backend.NATIVE)
    ]
    assert facts(both[0]) == facts(both[1])


@pytest.mark.parametrize("make", SYSTEMS)
def test_threads_change_nothing(make: Callable[[], SystemBuilder]) -> None:
    one, eight = (facts(run(make, "0.077", Backend.NATIVE, threads=n)) for n in (1, 8))
    assert one == eight


@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("make", SYSTEMS)
def test_fmus_get_the_same_calls(make: Callable[[], SystemBuilder]) -> None:
    def calls(backend: Backend) -> list[tuple[Any, ...]]:
        with traced() as trace:
            run(make, "0.077", backend)
        return trace.calls

    expected = calls(Backend.REFERENCE)
    assert {"fmi3SetClock", "fmi3ActivateModelPartition"} & {c[1] for c in expected}
    assert calls(Backend.NATIVE) == expected
    with as_written():
        assert calls(Backend.NATIVE) == expected


def test_stretches_over_ticks_are_left_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tests above would show nothing about them."""
    done = list[int]()
    repeat = NativeExecutor.repeat

    def noted(self: NativeExecutor, *arguments: Any) -> Any:
        found = repeat(self, *arguments)
        if arguments[-1] is not None:  # events are known ahead
            done.append(found.done)
        return found

    monkeypatch.setattr(NativeExecutor, "repeat", noted)
    results = run(controlled, "1/10", Backend.NATIVE)
    assert sum(done) > 0.8 * results.statistics.steps


@pytest.mark.parametrize("n", [8, 70])
def test_many_clocks_are_left_to_the_kernel_as_a_few_are(
    n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 8 clocks on, the loop made each step in Python; more than 62 have no bits in one number."""
    calls = list[int]()
    repeat = NativeExecutor.repeat

    def noted(self: NativeExecutor, *arguments: Any) -> Any:
        found = repeat(self, *arguments)
        if arguments[-1] is not None:  # events are known ahead
            calls.append(found.done)
        return found

    monkeypatch.setattr(NativeExecutor, "repeat", noted)
    # on a slow machine, calls end early to look for a signal
    monkeypatch.setattr(NativeExecutor, "ask", lambda _: None)

    def many() -> SystemBuilder:
        builder = SystemBuilder("many")
        for k in range(n):
            counter = 1 + k % 2
            builder.add(f"s{k}", reference_path("fmi3/Sampler.fmu"), sampler(counter, 10))
        return builder

    results = simulate(many(), stop_time=40, step_size="1/10", backend=Backend.NATIVE)
    assert sum(calls) > 0.95 * results.statistics.steps
    assert len(calls) < sum(calls) / 5
    assert [results[f"s{k}.count"][-1] for k in (0, 1, n - 2, n - 1)] == [401, 201, 401, 201]


def test_rows_with_more_clocks_than_a_number_has_bits_are_the_same_in_both_executors() -> None:
    def many() -> SystemBuilder:
        builder = SystemBuilder("many")
        for k in range(70):
            counter = 7 + (k % 3)
            builder.add(f"s{k}", reference_path("fmi3/Sampler.fmu"), sampler(counter, 100))
        return builder

    first, second = (
        simulate(many(), stop_time=1, step_size="1/10", backend=backend)
        for backend in (Backend.REFERENCE, Backend.NATIVE)
    )
    assert facts(first) == facts(second)


@pytest.mark.parametrize("backend", [Backend.REFERENCE, Backend.NATIVE])
def test_no_grid_point_is_missed_between_ticks_before_t_0(backend: Backend) -> None:
    results = simulate(two_rates(), start_time=-1, stop_time=1, step_size="1/4", backend=backend)
    assert {-0.75, -0.5, -0.25, 0.25, 0.5, 0.75} <= set(results.time.tolist())


def bouncing() -> SystemBuilder:
    """Beside the plants and samplers of two rates a ball on a floor, whose height is sampled too."""
    builder = two_rates()
    fmu = reference_path("fmi3/CradleBall.fmu")
    builder.add("floor", fmu, {"x": -1.0, "m": 1e300, "r": 0.5, "right.m": 1.0, "right.r": 0.5})
    builder.add("ball", fmu, {"x": 0.4, "r": 0.5, "g": -9.81, "left.m": 1e300, "left.r": 0.5})
    builder.add("height", reference_path("fmi3/Sampler.fmu"), sampler(1, 7))
    for name in "xva":
        builder.connect(f"floor.{name}", f"ball.left.{name}")
        builder.connect(f"ball.{name}", f"floor.right.{name}")
    builder.connect("ball.x", "height.u")
    builder.share_event("bounce", "floor.right", "ball.left")
    return builder


CLOCKS = [
    Predictive(),
    Predictive(go_back=False),
    LookAhead(),
    LookAhead(in_fmu=True),
    EarlyReturn(),
]


@pytest.mark.filterwarnings(
    "ignore:Steps are too long for the prediction"
)  # LookAhead: events in steps
@pytest.mark.parametrize(("clock", "step"), in_turn(CLOCKS, [*STEPS, "1/70"]), ids=str)
def test_ticks_beside_an_event_clock(clock: EventClock, step: str) -> None:
    """The rule restarts at each tick, and events come between ticks and at them."""
    algorithm = Jacobi(Polynomial(2, 2))
    reference, native = (
        run(bouncing, step, backend, event_clock=clock, algorithm=algorithm, stop_time="6.03")
        for backend in (Backend.REFERENCE, Backend.NATIVE)
    )
    expected, found = facts(reference), facts(native)
    for name, value in expected.items():
        assert found[name] == value, name
    assert [(e.time, e.left, e.right) for e in native.events] == [
        (e.time, e.left, e.right) for e in reference.events
    ]
    assert not clock.fires or len(native.events) > 8


@pytest.mark.parametrize("clock", [Predictive(), LookAhead()], ids=str)
def test_ticks_beside_an_event_clock_are_left_to_the_kernel(
    clock: EventClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[int]()
    repeat = NativeExecutor.repeat

    def noted(*arguments: Any) -> Any:
        found = repeat(*arguments)
        done.append(found.done)
        return found

    monkeypatch.setattr(NativeExecutor, "repeat", noted)
    high = {"ball.x": 3.0}  # few events
    results = run(bouncing, "1/10", Backend.NATIVE, event_clock=clock, start_values=high)
    # the others are at events, or begin a stretch: there are more stretches on a machine with much to do
    assert sum(done) > 2 / 3 * results.statistics.steps
    assert sum(done) > 4 * len(done)
