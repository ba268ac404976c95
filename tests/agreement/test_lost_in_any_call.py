"""Real FMUs that are lost in any of their calls: a restart gives the bits of the undisturbed run. Without processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fmimaster import Results, Simulation, reference_path
from fmimaster.algorithms import Aligned, Jacobi, Richardson, Waveform
from fmimaster.base.errors import AccuracyWarning, FmuLostError
from fmimaster.events import EarlyReturn
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.surviving import SurvivingInstance
from fmimaster.inputs import Polynomial
from fmimaster.steps import FreeStep

pytestmark = pytest.mark.usefixtures("not_apart")

RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "steps": ("two-mass-b1-fmi2", {"step_size": "0.05"}),
    "step doubling": (
        "two-mass-b1-mixed",
        {"step_size": "0.05", "algorithm": Richardson(Jacobi())},
    ),
    "sweeps, polynomials, early return": (
        "two-mass-b1-fmi3",
        {
            "algorithm": Waveform(Aligned(Jacobi(Polynomial(2, 2))), sweeps=2),
            "step_size": FreeStep("0.2"),
            "event_clock": EarlyReturn(),
        },
    ),
    "clocks": ("thermostat-fmi3", {"event_clock": "early-return"}),
}
STOP_TIME = {"thermostat-fmi3": 20.0}
"""[s]; of the others 0.6, with a collision at 0.54"""


class Losing(SurvivingInstance):
    """An instance that is lost in the call of this number, from 0, and in all after it."""

    def __init__(self, instance: Instance, number: int) -> None:
        super().__init__(instance)
        self.number, self.calls = number, 0
        self.before = 0
        """Calls before the first step."""

    def _attempt(self, call: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        self.before += not self._steps
        self.calls += 1
        if self.calls > self.number:
            raise FmuLostError("It was lost.", how="was ended", instance=self.name, function="it")
        return call()

    def _lost(self, error: FmuLostError, call: Any, otherwise: Any) -> Any:
        raise error


@contextmanager
def losing(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[list[Losing]]:
    """The first instance that is made is lost in this call; those after it run to the end."""
    made = list[Losing]()
    make = FmuFile.instantiate

    def instantiate(file: FmuFile, name: str, options: InstanceOptions) -> Instance:
        instance = make(file, name, replace(options, update_callback=None))
        if made:
            return instance
        made.append(Losing(instance, number))
        return made[0]

    with monkeypatch.context() as patch:
        patch.setattr(FmuFile, "instantiate", instantiate)
        yield made


@pytest.fixture(params=RUNS)
def simulation(request: pytest.FixtureRequest) -> Simulation:
    system, settings = RUNS[request.param]
    stop = STOP_TIME.get(system, 0.6)
    return Simulation(reference_path(f"systems/{system}.ssp"), stop_time=stop, **settings)


def spread(first: int, total: int, numbers: range) -> list[int]:
    """As many numbers of calls, from the first one to the end of a run."""
    golden = 0.6180339887498949
    return [first + int((0.5 + golden * k) % 1.0 * (total - first)) for k in numbers]


def assert_equal(found: Results, expected: Results) -> None:
    assert found.names == expected.names
    for name in ("time", *expected.names):
        np.testing.assert_array_equal(found[name], expected[name])


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_a_restart_after_any_call_gives_the_bits_of_the_undisturbed_run(
    simulation: Simulation,
    monkeypatch: pytest.MonkeyPatch,
    repetitions: Callable[[int], range],
) -> None:
    expected = simulation.run()
    with losing(monkeypatch, 10**9) as made:
        simulation.run()
    restarted = replace(simulation, on_fault="restart:tries=1")
    for number in spread(0, made[0].calls, repetitions(2)):
        with losing(monkeypatch, number):
            assert_equal(restarted.run(), expected)


@pytest.mark.filterwarnings("ignore:There is no event clock:fmimaster.base.errors.AccuracyWarning")
def test_an_instance_that_is_dropped_in_any_call_lets_the_run_end(
    simulation: Simulation,
    monkeypatch: pytest.MonkeyPatch,
    repetitions: Callable[[int], range],
) -> None:
    expected = simulation.run()
    with losing(monkeypatch, 10**9) as made:
        simulation.run()
    dropped = replace(simulation, on_fault="drop")
    for number in spread(made[0].before, made[0].calls, repetitions(2)):
        with losing(monkeypatch, number) as made, warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            found = dropped.run()
        mark = found[f"{made[0].name}.dropped"]
        assert found.time[-1] == expected.time[-1]
        assert set(mark) <= {0.0, 1.0}
        assert (np.diff(mark) >= 0.0).all()
        assert mark[-1] == 1.0
