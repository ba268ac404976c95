"""The kernel and the interpreter in Python give the same bits on real FMUs, and fail in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from fmimaster import Results, SimulationError, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Sequential,
    Waveform,
)
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.inputs import ADAPTIVE, FIRST_ORDER, HOLD, INTERPOLATED, MIDPOINT, NEPCE, Polynomial
from fmimaster.run import Backend
from fmimaster.steps.locate import Locate
from fmimaster.steps.ramp import FreeStep, Ramp

POLYNOMIALS = (
    HOLD,
    FIRST_ORDER,
    Polynomial(2, 0),
    Polynomial(2, 1),
    Polynomial(3, 1),
    Polynomial(1, 1, mean=True),
    MIDPOINT,
    NEPCE,
    INTERPOLATED,
    ADAPTIVE,
)


def both(system: Any, **settings: Any) -> tuple[Results, Results]:
    """Results of the reference interpreter and of the kernel."""
    reference = simulate(system, backend=Backend.REFERENCE, **settings)
    return reference, simulate(system, backend=Backend.NATIVE, **settings)


def assert_same_bits(expected: Results, found: Results) -> None:
    assert found.names == expected.names
    assert calls(found) == calls(expected)
    assert found.time.tobytes() == expected.time.tobytes()
    for name in expected.names:
        assert found[name].dtype == expected[name].dtype
        assert plain(found[name]) == plain(expected[name]), name


def plain(column: Any) -> Any:
    """The bits of numbers; text and binaries."""
    return column.tolist() if column.dtype == object else column.tobytes()


def calls(results: Results) -> list[tuple[int, int, int]]:
    """Steps, restored states and Event Modes of each instance."""
    return [(i.calls, i.restores, i.events) for i in results.statistics.instances]


def pair(first: str, second: str) -> SystemBuilder:
    """Two Dahlquist FMUs in a ring, with a transformation on each connection."""
    builder = SystemBuilder("pair")
    builder.add("a", reference_path(f"{first}/Dahlquist.fmu"), {"k": 1.0})
    builder.add("b", reference_path(f"{second}/Dahlquist.fmu"), {"k": 3.0})
    builder.connect("b.x", "a.u", factor=2.0, offset=0.1)
    builder.connect("a.dx", "b.u", factor=-1.0)
    return builder


# a quintic is unstable in these steps
@pytest.mark.filterwarnings("ignore:the output .* grows from:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("algorithm", "inputs", "versions"),
    in_turn(
        [Jacobi, GaussSeidel], POLYNOMIALS, [("fmi2", "fmi2"), ("fmi3", "fmi3"), ("fmi2", "fmi3")]
    ),
    ids=str,
)
def test_every_algorithm_with_every_kind_of_input(
    algorithm: Any, inputs: Polynomial, versions: tuple[str, str]
) -> None:
    chosen: Algorithm = algorithm(inputs)
    times = {"start_time": 0, "stop_time": "1.003", "step_size": "1/60"}
    assert_same_bits(*both(pair(*versions).build(), algorithm=chosen, **times))


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize("version", ["fmi2", "fmi3", "mixed"])
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()])
def test_the_two_mass_system(algorithm: Algorithm, version: str) -> None:
    assert_same_bits(
        *both(reference_path(f"systems/two-mass-b3-{version}.ssp"), algorithm=algorithm)
    )


HELD = {"upper.inputOrder": 0, "lower.inputOrder": 0}
"""The two masses hold their inputs over a step."""


@pytest.mark.parametrize("version", ["fmi2", "fmi3", "mixed"])
def test_outputs_that_are_corrected_for_held_inputs(version: str) -> None:
    settings = {"algorithm": Jacobi(Polynomial(1, 2, mean=True)), "start_values": HELD}
    system = reference_path(f"systems/two-mass-b3-{version}.ssp")
    assert_same_bits(*both(system, event_clock=Predictive(), step_size=0.1, **settings))


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
def test_every_type_is_moved_alike(version: str, tmp_path: Path) -> None:
    """Two Feedthrough FMUs in a chain, and a table of numbers before them."""
    path = reference_path(f"{version}/Feedthrough.fmu")
    names = simulate(path, stop_time=1, step_size=1).names
    builder = SystemBuilder("chain")
    builder.add("first", path)
    builder.add("second", path)
    for name in names:
        builder.connect(f"first.{name}", f"second.{name.replace('_output', '_input')}")
    if version == "fmi3":  # conversions that lose nothing, and rounding
        builder.add("third", path)
        builder.connect("first.UInt8_output", "third.Int32_input")
        builder.connect("first.Boolean_output", "third.Float32_continuous_input")
        builder.connect("first.Float64_continuous_output", "third.Float32_discrete_input")
        builder.connect(
            "first.Int16_output", "third.Float64_continuous_input", factor=0.1, offset=1
        )
    table = tmp_path / "in.csv"
    table.write_text(
        "time,first.Float64_continuous_input,first.Int32_input,first.Boolean_input\n"
        "0,0,-3,0\n0.25,1.7,5,1\n0.25,-1.7,5,1\n1,3.3,9,0\n",
        encoding="utf-8",
    )
    components = ("first", "second", "third") if version == "fmi3" else ("first", "second")
    recorded = [f"{component}.{name}" for component in components for name in names]
    assert_same_bits(
        *both(builder, stop_time=1, step_size="1/10", input=table, output_variables=recorded)
    )


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("fault", range(1, 9))
def test_faults_are_told_in_the_same_words(version: str, fault: int) -> None:
    def run(backend: Backend) -> tuple[str, Results | None]:
        try:
            results = simulate(
                reference_path(f"{version}/Faulty.fmu"),
                stop_time=1,
                step_size="1/16",
                start_values={"fault": fault, "faultTime": 0.5},
                backend=backend,
            )
        except SimulationError as error:
            return str(error), error.results
        return "no error", results

    expected, found = run(Backend.REFERENCE), run(Backend.NATIVE)
    assert found[0] == expected[0]
    assert expected[1] is not None
    assert found[1] is not None
    assert_same_bits(expected[1], found[1])


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_a_run_is_the_same_twenty_times() -> None:
    system = reference_path("systems/two-mass-b1-mixed.ssp")
    first = simulate(system, backend=Backend.NATIVE)
    for _ in range(20):
        assert_same_bits(first, simulate(system, backend=Backend.NATIVE))


def test_blocks_of_rows_leave_no_seam() -> None:
    """More rows than a block has room for, and a last block that is not full."""
    n = 15_000  # of 40 bytes: two blocks and a part
    times = {"start_time": 0, "stop_time": 2, "step_size": f"1/{n // 2}"}
    expected, found = both(pair("fmi2", "fmi3").build(), **times)
    assert found.rows == n + 1
    assert_same_bits(expected, found)
    assert np.all(np.diff(found.time) > 0)


@pytest.mark.parametrize("threads", [0, 2, 5])
def test_threads_change_no_bit(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if they come and go from step to step."""
    monkeypatch.setattr("fmimaster.run.native.executor.FIRST_TRIAL", 0.0)
    monkeypatch.setattr("fmimaster.run.native.executor.usable_cores", lambda: 3)
    builder = SystemBuilder("ring")
    for i in range(6):
        builder.add(f"d{i}", reference_path(f"fmi{2 + i % 2}/Dahlquist.fmu"), {"k": 1.0 + i})
    for i in range(6):
        builder.connect(f"d{i}.x", f"d{(i + 1) % 6}.u", factor=0.5 + 0.1 * i)
    system = builder.build(start_time=0, stop_time=5, step_size=0.01)
    expected = simulate(system, algorithm="Jacobi", backend=Backend.REFERENCE)
    for _ in range(5):
        found = simulate(system, algorithm="Jacobi", backend=Backend.NATIVE, threads=threads)
        assert_same_bits(expected, found)


