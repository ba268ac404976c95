"""Instructions that are fused: what makes them fast, and programs in which calls that are alike are apart."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, groupby, islice, takewhile
from typing import Any

import pytest

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

from call_trace import traced
from fmimaster.kernel._kernel import lib
from kernel_encodings import as_written

from fmimaster import SimulationError, SystemBuilder, reference_path, simulate
from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.fmu.binary import BinaryInstance
from fmimaster.fmu.model_exchange.one_step import Euler
from fmimaster.inputs.polynomial import HOLD
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.instructions.base import Program
from fmimaster.results.results import Results
from fmimaster.run import Backend
from fmimaster.run.native.encoding import Encoded, ProgramEncoder
from fmimaster.system.description import SystemDescription

DIRECT = {
    2: [lib.FM_FUSED_SET_2, lib.FM_FUSED_STEP_2, lib.FM_FUSED_GET_2],
    3: [lib.FM_FUSED_SET_3, lib.FM_FUSED_STEP_3, lib.FM_FUSED_GET_3],
}


def ring(version: int, n: int, factor: float = 1.0, stop_time: float = 0.2) -> SystemDescription:
    builder = SystemBuilder("ring")
    for i in range(n):
        builder.add(f"d{i}", reference_path(f"fmi{version}/Dahlquist.fmu"), {"k": 1.0 + i})
    for i in range(n):
        builder.connect(f"d{i}.x", f"d{(i + 1) % n}.u", factor=factor)
    return builder.build(stop_time=stop_time, step_size=0.1)


def attempt_of(system: Any, monkeypatch: pytest.MonkeyPatch, **settings: Any) -> Any:
    """The attempt of a run, as the kernel reads it."""
    found: list[Encoded] = []
    encode = ProgramEncoder._encode

    def noted(self: ProgramEncoder, program: Program) -> Encoded:
        encoded = encode(self, program)
        found.append(encoded)
        return encoded

    monkeypatch.setattr(ProgramEncoder, "_encode", noted)
    simulate(system, backend=Backend.NATIVE, **settings)
    (code,) = (e.code for e in found if e.program.name == "attempt")
    return code


def calls(fused: Any) -> Iterator[Any]:
    """The calls that it makes."""
    return takewhile(
        lambda call: call.kind != lib.FM_FUSED_END, map(fused.calls.__getitem__, count())
    )


def rows(fused: Any) -> Iterator[tuple[int, int]]:
    """Kind and number of calls of the same kind that come one after the other."""
    for kind, alike in groupby(call.kind for call in calls(fused)):
        yield kind, len([*alike])


@pytest.mark.in_this_process("calls of FMUs in the process of the run are fused")
@pytest.mark.parametrize("version", [2, 3])
def test_a_ring_is_three_rows_of_calls(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 5
    code = attempt_of(ring(version, n), monkeypatch, algorithm=Jacobi())
    assert code[0].op == lib.FM_FUSED
    assert list(rows(code[0].fused)) == [(kind, n) for kind in DIRECT[version]]
    assert code[1 + code[0].fused.count].op == lib.FM_END


@pytest.mark.in_this_process("calls of FMUs in the process of the run are fused")
@pytest.mark.parametrize("version", [2, 3])
def test_gauss_seidel_is_one_fused_instruction(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = attempt_of(ring(version, 3), monkeypatch, algorithm=GaussSeidel())
    assert list(rows(code[0].fused)) == [(kind, 1) for kind in DIRECT[version] * 3]


@pytest.mark.in_this_process("calls of FMUs in the process of the run are fused")
def test_inputs_with_a_factor_are_moved_and_then_set_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = attempt_of(ring(3, 3, factor=2.0), monkeypatch, algorithm=Jacobi())
    kinds = [kind for kind, _ in islice(rows(code[0].fused), 6)]
    assert kinds == [lib.FM_AS_WRITTEN, lib.FM_FUSED_SET_3] * 3


@pytest.mark.in_this_process("calls of FMUs in the process of the run are fused")
@pytest.mark.parametrize("version", [2, 3])
def test_inputs_on_lines_are_fitted_and_then_set_directly(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a run that names no algorithm; FMUs of FMI 3.0 request inputs in their steps."""
    system = ring(version, 3, stop_time=50.0)
    code = attempt_of(system, monkeypatch, error_estimate=False)
    assert code[0].op == lib.FM_FUSED
    set_, step, get = DIRECT[version]
    each = [lib.FM_AS_WRITTEN, set_, step if version == 2 else lib.FM_FUSED_STEP, get]
    assert [call.kind for call in calls(code[0].fused)] == [lib.FM_AS_WRITTEN, *each * 3]
    assert_same_calls(system, error_estimate=False)
    assert_same_results(system, error_estimate=False)


