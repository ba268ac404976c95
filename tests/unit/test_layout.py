"""Where values live: outputs first, each group of an instance in one piece per type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fmimaster.plan.layout import Group, make_layout
from fmimaster.program.store import ValueStore
from fmimaster.system.model import Causality, DataType, Variability, Variable

Members = list[dict[Group, list[Variable]]]


def variable(name: str, kind: DataType = DataType.FLOAT64, shape: tuple[int, ...] = ()) -> Variable:
    reference = int(name[1:] or 0)
    return Variable(name, reference, kind, Causality.LOCAL, Variability.DISCRETE, shape=shape)


kinds = st.sampled_from([DataType.FLOAT64, DataType.INT32, DataType.BOOLEAN, DataType.STRING])
shapes = st.sampled_from([(), (3,), (2, 2), (0,)])


@st.composite
def members(draw: st.DrawFn) -> Members:
    def variables() -> list[Variable]:
        n = draw(st.integers(0, 4))
        return [variable(f"v{k}", draw(kinds), draw(shapes)) for k in range(n)]

    placed = [g for g in Group if g is not Group.SOURCES]
    groups = st.lists(st.sampled_from(placed), max_size=4, unique=True)
    return [{g: variables() for g in draw(groups)} for _ in range(draw(st.integers(1, 3)))]


@given(members())
def test_every_element_has_a_place_of_its_own(system: Members) -> None:
    layout = make_layout(system)
    taken = [
        (kind, k) for kind, slot in layout.slots.values() for k in range(slot.start, slot.stop)
    ]
    assert sorted(taken, key=str) == sorted(
        ((kind, k) for kind, size in layout.sizes.items() for k in range(size)), key=str
    )


@given(members())
def test_every_variable_of_every_group_has_a_slot_of_its_size(system: Members) -> None:
    layout = make_layout(system)
    expected = {
        (i, group, v.name): (v.type, v.size)
        for i, groups in enumerate(system)
        for group, variables in groups.items()
        for v in variables
    }
    found = {key: (kind, slot.stop - slot.start) for key, (kind, slot) in layout.slots.items()}
    assert found == expected


@given(members())
def test_outputs_of_all_instances_come_first(system: Members) -> None:
    layout = make_layout(system)
    for (_, group, _), (kind, slot) in layout.slots.items():
        is_first = slot.stop <= layout.output_sizes[kind]
        assert is_first == (group is Group.OUTPUTS) or slot.start == slot.stop


@given(members())
def test_a_group_is_one_piece_per_type_in_the_order_of_the_variables(system: Members) -> None:
    layout = make_layout(system)
    for i, groups in enumerate(system):
        for group, variables in groups.items():
            for segment in layout.segments(i, group):
                of_type = [v for v in variables if v.type is segment.type]
                assert list(segment.variables) == of_type
                assert segment.value_references == tuple(v.value_reference for v in of_type)
                assert segment.stop - segment.start == sum(v.size for v in of_type)


@given(members(), st.sets(st.sampled_from([f"v{k}" for k in range(4)])))
def test_sources_are_outputs_where_they_are(system: Members, names: set[str]) -> None:
    for groups in system:
        outputs = groups.get(Group.OUTPUTS, [])
        groups[Group.SOURCES] = [v for v in outputs if v.name in names]
    layout = make_layout(system)
    for i, groups in enumerate(system):
        for v in groups[Group.SOURCES]:
            assert layout.slots[i, Group.SOURCES, v.name] == layout.slots[i, Group.OUTPUTS, v.name]
        read = [v for s in layout.segments(i, Group.SOURCES) for v in s.variables]
        assert sorted(read, key=str) == sorted(groups[Group.SOURCES], key=str)


def test_a_group_without_variables_has_no_segments() -> None:
    assert make_layout([{Group.OUTPUTS: []}]).segments(0, Group.OUTPUTS) == ()


# The store ------------------------------------------------------------------------------------------------------------


def store(n_buffers: int = 1) -> ValueStore:
    """Two instances: outputs y (two elements) and n, z; and an input of the first."""
    layout = make_layout(
        [
            {
                Group.CONTINUOUS: [variable("u1")],
                Group.OUTPUTS: [variable("y2", shape=(2,)), variable("n3", DataType.INT32)],
            },
            {Group.OUTPUTS: [variable("z1")]},
        ]
    )
    return ValueStore(layout, 2, n_buffers)


@pytest.mark.parametrize("kind", list(DataType))
def test_values_have_the_numpy_type_of_their_fmi_type(kind: DataType) -> None:
    made = ValueStore(make_layout([{Group.OUTPUTS: [variable("y1", kind)]}]), 1, 0)
    assert made.values[kind].dtype == kind.dtype
    empty = {DataType.STRING: "", DataType.BINARY: b""}.get(kind, 0)
    assert made.values[kind].tolist() == [empty]


def test_outputs_are_a_view_of_the_values() -> None:
    s = store()
    s.values[DataType.FLOAT64][:3] = [1, 2, 3]
    assert s.outputs[DataType.FLOAT64].tolist() == [1, 2, 3]
    assert len(s.values[DataType.FLOAT64]) == 4


def test_before_anything_is_read_no_output_has_a_time() -> None:
    assert np.isnan(store().read).all()


def test_recall_brings_back_outputs_and_their_times_and_nothing_else() -> None:
    s = store()
    s.values[DataType.FLOAT64][:] = [1, 2, 3, 10]
    s.values[DataType.INT32][:] = [7]
    s.read[:] = [0.5, 0.25]
    s.keep(0)
    s.values[DataType.FLOAT64][:] = [4, 5, 6, 20]
    s.values[DataType.INT32][:] = [8]
    s.read[:] = 1.0
    s.recall(0)
    assert s.values[DataType.FLOAT64].tolist() == [1, 2, 3, 20]
    assert s.values[DataType.INT32].tolist() == [7]
    assert s.read.tolist() == [0.5, 0.25]


def test_a_copy_of_the_outputs_does_not_change_with_them() -> None:
    s = store()
    values, read = s.copy_of_outputs()
    s.outputs[DataType.FLOAT64][:] = 9
    s.read[:] = 9
    assert values[DataType.FLOAT64].tolist() == [0, 0, 0]
    assert np.isnan(read).all()


def test_arrays_stay_where_they_are() -> None:
    s = store()
    before = {kind: values.ctypes.data for kind, values in s.values.items()}
    s.keep(0)
    s.recall(0)
    assert {kind: values.ctypes.data for kind, values in s.values.items()} == before
