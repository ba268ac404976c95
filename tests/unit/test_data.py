"""Data classes that cost little to import behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, cast

import pytest

from fmimaster.base.data import dataclass

KINDS = (dataclass, dataclasses.dataclass)


def point(make: Any, **options: Any) -> Any:
    @make(**options)
    class Point:
        """With all that a field may be."""

        x: float
        y: float = 2.0
        names: list[str] = field(default_factory=list, compare=False)
        hidden: int = field(default=3, repr=False)
        late: int = field(init=False, default=7)
        only: str = field(default="n", kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "late", self.late + int(self.x))

    return Point


@pytest.fixture(params=KINDS, ids=["ours", "library"])
def make(request: pytest.FixtureRequest) -> Any:
    return request.param


OPTIONS: list[dict[str, Any]] = [
    {"frozen": frozen, "slots": slots, "kw_only": kw_only}
    for frozen in (False, True)
    for slots in (False, True)
    for kw_only in (False, True)
]


@pytest.mark.parametrize("options", OPTIONS)
def test_an_instance_has_its_values_and_defaults(make: Any, options: dict[str, Any]) -> None:
    kind = point(make, **options)
    p = kind(x=4.0, only="b")
    assert (p.x, p.y, p.names, p.hidden, p.late, p.only) == (4.0, 2.0, [], 3, 11, "b")
    assert p.names is not kind(x=4.0).names
    assert repr(p).endswith("Point(x=4.0, y=2.0, names=[], late=11, only='b')")
    assert hasattr(p, "__dict__") is not options["slots"]
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required"):
        kind()
    if options["kw_only"]:
        with pytest.raises(TypeError, match="positional"):
            kind(1.0)
    else:
        assert kind(1.0, 5.0).y == 5.0


@pytest.mark.parametrize("options", OPTIONS)
def test_equal_values_are_equal_and_have_one_hash(make: Any, options: dict[str, Any]) -> None:
    kind = point(make, **options)
    assert kind(x=1.0, names=["a"]) == kind(x=1.0)
    assert kind(x=1.0) != kind(x=2.0)
    assert kind(x=1.0) != point(make, **options)(x=1.0)
    if options["frozen"]:
        assert hash(kind(x=1.0, names=["a"])) == hash(kind(x=1.0))
    else:
        with pytest.raises(TypeError, match="unhashable"):
            hash(kind(x=1.0))


@pytest.mark.parametrize("slots", [False, True])
def test_fields_of_a_frozen_one_do_not_change(make: Any, slots: bool) -> None:
    p = point(make, frozen=True, slots=slots)(x=1.0)
    with pytest.raises(FrozenInstanceError):
        p.x = 2.0
    with pytest.raises(FrozenInstanceError):
        del p.x
    assert dataclasses.replace(p, x=5.0).x == 5.0
    assert copy.copy(p) == p


@pytest.mark.parametrize("options", OPTIONS)
def test_the_library_knows_it(make: Any, options: dict[str, Any]) -> None:
    kind = point(make, **options)
    names = [f.name for f in dataclasses.fields(kind)]
    assert names == ["x", "y", "names", "hidden", "late", "only"]
    assert dataclasses.asdict(kind(x=1.0))["late"] == 8
    assert set(inspect.signature(kind).parameters) == {"x", "y", "names", "hidden", "only"}
    positional = () if options["kw_only"] else ("x", "y", "names", "hidden")
    assert kind.__match_args__ == positional


def test_nothing_is_made_before_it_is_used() -> None:
    kind = point(dataclass, frozen=True, slots=True)
    made = {"__init__", "__eq__", "__hash__", "__dataclass_fields__", "__match_args__"}
    assert {type(vars(kind)[name]).__name__ for name in made} == {"_Later"}
    assert kind(1.0) == kind(1.0)
    later = {name for name in made if type(vars(kind)[name]).__name__ == "_Later"}
    assert later == {"__hash__", "__match_args__"}


@pytest.mark.parametrize("derive", KINDS, ids=["ours", "library"])
def test_a_subclass_adds_fields(make: Any, derive: Any) -> None:
    @make(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 2

        @property
        def both(self) -> int:
            return self.a + self.b

    @derive(frozen=True, slots=True)
    class More(Base):
        c: int = 3

    class Plain(More):
        """Without fields of its own."""

    base, more, plain = (cast(Any, kind) for kind in (Base, More, Plain))
    assert (more(1).both, more(1, 5, 6).c, plain(1).c) == (3, 6, 3)
    assert more(1) != base(1)
    assert plain(1, 2) == plain(1, 2)
    with pytest.raises(FrozenInstanceError):
        more(1).a = 2


def test_what_a_class_defines_itself_stays(make: Any) -> None:
    @make(frozen=True)
    class Own:
        a: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 5

    own = cast(Any, Own)(1)
    assert repr(own) == "own"
    assert own == 7
    assert hash(own) == 5


@dataclass(frozen=True, slots=True)
class Pickled:
    a: int
    b: tuple[str, ...] = ()


def test_one_with_slots_is_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, ("x",)))) == Pickled(1, ("x",))


def test_one_that_contains_itself_has_a_text(make: Any) -> None:
    @make
    class Ring:
        other: Any = None

    ring = Ring()
    ring.other = ring
    assert repr(ring).endswith("Ring(other=...)")


def test_many_fields_of_a_frozen_one_are_set_in_it_and_in_a_derived_class(make: Any) -> None:
    @make(frozen=True, slots=True)
    class Many:
        a: int
        b: int
        c: int
        d: list[int] = field(default_factory=list)
        e: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.a + 5)

    class Derived(Many):
        """With another layout: it has a ``__dict__``."""

    for kind in (cast(Any, Many), cast(Any, Derived)):
        one = kind(1, 2, c=3)
        assert (type(one), one.a, one.b, one.c, one.d, one.e) == (kind, 1, 2, 3, [], 6)
        assert one == kind(1, 2, 3, []) != kind(1, 2, 4)
        for name in ("a", "e"):
            with pytest.raises(FrozenInstanceError):
                setattr(one, name, 0)