@dataclass(frozen=True, slots=True)
class Uneven(Algorithm):
    """The first instance in two halves, the second one between them."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        first, second, third = plan.members
        for i in plan.members:
            p.inputs(i, HOLD)
        with p.over(0.0, 0.5):
            p.step(first)
        p.step(second)
        with p.over(0.5, 1.0):
            p.inputs(first, HOLD)
            p.step(first)
        p.step(third)
        for i in plan.members:
            p.get(i)


@dataclass(frozen=True, slots=True)
class Again(Jacobi):
    """All step in two halves, go back, which a second RESTORE does not change, and step again."""

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        places = p.save(plan.members)
        for begin in (0.0, 0.5):
            with p.over(begin, begin + 0.5):
                Jacobi.emit(self, plan, p)
        p.restore(places)
        p.restore(places)
        Jacobi.emit(self, plan, p)


@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("algorithm", [Jacobi(), GaussSeidel(), Uneven(), Again()])
def test_many_plain_steps_are_the_same_calls(
    version: int, algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the kernel writes down for many steps at once, too."""
    system = ring(version, 3, stop_time=30.0)
    code = attempt_of(system, monkeypatch, algorithm=algorithm)
    assert [code[0].op, code[1 + code[0].fused.count].op] == [lib.FM_FUSED, lib.FM_END]
    assert code[0].fused.is_plain == (algorithm != Again())
    assert_same_calls(system, algorithm=algorithm)
    results = assert_same_results(system, algorithm=algorithm)
    calls = {Uneven(): (600, 300, 300), Again(): (900, 900, 900)}
    instances = results.statistics.instances
    assert tuple(one.calls for one in instances) == calls.get(algorithm, (300, 300, 300))
    assert {one.restores for one in instances} == {300 * (algorithm == Again())}