def test_a_fault_is_told_alike_by_threads() -> None:
    builder = SystemBuilder("one of three")
    for name in ("a", "b", "c"):
        fault = {"fault": 3 if name != "a" else 0, "faultTime": 0.5}
        builder.add(name, reference_path("fmi3/Faulty.fmu"), fault)
    system = builder.build(start_time=0, stop_time=1, step_size=1 / 16)
    said = []
    for threads in (1, 3):
        with pytest.raises(SimulationError, match="fmi3DoStep of 'b' returned fmi3Error") as raised:
            simulate(system, backend=Backend.NATIVE, threads=threads)
        assert raised.value.results is not None
        said.append((str(raised.value), raised.value.results.rows))
    assert said[0] == said[1]


# Events ---------------------------------------------------------------------------------------------------------------

QUINTIC, CUBIC = Polynomial(2, 2), Polynomial(2, 1)


def waveform(inputs: Polynomial) -> Algorithm:
    return Waveform(Aligned(Jacobi(inputs)), sweeps=2)


EVENT_RUNS: dict[str, tuple[Algorithm, Any, EventClock]] = {
    "look-ahead": (Jacobi(), FreeStep(0.08), LookAhead()),
    "look-ahead in the fmu": (Jacobi(), FreeStep(0.08), LookAhead(in_fmu=True)),
    "predictive": (Jacobi(QUINTIC), Ramp(0.1), Predictive()),
    "predictive gauss-seidel": (GaussSeidel(CUBIC), Ramp(0.1), Predictive()),
    "early return": (waveform(QUINTIC), FreeStep(0.2), EarlyReturn()),
    "early return with plain outputs": (waveform(CUBIC), FreeStep(0.08), EarlyReturn()),
    "early return on a grid": (Jacobi(QUINTIC), 0.1, EarlyReturn()),
    "dejaco": (Sequential("upper"), 0.1, Check()),
    "dejaco, lower first": (Sequential("lower"), 0.1, Check()),
    "automatic sequence": (AutomaticSequence(), 0.1, Check()),
    "parallel where no event is in sight": (AutomaticSequence(parallel=True), 0.1, Check()),
    "c5": (Sequential("upper", QUINTIC, synchronised=True), 0.1, Check()),
}


