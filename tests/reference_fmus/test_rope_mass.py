"""Three masses on a rope: one event of three members, with a payload of two others."""

from __future__ import annotations

from itertools import permutations

import pytest
from pytest import approx
from reference_instance import Instance, Instantiate

EVENTS = {"eventModeUsed": True, "earlyReturnAllowed": True}
ANNOUNCE = 1
MASSES = (1.0, 2.0, 4.0)
VELOCITIES = (1.0, 2.0, 3.0)
AFTER = (1 - 48 / 7, 2 - 24 / 7, 3 - 12 / 7)
TAUT = 0.5


def others(k: int) -> list[int]:
    return [i for i in range(3) if i != k]


def three(instantiate: Instantiate, version: str, unit: float = 1.0) -> list[Instance]:
    """The masses of the readme, before the rope is taut; lengths in `unit` per metre."""
    made = []
    for k, (m, v) in enumerate(zip(MASSES, VELOCITIES, strict=True)):
        values = {"m": m, "v": unit * v, "rope": 3 * unit, "eventPolicy": ANNOUNCE}
        for name, i in zip(("first", "second"), others(k), strict=True):
            values |= {f"{name}.m": MASSES[i], f"{name}.v": unit * VELOCITIES[i]}
        options = EVENTS if version == "fmi3" else {}
        mass = instantiate("RopeMass", version, loggingOn=True, **options).initialize(**values)
        if version == "fmi3":
            mass.update()
            mass.fmu.enterStepMode()
        made.append(mass)
    return made


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e-6])
def test_all_three_stop_where_the_rope_is_taut(instantiate: Instantiate, unit: float) -> None:
    for mass in three(instantiate, "fmi3", unit):
        event, _, early, last = mass.step(1.0)
        assert (event, early) == (True, True)
        assert last == approx(TAUT, abs=2e-13)


def test_a_step_of_fmi2_is_discarded_there(instantiate: Instantiate) -> None:
    for mass in three(instantiate, "fmi2"):
        assert mass.discarded_step(1.0) == approx(TAUT, abs=2e-13)


def test_the_payload_of_two_others_gives_the_exact_right_limits(
    instantiate: Instantiate, version: str
) -> None:
    masses = three(instantiate, version)
    for k, mass in enumerate(masses):
        mass.step(0.5 - 1e-6)
        if version == "fmi3":
            mass.fmu.enterEventMode()
            mass.activate("taut.in")
        for j, i in enumerate(others(k), start=1):
            mass[f"taut.w[{j}]"] = VELOCITIES[i]
        if version == "fmi3":
            mass.update()
        else:
            mass["taut.in"] = 1
    assert [mass["v"] for mass in masses] == approx(AFTER, abs=1e-14)
    assert [mass["taut.z[2]"] for mass in masses] == approx([6.0] * 3, abs=1e-14)


def test_indicators_have_the_same_bits_however_the_others_are_numbered(
    instantiate: Instantiate, version: str
) -> None:
    positions = (0.1, 0.7, 1.3e-3)
    seen = set()
    for x, first, second in permutations(positions):
        values = {"x": x, "first.x": first, "second.x": second}
        seen.add(instantiate("RopeMass", version).initialize(**values)["taut.z[1]"])
    assert len(seen) == 1
