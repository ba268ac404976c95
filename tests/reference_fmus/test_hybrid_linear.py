"""HybridLinear: FMUs of systems with modes and events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from pathlib import Path

import fmpy
import pytest
from fmpy.validation import validate_fmu
from hybrid_system import EXAMPLE, Event, HybridSystem, Mode, Signal, Transition
from hybrid_writer import MANIFEST, Variant, write_fmu
from pytest import approx
from reference_instance import Instance

from fmimaster import SystemBuilder, reference_path, simulate
from fmimaster.events import EarlyReturn, Predictive

Make = Callable[[HybridSystem, str], Instance]

G = 9.81
FIRST = sqrt(2 / G)
"""[s] When the ball of the example meets a table at height 0 for the first time."""
RELAY = HybridSystem(
    states={},
    signals=(Signal("u", "du"),),
    outputs={"y": ""},
    modes=(Mode({}, {"y": {}}), Mode({}, {"y": {"1": 1.0}}, on=True)),
    events=(
        Event("up", {0: Transition(({"1": 1.0, "u": -1.0},), 1)}),
        Event("down", {1: Transition(({"1": 1.0, "u": 1.0},), 0)}),
    ),
)
"""y is 1 from u = 1 on, and 0 from u = -1 on."""


def made(folder: Path, version: str, system: HybridSystem, variant: Variant | None = None) -> Path:
    template = reference_path(f"{version}/HybridLinear.fmu")
    return write_fmu(folder / "unit.fmu", system, template, variant)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[Make]:
    """instance(system, version): an instance of its FMU, which is freed after the test."""
    instances: list[Instance] = []

    def instantiate(system: HybridSystem, version: str) -> Instance:
        options = {"eventModeUsed": True, "earlyReturnAllowed": True} if version == "fmi3" else {}
        path = made(tmp_path, version, system)
        instances.append(Instance(path, tmp_path / "unit", version, {}, **options))
        return instances[-1]

    yield instantiate
    for each in instances:
        each.fmu.freeInstance()


@pytest.mark.parametrize("variant", [Variant(), Variant(polynomial=False, states=False)])
@pytest.mark.parametrize("system", [EXAMPLE, RELAY])
def test_written_fmus_are_valid(
    tmp_path: Path, version: str, system: HybridSystem, variant: Variant
) -> None:
    assert validate_fmu(str(made(tmp_path, version, system, variant))) == []


def test_an_fmu_without_manifest_has_none(tmp_path: Path, version: str) -> None:
    path = made(tmp_path, version, EXAMPLE, Variant(manifest=False, trigger=False))
    extracted = Path(fmpy.extract(path, tmp_path / "files"))
    assert not (extracted / MANIFEST).exists()
    assert "bounce.in" not in (extracted / "modelDescription.xml").read_text(encoding="utf-8")


@pytest.mark.parametrize("interface", ["CoSimulation", "ModelExchange"])
def test_the_example_bounces_at_the_exact_times(version: str, interface: str) -> None:
    ball = reference_path(f"{version}/HybridLinear.fmu")
    clock = EarlyReturn() if interface == "ModelExchange" else Predictive()
    results = simulate(
        ball,
        interface=interface,
        stop_time=2.0,
        step_size=0.1,
        event_clock=clock,
        tolerance=1e-10,
    )
    assert [e.time for e in results.events] == approx([FIRST, 3 * FIRST], abs=1e-9)
    assert results["bounce.count"][-1] == 2
    assert results["bounce.when"][-1] == approx(3 * FIRST, abs=1e-9)


def test_it_executes_events_itself_and_counts_them(instance: Make) -> None:
    ball = instance(EXAMPLE, "fmi2").initialize()
    ball.step(2.0)
    assert ball["bounce.count"] == 2
    assert ball["bounce.when"] == approx(3 * FIRST, abs=1e-10)
    assert ball["x"] == approx(1 - G / 2 * (2.0 - 4 * FIRST) ** 2, abs=1e-9)


def test_every_trigger_is_executed_also_at_the_same_instant(instance: Make, version: str) -> None:
    ball = instance(EXAMPLE, version).initialize()
    velocities = []
    if version == "fmi3":
        ball.update()
        ball.fmu.enterStepMode()
    ball.step(0.1)
    if version == "fmi3":
        ball.fmu.enterEventMode()
    for count in (1, 2):
        if version == "fmi2":
            ball["bounce.in"] = count
        else:
            ball.activate("bounce.in")
            ball.update()
        velocities.append(ball["v"])
    assert velocities == approx([0.1 * G, -0.1 * G], abs=1e-12)


@pytest.mark.parametrize(("order", "time"), [(5, 0.5), (0, None)])
def test_inputs_follow_a_polynomial_or_are_held(
    instance: Make, order: int, time: float | None
) -> None:
    relay = instance(RELAY, "fmi2").initialize(inputOrder=order)
    relay["u_poly[1]"] = 2.0  # u = 2 t
    relay.step(1.0)
    assert relay["on"] == relay["y"] == (time is not None)
    assert relay["up.when"] == approx(time or 0.0, abs=1e-12)


def test_the_indicators_of_an_event_that_cannot_happen_are_constant(instance: Make) -> None:
    relay = instance(RELAY, "fmi2").initialize(u=0.25, du=3.0)
    values = {n: relay[n] for n in ("up.z[1]", "up.dz[1]", "down.z[1]", "down.dz[1]")}
    assert values == {"up.z[1]": 0.75, "up.dz[1]": -3.0, "down.z[1]": 1.0, "down.dz[1]": 0.0}


def test_a_payload_replaces_an_input(tmp_path: Path) -> None:
    """Two equal masses exchange their velocities."""
    hit = Transition(({"x": 1, "u_x": -1}, {"v": 1, "u_v": -1}), 0, {"v": {"u_v": 1}})
    mode = Mode({"x": {"v": 1}}, {"x": {"x": 1}, "v": {"v": 1}})
    signal, outputs = (Signal("u_x", "u_v"),), {"x": "v", "v": ""}
    right = HybridSystem(
        {"x": 1.0, "v": 0.0},
        (mode,),
        outputs,
        signal,
        (Event("hit", {0: hit}, shared=True, payload=("v", "u_v")),),
    )
    hit = Transition(({"x": -1, "u_x": 1}, {"v": -1, "u_v": 1}), 0, {"v": {"u_v": 1}})
    left = HybridSystem(
        {"x": 0.0, "v": 2.0},
        (mode,),
        outputs,
        signal,
        (Event("hit", {0: hit}, shared=True, payload=("v", "u_v")),),
    )
    system = SystemBuilder("pair")
    for name, unit, version in (("left", left, "fmi2"), ("right", right, "fmi3")):
        template = reference_path(f"{version}/HybridLinear.fmu")
        system.add(name, write_fmu(tmp_path / f"{name}.fmu", unit, template))
    for letter in "xv":
        system.connect(f"left.{letter}", f"right.u_{letter}")
        system.connect(f"right.{letter}", f"left.u_{letter}")
    system.share_event("hit", "left.hit", "right.hit")
    results = simulate(
        system.build(stop_time=1.0, step_size=0.1), event_clock=Predictive(), step_size=0.1
    )
    assert [e.time for e in results.events] == approx([0.5], abs=1e-9)
    assert (results["left.v"][-1], results["right.v"][-1]) == approx((0.0, 2.0), abs=1e-9)


@pytest.mark.parametrize("policy", [0, 1])
def test_inputs_that_jump_over_zero_make_an_event_at_the_start_of_the_step(
    instance: Make, version: str, policy: int
) -> None:
    relay = instance(RELAY, version).initialize(eventPolicy=policy)
    if version == "fmi3":
        relay.update()
        relay.fmu.enterStepMode()
    relay.step(0.1)
    relay["u"] = 1.5
    if version == "fmi3":
        event_waits, _, is_early, time = relay.step(0.1)
        relay.fmu.enterEventMode()
        assert (bool(event_waits), bool(is_early), time) == (True, True, 0.1)
        assert relay.active("up.out")
    elif policy == 1:
        assert relay.discarded_step(0.1) == 0.1
    else:
        relay.step(0.1)
        assert (relay["up.count"], relay["up.when"], relay["y"]) == (1, 0.1, 1.0)