def two_masses(name: str, benchmark: str, version: str, **settings: Any) -> tuple[Results, Results]:
    algorithm, step_size, clock = EVENT_RUNS[name]
    path = reference_path(f"systems/two-mass-{benchmark}-{version}.ssp")
    return both(path, algorithm=algorithm, step_size=step_size, event_clock=clock, **settings)


@pytest.mark.filterwarnings("ignore::fmimaster.base.errors.AccuracyWarning")  # long steps of Check
@pytest.mark.parametrize(
    ("name", "benchmark", "version"),
    in_turn(list(EVENT_RUNS), ["b1", "b2"], ["mixed", "fmi2", "fmi3"]),
)
def test_every_event_algorithm_on_the_two_masses(name: str, benchmark: str, version: str) -> None:
    assert_same_bits(*two_masses(name, benchmark, version))


def test_steps_in_parallel_before_the_first_event() -> None:
    """The start of a run above: a kernel that is wrong here makes that run take long."""
    name = "parallel where no event is in sight"
    assert_same_bits(*two_masses(name, "b1", "fmi2", stop_time=0.5))


@pytest.mark.parametrize("version", ["fmi2", "fmi3"])
@pytest.mark.parametrize("clock", [EarlyReturn(), Predictive(), LookAhead()], ids=str)
@pytest.mark.parametrize("v_min", [0.0, 0.1])
def test_a_bouncing_ball_at_rest_or_not(v_min: float, clock: EventClock, version: str) -> None:
    def run(backend: Backend) -> tuple[str, Results | None]:
        try:
            results = simulate(
                reference_path(f"{version}/BouncingBall.fmu"),
                stop_time=3,
                step_size=Ramp(0.1),
                event_clock=clock,
                start_values={"v_min": v_min},
                backend=backend,
            )
        except SimulationError as error:
            return str(error), error.results
        return "no error", results

    expected, found = run(Backend.REFERENCE), run(Backend.NATIVE)
    assert found[0] == expected[0]
    assert expected[1] is not None
    assert found[1] is not None
    assert_same_bits(expected[1], found[1])


@pytest.mark.filterwarnings("ignore:.*may have changed its discrete outputs late")  # with Jacobi
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel()])
@pytest.mark.parametrize(
    ("version", "step"), [("fmi3", "0.1"), ("fmi2", Locate("0.1")), ("fmi2", "0.1")]
)
def test_the_thermostat(algorithm: Algorithm, version: str, step: Locate | str) -> None:
    path = reference_path(f"systems/thermostat-{version}.ssp")
    settings = {"step_size": step, "stop_time": 20}
    assert_same_bits(*both(path, algorithm=algorithm, **settings))


@pytest.mark.parametrize("test", [1, 2, 3, 4])
def test_superdense_time(test: int) -> None:
    path = reference_path("fmi3/Superdense.fmu")
    settings = {"stop_time": 3.5, "step_size": "0.3", "start_values": {"test": test}}
    assert_same_bits(*both(path, event_mode=True, **settings))
