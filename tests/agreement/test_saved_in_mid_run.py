"""RunState, the registers, the value store and the FMU states are all that changes during a run: with them it goes on
in the same bits."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from in_turn import in_turn

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import (
    Aligned,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Richardson,
    Subsequence,
    SubSteps,
    Waveform,
)
from fmimaster.events import Check, EarlyReturn, Predictive
from fmimaster.fmu.load import Loader
from fmimaster.inputs import NEPCE, Polynomial
from fmimaster.prepare.preparation import prepare
from fmimaster.program.instructions.base import Instruction, Program
from fmimaster.program.instructions.steps import Restore, Save
from fmimaster.run import Backend
from fmimaster.run.choice import native_executor
from fmimaster.session.session import Session
from fmimaster.steps import PID, EmbeddedOrders, FreeStep, MultiRate, Ramp

QUINTIC = Polynomial(2, 2)
CONTROLLED = PID(0.2, (EmbeddedOrders(0.1),), smallest=0.001, reject_above=1.0)
METHODS: dict[str, dict[str, Any]] = {
    "Gauss-Seidel": {"algorithm": GaussSeidel(Polynomial(2, 1)), "step_size": "0.02"},
    "Gauss-Seidel, sub": {"algorithm": GaussSeidel(mode=Subsequence()), "step_size": "0.1"},
    "E2": {
        "algorithm": Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2),
        "step_size": FreeStep(0.2),
        "event_clock": EarlyReturn(),
    },
    "Gauss-Seidel, controlled": {"algorithm": GaussSeidel(), "step_size": CONTROLLED},
    "PZ, controlled": {
        "algorithm": Jacobi(QUINTIC),
        "step_size": CONTROLLED,
        "event_clock": Predictive(),
    },
    "PZ": {"algorithm": Jacobi(QUINTIC), "step_size": Ramp(0.1), "event_clock": Predictive()},
    "rates, in the middle of a step": {"step_size": MultiRate("0.035", {"upper": "1/60"})},
    "step doubling": {"algorithm": Richardson(Jacobi(NEPCE)), "step_size": "0.05"},
    "sub-steps": {"algorithm": SubSteps(GaussSeidel(NEPCE), {"upper": 3}), "step_size": "0.05"},
    "automatic sequence": {
        "algorithm": AutomaticSequence(parallel=True, extrapolation=QUINTIC),
        "step_size": "0.05",
        "event_clock": Check(),
    },
}
MIDDLE, END = Fraction("1.6"), Fraction(5)


class Saved:
    """A session with two more places, in which its FMUs can be saved between steps."""

    def __init__(self, simulation: Simulation, loader: Loader) -> None:
        prepared = prepare(simulation, loader)
        programs, n = prepared.programs, len(prepared.plan.instances)
        places = range(programs.n_places, programs.n_places + n)
        prepared = replace(prepared, programs=replace(programs, n_places=programs.n_places + n))
        self.session = Session(prepared, loader, simulation)
        self._save = self._program(Save(i, place) for i, place in enumerate(places))
        self._restore = self._program(Restore(i, place) for i, place in enumerate(places))
        self.until = [prepared.schedule.instant(t) for t in (MIDDLE, END)]

    @staticmethod
    def _program(instructions: Any) -> Program:
        found: tuple[Instruction, ...] = tuple(instructions)
        return Program("saved", found)

    def save(self) -> None:
        s = self.session
        now = s.state.time.seconds
        s.executor.run(self._save, now, now)
        self._kept = deepcopy(s.state), s.executor.registers.copy(), s.executor.store.copy()

    def restore(self) -> None:
        s = self.session
        now = s.state.time.seconds
        s.executor.run(self._restore, now, now)
        state, registers, store = self._kept
        for name, value in vars(deepcopy(state)).items():
            setattr(s.state, name, value)
        s.executor.registers.restore(registers)
        s.executor.store.restore(store)
        s.stepper.indicators.renew()


def rows(session: Session) -> list[bytes]:
    """The bits of the rows since the last time: times, and the values of each type."""
    times, values = session.executor.rows.take()
    return [times.tobytes(), *(values[kind].tobytes() for kind in sorted(values, key=str))]


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
@pytest.mark.parametrize(
    ("backend", "version", "method"),
    in_turn([Backend.REFERENCE, Backend.NATIVE], ["fmi2", "fmi3", "mixed"], list(METHODS)),
)
def test_a_run_that_is_put_back_goes_on_in_the_same_bits(
    backend: Backend, version: str, method: str
) -> None:
    if backend is Backend.NATIVE and native_executor() is None:
        pytest.skip("the kernel is not built")
    path = reference_path(f"systems/two-mass-b1-{version}.ssp")
    simulation = Simulation(path, stop_time=END, backend=backend, **METHODS[method])
    with Loader() as loader:
        run = Saved(simulation, loader)
        session = run.session
        assert session.initialize()
        session.advance(run.until[0])
        rows(session)
        run.save()
        session.advance(run.until[1])
        once = rows(session), *session.new_facts, session.executor.registers.copy()
        run.restore()
        assert session.state.time == run.until[0]
        session.advance(run.until[1])
        twice = rows(session), *session.new_facts, session.executor.registers.copy()
    assert len(once[0][0]) > 20 * 8
    assert len(once[1]) == (4 if "event_clock" in METHODS[method] else 0)
    assert twice[:3] == once[:3]
    assert all(np.array_equal(a, b) for a, b in zip(twice[3], once[3], strict=True))