@pytest.mark.in_this_process("calls of FMUs in the process of the run are fused")
@pytest.mark.parametrize("version", [2, 3])
def test_states_are_saved_and_restored_by_calls_of_the_fmus(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = attempt_of(ring(version, 3), monkeypatch, algorithm=Again())
    once = [(kind, 3) for kind in DIRECT[version]]
    saves, restores = (lib.FM_FUSED_SAVE, 3), (lib.FM_FUSED_RESTORE, 6)
    assert list(rows(code[0].fused)) == [saves, *once, *once, restores, *once]


@pytest.mark.in_this_process("a function of the FMU is replaced")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("function", ["GetFMUState", "SetFMUState", "FreeFMUState"])
def test_a_state_that_cannot_be_saved_or_restored_among_many_steps(
    version: int, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = ring(version, 3, stop_time=30.0)
    address = BinaryInstance.address
    kept: list[Any] = []

    def failing(self: BinaryInstance, name: str) -> int:
        """One function of one instance fails at its 200th call."""
        found = address(self, name)
        if self.name != "d1" or name.lower() != function.lower() or not found:
            return found
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        real, calls = prototype(found), count(1)
        call = prototype(lambda *a: 3 if next(calls) == 200 else real(*a))
        kept.append((real, call))
        return ctypes.cast(call, ctypes.c_void_p).value or 0

    monkeypatch.setattr(BinaryInstance, "address", failing)
    # addresses are shared by the instances of a library
    monkeypatch.setattr(BinaryInstance, "library", property(id))

    def run(backend: Backend) -> tuple[str, bytes]:
        with pytest.raises(SimulationError, match=f"(?i){function}") as raised:
            simulate(system, backend=backend, algorithm=Again())
        assert raised.value.results is not None
        return str(raised.value), raised.value.results["d2.x"].tobytes()

    expected = run(Backend.NATIVE)
    with as_written():
        assert run(Backend.NATIVE) == expected


@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("n", [1, 3])
def test_many_steps_of_integrators_are_plain_ones(
    version: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of an FMU that is alone: its step, and the reading of its outputs."""
    builder = SystemBuilder("integrated")
    for i in range(n):
        fmu = reference_path(f"fmi{version}/Dahlquist.fmu")
        builder.add(f"d{i}", fmu, {"k": 1.0 + i}, interface="ModelExchange")
    for i in range(1, n):
        builder.connect(f"d{i - 1}.x", f"d{i}.u")
    system = builder.build(stop_time=50.0, step_size=0.1)
    settings: dict[str, Any] = {"algorithm": Jacobi(), "solver": Euler(0.05)}
    fused = attempt_of(system, monkeypatch, **settings)[0].fused
    assert fused.is_plain
    assert (lib.FM_FUSED_STEP, n) in rows(fused)
    assert_same_calls(system, **settings)
    results = simulate(system, backend=Backend.NATIVE, **settings)
    assert [one.calls for one in results.statistics.instances] == [500] * n


def test_nothing_is_fused_where_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with as_written():
        code = attempt_of(ring(3, 3), monkeypatch, algorithm=Jacobi())
    assert code[0].op == lib.FM_MOVE_SET


def assert_same_results(system: Any, **settings: Any) -> Results:
    """The interpreter in Python has the same rows as the kernel, bit for bit; those of the kernel."""
    results = simulate(system, backend=Backend.NATIVE, **settings)
    expected = simulate(system, backend=Backend.REFERENCE, **settings)
    assert results.time.tobytes() == expected.time.tobytes()
    assert all(results[name].tobytes() == expected[name].tobytes() for name in expected.names)
    return results


def assert_same_calls(system: Any, **settings: Any) -> None:
    """The interpreter in Python makes the same calls as the kernel, with fused instructions and without."""

    def calls(backend: Backend) -> list[tuple[Any, ...]]:
        with traced() as trace:
            simulate(system, backend=backend, **settings)
        return trace.calls

    expected = calls(Backend.REFERENCE)
    assert calls(Backend.NATIVE) == expected
    with as_written():
        assert calls(Backend.NATIVE) == expected


@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("version", [2, 3])
def test_calls_that_are_apart(version: int) -> None:
    assert_same_calls(ring(version, 3), algorithm=Uneven())


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.in_this_process("calls are traced in the process of the run")
@pytest.mark.parametrize("version", [2, 3])
def test_inputs_from_several_outputs(version: int) -> None:
    system = reference_path(f"systems/two-mass-b3-fmi{version}.ssp")
    assert_same_calls(system, algorithm=Jacobi(), start_time=0, stop_time=0.1, step_size=0.01)


TERMINATES, FAILS = 8, 3


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("fault", [TERMINATES, FAILS])
@pytest.mark.parametrize("step_size", [0.125, 2.0**-9])
@pytest.mark.parametrize(
    ("settings", "factor"),
    [({}, 1.0), ({"algorithm": Jacobi()}, 1.0), ({"algorithm": Jacobi()}, 2.0)],
)
def test_an_fmu_that_does_not_simply_succeed(
    version: int, fault: int, step_size: float, settings: dict[str, Any], factor: float
) -> None:
    """Among the first steps, which are all measured, and among many; in plain steps, and where values are moved."""

    def run(backend: Backend) -> tuple[str, bytes, Any]:
        builder = SystemBuilder("faulty")
        for name, number in (("a", 0), ("b", fault), ("c", 0)):
            values = {"fault": number, "faultTime": 0.875}
            builder.add(name, reference_path(f"fmi{version}/Faulty.fmu"), values)
        builder.connect("a.x", "b.u", factor=factor)
        builder.connect("b.x", "c.u")
        system = builder.build(start_time=0, stop_time=1, step_size=step_size)
        words, results = "", None
        try:
            results = simulate(system, backend=backend, **settings)
        except SimulationError as error:
            words, results = str(error), error.results
        assert results is not None
        return words, results["c.x"].tobytes(), [one.calls for one in results.statistics.instances]

    expected = run(Backend.REFERENCE)
    assert run(Backend.NATIVE) == expected
    with as_written():
        assert run(Backend.NATIVE) == expected
