"""The journal of an instance leads another instance to the same state, in the same bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import pytest

from fmimaster import Simulation, reference_path
from fmimaster.algorithms import Aligned, GaussSeidel, Jacobi, Richardson, Waveform
from fmimaster.events import EarlyReturn
from fmimaster.fmu.instance import Instance, InstanceOptions
from fmimaster.fmu.journaled import Journaled, Noise
from fmimaster.fmu.load import Loader
from fmimaster.inputs import Polynomial
from fmimaster.prepare.preparation import prepare
from fmimaster.session.session import Session
from fmimaster.steps import PID, EmbeddedOrders, FreeStep
from fmimaster.system.description import Component

QUINTIC = Polynomial(2, 2)
METHODS: dict[str, dict[str, Any]] = {
    "Jacobi": {"algorithm": Jacobi(), "step_size": "0.01"},
    "rejections, polynomials": {
        "algorithm": GaussSeidel(Polynomial(2, 1)),
        "step_size": PID(0.2, (EmbeddedOrders(0.01),), smallest=0.001, reject_above=1.0),
    },
    "sweeps, early return": {
        "algorithm": Waveform(Aligned(Jacobi(QUINTIC)), sweeps=2),
        "step_size": FreeStep(0.2),
        "event_clock": EarlyReturn(),
    },
    "step doubling": {"algorithm": Richardson(Jacobi()), "step_size": "0.05"},
}
MIDDLE, END = Fraction("1.6"), Fraction(5)
SHORT = 2000
"""A length of the journal that these runs exceed many times."""


class JournalLoader(Loader):
    """All its instances keep journals, and can be made anew."""

    serializes = True

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Component, InstanceOptions]] = []

    def instantiate(self, component: Component, name: str, options: InstanceOptions) -> Instance:
        """A journaled instance; options for callbacks in C are for the kernel only."""
        options = InstanceOptions(
            polynomial_inputs=options.polynomial_inputs,
            event_mode=options.event_mode,
            early_return=options.early_return,
        )
        self.made.append((component, options))
        return Journaled(self.another(name), serializes=self.serializes)

    def another(self, name: str) -> Instance:
        """Another instance of the last or of the named component."""
        component, options = next(
            m for m in reversed(self.made) if m[0].name == name.split(".")[-1]
        )
        return super().instantiate(component, name, options)


@contextmanager
def journaled(simulation: Simulation, serializes: bool = False) -> Iterator[tuple[Session, Any]]:
    """A session with journals, and a function that replaces all its instances by new ones."""
    with (loader := JournalLoader()):
        loader.serializes = serializes
        session = Session(prepare(simulation, loader), loader, simulation)

        def replace_all() -> list[Noise]:
            found = []
            for instance in session.instances:
                assert isinstance(instance, Journaled)
                old = instance.instance
                found.append(instance.move_to(loader.another(instance.name)))
                old.free()
            return found

        yield session, replace_all


def rows(session: Session) -> list[bytes]:
    """The bits of the rows since the last time."""
    times, values = session.executor.rows.take()
    return [times.tobytes(), *(values[kind].tobytes() for kind in sorted(values, key=str))]


@pytest.mark.in_this_process("the loader of the test puts journals around the instances")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("serializes", [False, True], ids=["replay", "serialized state"])
def test_new_instances_go_on_in_the_same_bits(
    method: str, serializes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fmimaster.fmu.journaled._LONG", SHORT)
    path = reference_path("systems/two-mass-b1-mixed.ssp")
    simulation = Simulation(path, stop_time=END, **METHODS[method])
    with Loader() as loader:
        session = Session(prepare(simulation, loader), loader, simulation)
        assert session.initialize()
        session.advance(session.prepared.schedule.instant(MIDDLE))
        session.advance(session.stop)
        expected = rows(session)
    with journaled(simulation, serializes) as (session, replace_all):
        assert session.initialize()
        session.advance(session.prepared.schedule.instant(MIDDLE))
        noise = replace_all()
        session.advance(session.stop)
        found = rows(session)
    assert all(n.is_exact and n.reads > 0 for n in noise)
    assert found == expected
    assert len(expected[0]) > 20 * 8
