"""Trigger sequences: who chooses them, and by which method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_fmu import PythonFmu, plan_of

from fmimaster import Simulation
from fmimaster.algorithms import Algorithm, Aligned, GaussSeidel, Jacobi
from fmimaster.base.errors import OptionError
from fmimaster.configure.settings import Settings
from fmimaster.fmu.load import Loader
from fmimaster.prepare.preparation import prepare
from fmimaster.sequences import (
    Count,
    FeedThrough,
    GivenWeights,
    LeastStale,
    NearestNeighbour,
    Upstream,
)
from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.methods import METHODS, check_sequence, choose_sequence
from fmimaster.sequences.weights import UnitConnection, Units, units_of
from fmimaster.system.model import Variability


def units_from(connections: str, names: str = "", direct: Sequence[str] = ()) -> Units:
    """Units of one letter: ``"ab ba"`` are connections; ``direct`` names those with feed-through."""
    pairs = [(pair[0], pair[1]) for pair in connections.split()]
    return Units(
        tuple(names or sorted({unit for pair in pairs for unit in pair})),
        tuple(
            UnitConnection(a, f"y{k}", b, f"u{k}", f"{a}{b}" in direct)
            for k, (a, b) in enumerate(pairs)
        ),
    )


# Who chooses ----------------------------------------------------------------------------------------------------------


RING = units_from("ab bc ca", direct=["ab", "bc"])


def test_nothing_said_is_the_automatic_sequence() -> None:
    assert choose_sequence(RING) == (("a", "b", "c"), "method automatic")


def test_names_of_components_are_taken_as_they_are() -> None:
    assert choose_sequence(RING, ["c", "a", "b"]) == (("c", "a", "b"), "the user")


def test_the_sequence_of_the_system_counts_unless_the_user_gives_one() -> None:
    described = ("b", "c", "a")
    assert choose_sequence(RING, None, described) == (described, "the system")
    assert choose_sequence(RING, "automatic", described)[0] == ("a", "b", "c")
    assert choose_sequence(RING, ["c", "b", "a"], described)[0] == ("c", "b", "a")


def test_the_table_of_an_input_file_is_not_named() -> None:
    units = units_from("ta ab", names="abt")
    assert choose_sequence(units, ["b", "a"], unnamed=["t"])[0] == ("t", "b", "a")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "sequence: 'c' is missing. Name each of the components once."),
        (["a"], "sequence: 'b', 'c' are missing. Name each of the components once."),
        (
            ["a", "b", "a", "c"],
            "sequence: 'a' is named more than once. Each component steps once: name it once.",
        ),
        (
            ["a", "b", "d"],
            "sequence: there is no component 'd'. There are 'a', 'b', 'c'. Name each of the components once.",
        ),
        (
            ["C", "b", "a"],
            "sequence: there is no component 'C'. Did you mean 'c'? Name each of the components once.",
        ),
        ([], "sequence: 'a', 'b', 'c' are missing. Name each of the components once."),
    ],
)
def test_a_sequence_that_does_not_name_each_component_once_is_refused(
    names: list[str], message: str
) -> None:
    with pytest.raises(OptionError) as caught:
        choose_sequence(RING, names)
    assert str(caught.value) == message


def test_a_wrong_sequence_in_the_system_says_that_it_is_there() -> None:
    with pytest.raises(OptionError, match=r"^Sequence of the system: 'c' is missing\."):
        choose_sequence(RING, None, ["a", "b"])


def test_of_many_missing_components_the_first_ones_are_named() -> None:
    with pytest.raises(OptionError, match=r"'a', 'b', 'c', 'd', 'e' and 2 more are missing"):
        choose_sequence(units_from("ab bc cd de ef fg"), [])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("upsteam", r"there is no method 'upsteam'\. Did you mean 'upstream'\?"),
        (3, r"sequence: 3, expected a method"),
        ([1, 2], r"sequence: \[1, 2\], expected a method"),
    ],
)
def test_a_setting_that_is_no_sequence_is_refused_at_once(setting: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_sequence(setting)
    with pytest.raises(OptionError, match=message):
        Settings("a.fmu", sequence=setting)


# Weights --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_negative_nan_or_infinite_are_refused(weight: float) -> None:
    message = (
        r"Weight of the connection to 'b\.u0': .*, expected a finite number that is not negative\."
    )
    with pytest.raises(OptionError, match=message):
        GivenWeights({"b.u0": weight})
    with pytest.raises(OptionError, match="FeedThrough, otherwise"):
        FeedThrough(weight)
    with pytest.raises(OptionError, match=r"from .a. to .b.: .*, expected"):
        UnitGraph.made("ab", [("a", "b", weight)])


def test_a_weight_that_is_a_text_is_refused() -> None:
    much: Any = "much"
    with pytest.raises(OptionError, match=r"given\['b\.u0'\]='much', expected a number"):
        GivenWeights({"b.u0": much})


def test_a_weight_for_an_input_that_nothing_feeds_is_refused() -> None:
    weights = GivenWeights({"b.u7": 1.0})
    with pytest.raises(
        OptionError, match=r"no connection feeds an input of that name\. Did you mean 'b\.u0'"
    ):
        LeastStale(weights).choose(RING)


def test_given_weights_decide() -> None:
    assert LeastStale(GivenWeights({"b.u0": 0.2, "c.u1": 0.1})).choose(RING) == ("a", "b", "c")
    assert LeastStale(GivenWeights({"b.u0": 0.2, "c.u1": 0.1, "a.u2": 0.3})).choose(RING) == (
        "c",
        "a",
        "b",
    )


def test_a_unit_with_discrete_outputs_needs_fresh_inputs_more_than_one_with_feed_through() -> None:
    plan = plan_of(
        {
            "controller": PythonFmu(
                inputs={"x": 0.0},
                outputs={"q": lambda v: 0.0},
                attributes={"q": {"variability": Variability.DISCRETE}},
            ),
            # dx depends directly on q, but feeds nothing
            "room": PythonFmu(
                inputs={"q": 0.0},
                outputs={"x": lambda v: 0.0, "dx": lambda v: 0.0},
                depends={"dx": ["q"]},
            ),
        },
        ["room.x -> controller.x", "controller.q -> room.q"],
    )
    models = [i.model for i in plan.instances]
    units = units_of([i.name for i in plan.instances], models, plan.links)
    assert FeedThrough().of(units.connections) == [10.0, 0.01]
    assert [plan.instances[i].name for i in plan.trigger_sequence] == ["room", "controller"]


def test_connections_between_the_same_units_add_up() -> None:
    # two inputs of b would be stale, or one of a
    assert LeastStale(Count()).choose(units_from("ab ba ba")) == ("b", "a")


# Methods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in METHODS.values() if not isinstance(m, Upstream)])
@given(st.permutations("abcdef"), st.permutations(range(9)))
def test_no_method_but_upstream_depends_on_how_units_are_listed(
    method: Any, names: list[str], connections: list[int]
) -> None:
    """sequence.md 7.9: names decide ties, never the order of units or connections."""
    listed = units_from("ab bc ca cd de ec ef fa ad", direct=["bc", "de", "fa"])
    mixed = Units(tuple(names), tuple(listed.connections[k] for k in connections))
    assert method.choose(mixed) == method.choose(listed)


@pytest.mark.parametrize("method", METHODS.values())
def test_each_method_puts_units_that_are_not_in_a_ring_downstream(method: Any) -> None:
    assert method.choose(units_from("dc cb ba")) == ("d", "c", "b", "a")


def test_units_that_are_solved_together_follow_each_other() -> None:
    units = units_from("ab ba bc ca cb", direct=["bc", "cb"])
    together = Units(units.names, units.connections, (("b", "c"),))
    for method in (LeastStale(), LeastStale(Count()), NearestNeighbour()):
        sequence = "".join(method.choose(together))
        assert sequence in ("abc", "acb", "bca", "cba")


def test_a_loop_that_is_solved_stays_together_in_the_sequence_of_a_plan() -> None:
    def unit(able: bool) -> PythonFmu:
        return PythonFmu(
            inputs={"u": 0.0, "w": 0.0},
            outputs={"y": lambda v: v.u},
            depends={"y": ["u"]},
            can_get_and_set_fmu_state=able,
        )

    # c, which feeds one of them and is fed by the other, would step between them
    connections = ["a.y -> b.u", "b.y -> a.u", "a.y -> c.u", "c.y -> b.w"]

    def sequence(able: bool) -> str:
        units = {name: unit(able) for name in "abc"}
        plan = plan_of(units, connections)
        return "".join(plan.instances[i].name for i in plan.trigger_sequence)

    assert sequence(False) == "acb"
    assert sequence(True) in ("abc", "bac", "cab", "cba")


@given(st.permutations("abcde"), st.permutations(range(7)))
def test_the_sequence_of_a_plan_does_not_depend_on_how_the_system_is_listed(
    names: list[str], order: list[int]
) -> None:
    """sequence.md 7.9: for components and connections of a description."""
    pairs = ["ab", "bc", "ca", "cd", "de", "ec", "db"]

    def sequence(names: Sequence[str], order: Sequence[int]) -> list[str]:
        units = {}
        for name in names:
            fed = [f"u{pair[0]}" for pair in pairs if pair[1] == name]
            units[name] = PythonFmu(
                inputs=dict.fromkeys(fed, 0.0),
                outputs={"y": lambda v: 0.0},
                depends={"y": fed[:1]} if name in "bd" else {},
            )
        plan = plan_of(units, [f"{pairs[k][0]}.y -> {pairs[k][1]}.u{pairs[k][0]}" for k in order])
        return [plan.instances[i].name for i in plan.trigger_sequence]

    assert sequence(names, order) == sequence("abcde", range(7))


# Upstream -------------------------------------------------------------------------------------------------------------


def integrator() -> PythonFmu:
    return PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 0.0})


def gain() -> PythonFmu:
    return PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: v.u}, depends={"y": ["u"]})


def upstream(units: dict[str, PythonFmu], connections: list[str]) -> str:
    plan = plan_of(units, connections)
    names = [i.name for i in plan.instances]
    models = [i.model for i in plan.instances]
    return "".join(Upstream().choose(units_of(names, models, plan.links)))


@pytest.mark.parametrize(
    ("size", "algorithm", "method"),
    [
        (50, Jacobi(), "automatic"),
        (51, Jacobi(), "nearest-neighbour"),
        (51, Aligned(Jacobi()), "nearest-neighbour"),
        (51, GaussSeidel(), "automatic"),
    ],
)
def test_no_sequence_is_searched_for_a_large_system_where_it_has_no_influence(
    simulation: Callable[..., Simulation], size: int, algorithm: Algorithm, method: str
) -> None:
    unit = PythonFmu(inputs={"u": 0.0}, outputs={"y": lambda v: 1.0})
    ring = [f"i{k}.y -> i{(k + 1) % size}.u" for k in range(size)]
    run = simulation(
        {f"i{k}": unit for k in range(size)},
        ring,
        algorithm=algorithm,
        stop_time=1.0,
        step_size=1.0,
    )
    prepared = prepare(run, Loader())
    assert prepared.plan.sequence_chosen_by == f"method {method}"


def test_an_instance_steps_after_those_that_feed_it() -> None:
    units = {name: integrator() for name in "abcd"}
    assert upstream(units, ["d.y -> c.u", "c.y -> b.u", "b.y -> a.u"]) == "dcba"


def test_instances_that_are_not_connected_step_in_the_order_of_the_description() -> None:
    assert upstream({name: integrator() for name in "bca"}, []) == "bca"


def test_in_a_ring_one_that_passes_values_on_directly_steps_last() -> None:
    units = {"g": gain(), "i": integrator()}
    assert upstream(units, ["g.y -> i.u", "i.y -> g.u"]) == "ig"


def test_a_ring_steps_after_what_feeds_it_and_before_what_it_feeds() -> None:
    units = {"z": integrator(), "a": integrator(), "b": integrator(), "s": integrator()}
    units["a"] = PythonFmu(inputs={"u": 0.0, "w": 0.0}, outputs={"y": lambda v: 0.0})
    connections = ["s.y -> a.u", "a.y -> b.u", "b.y -> a.w", "b.y -> z.u"]
    assert upstream(units, connections) == "sabz"


def test_two_connections_between_the_same_instances_count_as_one() -> None:
    target = PythonFmu(inputs={"u": 0.0, "w": 0.0}, outputs={"y": lambda v: 0.0})
    units = {"b": target, "a": integrator()}
    assert upstream(units, ["a.y -> b.u", "a.y -> b.w"]) == "ab"


@given(st.permutations("abcdef"))
def test_a_chain_steps_downstream_however_it_is_listed(names: list[str]) -> None:
    units = {name: integrator() for name in names}
    pairs = zip("abcde", "bcdef", strict=True)
    assert upstream(units, [f"{s}.y -> {t}.u" for s, t in pairs]) == "abcdef"


def test_of_no_instances_there_is_no_order() -> None:
    assert Upstream().choose(Units((), ())) == ()
