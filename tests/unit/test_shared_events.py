"""Events that components share: in SSP, in Python, and settled against the FMUs."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from pathlib import Path

import fmpy
import pytest
from command_line import system
from event_fmus import event_fmu, event_system
from lxml import etree

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.declarations import EventDeclaration, Indicator, Payload, Scope, Version
from fmimaster.system.description import Component, SharedEvent, System, SystemDescription
from fmimaster.system.model import Causality, DataType, Model, Source, Variability, Variable
from fmimaster.system.read import read_system
from fmimaster.system.resolve import resolve
from fmimaster.system.resolved import ResolvedSystem
from fmimaster.system.ssp_events import EVENTS_NAMESPACE, write_shared_events

COLLISION = SharedEvent("collision", (("upper", "collision"), ("lower", "collision")))


# SSP ------------------------------------------------------------------------------------------------------------------


def annotation(inside: str, kind: str = "org.fmimaster.fmi-ls-events") -> str:
    return f'<ssc:Annotation type="{kind}">{inside}</ssc:Annotation>'


def test_an_annotation_of_a_system_says_what_is_shared(tmp_path: Path) -> None:
    inside = """<SharedEvent name="collision">
      <Member component="upper" event="collision"/><Member component="lower" event="collision"/>
    </SharedEvent>"""
    description = read_system(event_system(tmp_path, annotation(inside)))
    assert description.system.shared_events == (COLLISION,)
    assert description.notes == ()


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    events = (COLLISION, SharedEvent('a "b" & c', (("x.y", "<e>"), ("z", "f"), ("w", "g"))))
    text = write_shared_events(events)
    assert read_system(event_system(tmp_path, text)).system.shared_events == events


def test_what_is_written_is_valid_by_the_schema_of_ssp(tmp_path: Path) -> None:
    folder = Path(fmpy.__file__).parent / "ssp" / "schema"
    schema = etree.XMLSchema(etree.parse(folder / "SystemStructureDescription.xsd"))
    path = event_system(
        tmp_path, write_shared_events([COLLISION, replace(COLLISION, name="other")])
    )
    schema.assertValid(etree.parse(path))


def test_annotations_of_others_are_still_left_aside_with_a_note(tmp_path: Path) -> None:
    text = annotation("<Anything/>", "com.example") + write_shared_events([COLLISION])
    description = read_system(event_system(tmp_path, text))
    assert description.system.shared_events == (COLLISION,)
    [note] = description.notes
    assert "annotations of type 'com.example' are ignored" in note


def test_the_same_annotation_of_another_publisher_is_read(tmp_path: Path) -> None:
    text = write_shared_events([COLLISION]).replace("org.fmimaster", "org.example")
    assert read_system(event_system(tmp_path, text)).system.shared_events == (COLLISION,)


def test_version_0_1_had_no_namespace_and_is_still_read(tmp_path: Path) -> None:
    inside = """<SharedEvent name="collision">
      <Member component="upper" event="collision"/><Member component="lower" event="collision"/>
    </SharedEvent>"""
    description = read_system(event_system(tmp_path, annotation(inside)))
    assert description.system.shared_events == (COLLISION,)
    assert description.notes == ()


def test_partners_are_written_and_read_again(tmp_path: Path) -> None:
    hit = SharedEvent(
        "hit",
        (("a", "hit"), ("b", "hit"), ("c", "hit")),
        (("b", "left", "a"), ("b", "right", "c")),
    )
    path = event_system(tmp_path, write_shared_events([hit, COLLISION]))
    assert read_system(path).system.shared_events == (hit, COLLISION)


def test_a_nested_system_has_shared_events_of_its_own(tmp_path: Path) -> None:
    inner = SharedEvent("e", (("p", "x"), ("q", "y")), (("p", "left", "q"),))
    nested = f"""<ssd:System name="inner"><ssd:Elements><ssd:Component name="p" source="a.fmu"/>
    <ssd:Component name="q" source="a.fmu"/></ssd:Elements>
    <ssd:Annotations>{write_shared_events([inner])}</ssd:Annotations></ssd:System>"""
    description = read_system(event_system(tmp_path, write_shared_events([COLLISION]), nested))
    assert description.notes == ()
    assert list(description.shared_events()) == [
        COLLISION,
        SharedEvent(
            "inner.e",
            (("inner.p", "x"), ("inner.q", "y")),
            (("inner.p", "left", "inner.q"),),
        ),
    ]


MEMBERS = '<Member component="upper" event="e"/><Member component="lower" event="e"/>'


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (
            "<SharedEventz/>",
            "element SharedEventz is not known here, expected SharedEvents in the namespace http",
        ),
        (
            f'<SharedEvent name="e"><Members/>{MEMBERS}</SharedEvent>',
            "element Members is not known. Did you mean 'Member'? Expected Member",
        ),
        (f"<SharedEvent>{MEMBERS}</SharedEvent>", "attribute 'name' of SharedEvent is missing"),
        (
            '<SharedEvent name="e"><Member component="upper" event="e"/></SharedEvent>',
            "SharedEvent 'e' has 1 Member. Expected at least 2",
        ),
        (
            f'<SharedEvent name="e">{MEMBERS.replace("event", "evnt")}</SharedEvent>',
            "attribute 'event' of Member is missing",
        ),
    ],
)
@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_what_is_misspelt_is_told_with_its_line(
    inside: str, told: str, version: str, tmp_path: Path
) -> None:
    if version == "0.2" and not inside.startswith("<SharedEventz"):
        inside = f'<SharedEvents xmlns="{EVENTS_NAMESPACE}" version="0.2.0">{inside}</SharedEvents>'
    with pytest.raises(FileError, match="system.ssd, line 7: " + re.escape(told)):
        read_system(event_system(tmp_path, annotation(inside)))


@pytest.mark.parametrize("version", ["", "1.0.0", "0.2"])
def test_the_version_of_shared_events_is_known(version: str, tmp_path: Path) -> None:
    inside = write_shared_events([COLLISION]).replace("0.3.0", version)
    with pytest.raises(FileError, match="attribute 'version' of SharedEvents is"):
        read_system(event_system(tmp_path, inside))


def test_what_a_later_minor_version_adds_is_left_aside_with_a_note(tmp_path: Path) -> None:
    text = write_shared_events([COLLISION]).replace('"0.3.0"', '"0.4.0" colour="red"')
    text = text.replace("<SharedEvent ", f'<Unheard xmlns="{EVENTS_NAMESPACE}"/><SharedEvent ')
    description = read_system(event_system(tmp_path, text))
    assert list(description.shared_events()) == [COLLISION]
    notes = " ".join(description.notes)
    assert "attribute 'colour' of SharedEvents is not known" in notes
    assert "element Unheard is not known" in notes


def test_a_role_is_bound_once(tmp_path: Path) -> None:
    twice = (("upper", "left", "lower"), ("upper", "left", "lower"))
    text = write_shared_events([replace(COLLISION, partners=twice)])
    with pytest.raises(FileError, match="the role 'left' is bound twice"):
        read_system(event_system(tmp_path, text))


def test_a_system_file_without_annotations_has_no_shared_events(tmp_path: Path) -> None:
    path = system(tmp_path / "s", {"a": event_fmu(tmp_path / "a.fmu")})
    assert read_system(path).system.shared_events == ()


# Python ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def builder() -> SystemBuilder:
    builder = SystemBuilder("two masses")
    builder.add("upper", "upper.fmu")
    builder.add("lower", "lower.fmu")
    return builder


def test_the_builder_shares_events(builder: SystemBuilder) -> None:
    builder.share_event("collision", "upper.collision", "lower.collision")
    assert builder.build().system.shared_events == (COLLISION,)


def test_the_builder_binds_roles(builder: SystemBuilder) -> None:
    partners = {"upper": {"below": "lower"}}
    builder.share_event("e", "upper.collision", "lower.collision", partners=partners)
    [shared] = builder.build().system.shared_events
    assert shared.partners == (("upper", "below", "lower"),)


def test_the_builder_refuses_what_is_no_component(builder: SystemBuilder) -> None:
    with pytest.raises(
        DescriptionError,
        match=r"Shared event 'e': there is no component 'uper'. Did you mean 'upper'\?",
    ):
        builder.share_event("e", "uper.collision", "lower.collision")
    with pytest.raises(DescriptionError, match=r"'upper' is not of the form 'component.event'"):
        builder.share_event("e", "upper", "lower.collision")


def test_the_builder_refuses_a_second_event_of_the_same_name(builder: SystemBuilder) -> None:
    builder.share_event("e", "upper.a", "lower.a")
    with pytest.raises(DescriptionError, match="There is a shared event 'e' already"):
        builder.share_event("e", "upper.b", "lower.b")


# Settled against the FMUs ---------------------------------------------------------------------------------------------


def variable(name: str, causality: Causality, kind: DataType = DataType.FLOAT64) -> Variable:
    continuous = kind is DataType.FLOAT64
    return Variable(
        name,
        0,
        kind,
        causality,
        Variability.CONTINUOUS if continuous else Variability.DISCRETE,
    )


def mass(*payload: Payload, name: str = "collision", trigger: str | None = "in") -> Model:
    """An FMU with a shared and a private event."""
    return Model(
        name="mass",
        fmi_version=Version("3.0"),
        variables=(
            variable("z", Causality.OUTPUT),
            variable("v", Causality.OUTPUT),
            variable("n", Causality.OUTPUT, DataType.STRING),
            variable("w", Causality.INPUT),
            variable("w2", Causality.INPUT),
            variable("in", Causality.INPUT, DataType.CLOCK),
        ),
        events=(
            EventDeclaration(name, Scope.SHARED, (Indicator("z"),), None, trigger, payload),
            EventDeclaration("ceiling", Scope.PRIVATE, (Indicator("z"),)),
        ),
    )


def settled(models: dict[str, Model], *shared: SharedEvent) -> ResolvedSystem:
    components = tuple(Component(name, Source(Path("mass.fmu"))) for name in models)
    description = SystemDescription(System("root", components, shared_events=shared))
    return resolve(description, models)


def test_members_become_indices_and_declarations() -> None:
    models = {"other": mass(), "upper": mass(), "lower": mass()}
    [event] = settled(models, COLLISION).shared_events
    assert event.name == "collision"
    assert [m.component for m in event.members] == [1, 2]
    assert {m.event for m in event.members} == {models["upper"].events[0]}
    assert event.payload == ()


def test_each_member_takes_what_the_other_gives() -> None:
    models = {"upper": mass(Payload("v", "w")), "lower": mass(Payload("z", "w2"))}
    [event] = settled(models, COLLISION).shared_events
    ends = [(p.source, p.output.name, p.target, p.input.name) for p in event.payload]
    assert ends == [(0, "v", 1, "w2"), (1, "z", 0, "w")]


def test_of_three_members_each_has_an_input_for_each_partner() -> None:
    models = {
        a: mass(Payload("v", "w", b), Payload("z", "w2", c))
        for a, b, c in (("a", "b", "c"), ("b", "a", "c"), ("c", "a", "b"))
    }
    members = (("a", "collision"), ("b", "collision"), ("c", "collision"))
    [event] = settled(models, SharedEvent("e", members)).shared_events
    into_c = [(p.source, p.output.name, p.input.name) for p in event.payload if p.target == 2]
    assert into_c == [(0, "z", "w"), (1, "z", "w2")]
    assert len(event.payload) == 6


def between_two() -> Model:
    """It has two partners, by role; each of those has one of its inputs for it."""
    return mass(Payload("v", "w", "left"), Payload("z", "w2", "right"))


BETWEEN = SharedEvent(
    "hit",
    (("a", "collision"), ("b", "collision"), ("c", "collision")),
    (
        *(("a", "left", "c"), ("a", "right", "b")),
        *(("b", "left", "a"), ("b", "right", "c")),
        *(("c", "left", "b"), ("c", "right", "a")),
    ),
)


def test_the_system_binds_the_roles_of_a_manifest_to_members() -> None:
    models = {name: between_two() for name in "abc"}
    [event] = settled(models, BETWEEN).shared_events
    ends = {(p.source, p.output.name, p.target, p.input.name) for p in event.payload}
    assert ends == {
        *((0, "z", 1, "w"), (1, "v", 0, "w2")),
        *((1, "z", 2, "w"), (2, "v", 1, "w2")),
        *((2, "z", 0, "w"), (0, "v", 2, "w2")),
    }


@pytest.mark.parametrize(
    ("partner", "told"),
    [
        (("a", "left", "d"), "the Partner 'left' of 'a' is 'd', which is not another member."),
        (("a", "left", "a"), "the Partner 'left' of 'a' is 'a', which is not another member."),
        (("a", "lft", "b"), "a Partner of 'a' has the role 'lft', but no Payload of its event"),
        (("d", "left", "b"), "a Partner of 'd' is given, which is not a member."),
    ],
)
def test_partners_that_cannot_be_are_refused(partner: tuple[str, str, str], told: str) -> None:
    models = {name: between_two() for name in "abc"}
    wrong = replace(BETWEEN, partners=(*BETWEEN.partners[1:], partner))
    with pytest.raises(DescriptionError) as caught:
        settled(models, wrong)
    assert told in str(caught.value)


def test_a_role_that_is_neither_bound_nor_a_component_is_refused() -> None:
    models = {name: between_two() for name in "abc"}
    with pytest.raises(DescriptionError, match=r"or a Partner of 'a' that binds the role 'left'"):
        settled(models, replace(BETWEEN, partners=BETWEEN.partners[1:]))


def test_a_component_in_a_nested_system_is_found() -> None:
    part = Component("part", Source(Path("mass.fmu")))
    inner = System("inner", (part,))
    shared = SharedEvent("e", (("part", "collision"), ("inner.part", "collision")))
    description = SystemDescription(System("root", (part,), (inner,), shared_events=(shared,)))
    models = {"part": mass(), "inner.part": mass()}
    [event] = resolve(description, models).shared_events
    assert [m.component for m in event.members] == [0, 1]


def test_what_is_settled_can_be_pickled() -> None:
    models = {"upper": mass(Payload("v", "w")), "lower": mass(Payload("v", "w"))}
    events = settled(models, COLLISION).shared_events
    assert pickle.loads(pickle.dumps(events)) == events


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ("upper.collision lowr.collision", "there is no component 'lowr'. Did you mean 'lower'?"),
        ("upper.collision lower.colision", "'lower' has no event 'colision'. Did you mean 'coll"),
        ("upper.collision lower.xyz", "has no event 'xyz'. It has collision, ceiling."),
        ("upper.collision plain.e", "Its FMU declares no events; add a manifest of fmi-ls-events"),
        (
            "upper.collision lower.ceiling",
            "event 'ceiling' of 'lower' is private, so it does not affect",
        ),
        ("upper.collision", "has 1 member, expected at least two. Name the components"),
        ("", "has no members, expected at least two"),
        ("upper.collision upper.collision", "'upper' is a member twice"),
    ],
)
def test_members_that_cannot_be_are_refused(members: str, told: str) -> None:
    models = {"upper": mass(), "lower": mass(), "plain": replace(mass(), events=())}
    pairs = [m.split(".") for m in members.split()]
    with pytest.raises(DescriptionError) as caught:
        settled(models, SharedEvent("e", tuple((c, e) for c, e in pairs)))
    assert str(caught.value).startswith("Shared event 'e'")
    assert told in str(caught.value)


def test_an_event_belongs_to_one_shared_event() -> None:
    models = {"upper": mass(), "lower": mass(), "third": mass()}
    second = SharedEvent("second", (("third", "collision"), ("upper", "collision")))
    with pytest.raises(
        DescriptionError,
        match="'second': event 'collision' of 'upper' belongs to the shared event 'collision' already",
    ):
        settled(models, COLLISION, second)


def test_shared_events_have_different_names() -> None:
    models = {"upper": mass(), "lower": mass(), "a": mass(), "b": mass()}
    second = SharedEvent("collision", (("a", "collision"), ("b", "collision")))
    with pytest.raises(DescriptionError, match="There are several shared events 'collision'"):
        settled(models, COLLISION, second)


@pytest.mark.parametrize(
    ("upper", "lower", "told"),
    [
        ([("v", "w")], [], "'upper' has 1 Payload for 'lower', which has 0 for 'upper'. Expected"),
        ([("v", "wo")], [("v", "w")], "'lower.v -> upper.wo': 'upper' has no variable 'wo'. Did"),
        ([("vv", "w")], [("v", "w")], "'upper.vv -> lower.w': 'upper' has no variable 'vv'. Did"),
        ([("n", "w")], [("v", "w")], "'upper.n -> lower.w': String to Float64 cannot be conv"),
        (
            [("v", "w", "lowr")],
            [("v", "w")],
            "is from 'lowr', which is not another member. Did you",
        ),
    ],
)
def test_payload_that_does_not_fit_is_refused(
    upper: list[tuple[str, ...]], lower: list[tuple[str, ...]], told: str
) -> None:
    models = {
        "upper": mass(*(Payload(*p) for p in upper)),
        "lower": mass(*(Payload(*p) for p in lower)),
    }
    with pytest.raises(DescriptionError) as caught:
        settled(models, COLLISION)
    assert str(caught.value).startswith("Shared event 'collision': ")
    assert told in str(caught.value)


def test_of_three_members_a_payload_must_say_whose_it_is() -> None:
    models = {name: mass(Payload("v", "w")) for name in "abc"}
    members = (("a", "collision"), ("b", "collision"), ("c", "collision"))
    with pytest.raises(
        DescriptionError,
        match=r"Payload 'w' of 'a' does not name its source.* attribute member, one input for each of b, c",
    ):
        settled(models, SharedEvent("e", members))


def test_notes_of_fmus_are_notes_of_the_system() -> None:
    noted = replace(mass(), notes=("something is odd",))
    assert settled({"upper": noted, "lower": noted}).notes == ("something is odd",)
