"""Which parts of a system exist, as a value."""

from __future__ import annotations

from fractions import Fraction

from fmimaster import SystemBuilder, reference_path
from fmimaster.prepare.structures import structure_at
from fmimaster.system.clocks import Lifetime, Structure

BALL = reference_path("fmi3/Dahlquist.fmu")


def built() -> SystemBuilder:
    """b exists from 1 s on; a feeds c in two intervals that touch, and b feeds c from 2 s on."""
    system = SystemBuilder("changing")
    system.add("a", BALL)
    system.add("b", BALL, lifetime=Lifetime(from_time=1))
    system.add("c", reference_path("fmi3/Feedthrough.fmu"))
    system.connect("a.x", "c.Float64_continuous_input", lifetime=Lifetime(until_time=1))
    system.connect("a.x", "c.Float64_continuous_input", lifetime=Lifetime(1, 2))
    system.connect("b.x", "c.Float64_continuous_input", lifetime=Lifetime(from_time=2))
    return system


def structure(time: str) -> Structure | None:
    return structure_at(built().build(), Fraction(time)).structure


def test_equal_structures_are_equal_values() -> None:
    assert structure("0") == structure("1/2")
    assert structure("1") == structure("3/2")
    assert len({structure(t) for t in ("0", "1/2", "1", "3/2", "2", "3")}) == 3


def test_a_connection_that_is_replaced_by_an_equal_one_is_the_same_part() -> None:
    before, after = structure("1/2"), structure("1")
    assert before is not None
    assert after is not None
    assert before.parts < after.parts
    assert len(after.parts - before.parts) == 1


def test_a_structure_names_the_components_of_others() -> None:
    absent = [found.absent for t in ("0", "1") if (found := structure(t)) is not None]
    assert absent == [{"b"}, frozenset()]


def test_a_whole_system_has_no_structure() -> None:
    assert built().build().structure is None
