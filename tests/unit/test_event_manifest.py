"""The manifest of fmi-ls-events: what it says becomes part of the model, and what is wrong with it is told."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from event_fmus import ATTRIBUTES, EVENTS, EXTRA, VARIABLES, event_fmu, manifest

from fmimaster.base.errors import FileError, ModelError, OptionError
from fmimaster.fmu.event_manifest import EventManifest
from fmimaster.fmu.library import FmuFile
from fmimaster.fmu.manifest_writer import add_manifest, write_manifest, write_polynomials
from fmimaster.system.declarations import (
    EventDeclaration,
    EventPolicy,
    Indicator,
    InputPolynomial,
    Payload,
    Scope,
)
from fmimaster.system.model import Model, Source

CEILING = EventDeclaration(
    "ceiling",
    Scope.PRIVATE,
    (Indicator("ceiling.z[1]"), Indicator("ceiling.z[2]")),
    announce="ceiling.out",
)
COLLISION = EventDeclaration(
    "collision",
    Scope.SHARED,
    (
        Indicator("collision.z[1]", "collision.dz[1]"),
        Indicator("collision.z[2]", "collision.dz[2]"),
    ),
    announce="collision.out",
    trigger="collision.in",
    payload=(Payload("v", "collision.w"),),
    right_limits_without_step=True,
)
POLYNOMIAL = InputPolynomial("u_x", ("u_poly[0]", "u_poly[1]", "u_poly[2]"), "u_v", "inputOrder", 5)
SAID = EventManifest(
    (CEILING, COLLISION),
    EventPolicy("eventPolicy", execute=0, announce=1, ignore=2),
    "lookahead.next",
    (POLYNOMIAL,),
)
WITH_ARRAY = VARIABLES + "u_array Float64 input continuous start=0 size=6\n"


def model_of(path: Path) -> Model:
    fmu = FmuFile(Source(path))
    fmu.close()
    return fmu.model


def problems(
    tmp_path: Path, inside: str, version: str = "3.0", variables: str = VARIABLES
) -> list[str]:
    """What is told of an FMU with such a manifest, without the file's name; it has no events then."""
    path = event_fmu(tmp_path / "a.fmu", inside, version=version, variables=variables)
    model = model_of(path)
    assert model == replace(model, events=(), event_policy=None, look_ahead=None, notes=())
    assert model.input_polynomials == ()
    [standard] = model.layered_standards
    where = f"{path}/{EXTRA}, "
    assert all(p.startswith(where) for p in standard.problems)
    return [p.removeprefix(where) for p in standard.problems]


def problem(path: Path) -> str:
    """Why the only layered standard of an FMU is ignored."""
    [standard] = model_of(path).layered_standards
    [found] = standard.problems
    return found


def event(
    inside: str = '<Indicator name="ceiling.z[1]"/>', attributes: str = 'scope="private"'
) -> str:
    return f'<Event name="e" {attributes}>{inside}</Event>'


# What is read ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_the_manifest_becomes_part_of_the_model(version: str, tmp_path: Path) -> None:
    model = model_of(event_fmu(tmp_path / "a.fmu", version=version))
    assert model.events == SAID.events
    assert model.event_policy == SAID.policy
    assert model.look_ahead == SAID.look_ahead
    assert model.input_polynomials == SAID.input_polynomials
    assert model.notes == ()


def test_an_unpacked_fmu_has_its_manifest_too(tmp_path: Path) -> None:
    with zipfile.ZipFile(event_fmu(tmp_path / "a.fmu")) as archive:
        archive.extractall(tmp_path / "a")
    assert model_of(tmp_path / "a").events == SAID.events


def test_coefficients_may_be_one_array(tmp_path: Path) -> None:
    inside = '<InputPolynomial input="u_x" coefficients="u_array"/>'
    model = model_of(event_fmu(tmp_path / "a.fmu", inside, variables=WITH_ARRAY))
    assert model.input_polynomials == (InputPolynomial("u_x", ("u_array",)),)


def test_an_fmu_without_manifest_and_event_indicators_has_no_events(tmp_path: Path) -> None:
    model = model_of(event_fmu(tmp_path / "a.fmu", None))
    assert (model.events, model.event_policy, model.look_ahead, model.notes) == ((), None, None, ())


def test_event_indicators_of_fmi_3_are_private_events_without_any_manifest(tmp_path: Path) -> None:
    structure = (
        "<EventIndicator valueReference='collision.z[1]'/><EventIndicator valueReference='force'/>"
    )
    model = model_of(event_fmu(tmp_path / "a.fmu", None, structure=structure))
    assert model.events == (
        EventDeclaration(
            "collision.z[1]", Scope.PRIVATE, (Indicator("collision.z[1]", "collision.dz[1]"),)
        ),
        EventDeclaration("force", Scope.PRIVATE, (Indicator("force"),)),
    )


def test_a_local_variable_serves_as_the_derivative_of_an_event_indicator(tmp_path: Path) -> None:
    variables = VARIABLES.replace("v              Float64 output ", "v              Float64 local ")
    structure = "<EventIndicator valueReference='x'/>"
    path = event_fmu(tmp_path / "a.fmu", None, variables=variables, structure=structure)
    assert model_of(path).events[0].indicators == (Indicator("x", "v"),)


def test_a_manifest_stands_in_for_the_event_indicators(tmp_path: Path) -> None:
    structure = "<EventIndicator valueReference='collision.z[1]'/>"
    path = event_fmu(tmp_path / "a.fmu", event(), structure=structure)
    assert [e.name for e in model_of(path).events] == ["e"]


def test_a_manifest_of_another_publisher_is_read(tmp_path: Path) -> None:
    adopted = ATTRIBUTES.replace("org.fmimaster", "org.example")
    path = event_fmu(
        tmp_path / "a.fmu",
        None,
        members={EXTRA.replace("org.fmimaster", "org.example"): manifest(attributes=adopted)},
    )
    assert model_of(path).events == SAID.events


def test_manifests_of_other_layered_standards_are_left_alone(tmp_path: Path) -> None:
    other = ATTRIBUTES.replace("fmi-ls-events", "fmi-ls-bus")
    members = {
        "extra/org.example.fmi-ls-bus/fmi-ls-manifest.xml": manifest("<Any/>", other),
        "extra/org.example.broken/fmi-ls-manifest.xml": b"<no xml",
        "extra/readme.txt": b"a file",
    }
    assert model_of(event_fmu(tmp_path / "a.fmu", members=members)).events == SAID.events


def test_an_unknown_major_version_is_left_aside(tmp_path: Path) -> None:
    later = manifest("<Unheard/>", ATTRIBUTES.replace("0.2.0", "1.4.2-beta"))
    structure = "<EventIndicator valueReference='collision.z[2]'/>"
    path = event_fmu(tmp_path / "a.fmu", structure=structure, members={EXTRA: later})
    model = model_of(path)
    assert [e.name for e in model.events] == ["collision.z[2]"]
    assert model.notes == ()
    assert problem(path).startswith(f"{path}/{EXTRA}: ")
    assert "has version 1.4, expected 0.x. Update fmimaster" in problem(path)


def test_what_a_later_minor_version_adds_is_left_aside_with_a_note(tmp_path: Path) -> None:
    inside = event(attributes='scope="private" colour="red"') + "<Unheard/>"
    later = manifest(inside, ATTRIBUTES.replace("0.2.0", "0.4.0"))
    model = model_of(event_fmu(tmp_path / "a.fmu", members={EXTRA: later}))
    assert [e.name for e in model.events] == ["e"]
    assert (
        "attribute 'colour' of Event is not known. Expected active, announce, name, rightLimitsWithoutStep"
        in model.notes[1]
    )
    assert "line 3: element Unheard is not known." in model.notes[0]


# The file as such -----------------------------------------------------------------------------------------------------


def test_a_malformed_manifest_is_left_aside_with_its_line(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", members={EXTRA: b"<a>\n<b></a>"})
    assert f"{path}/{EXTRA}, line 2, column " in problem(path)
    assert "malformed XML" in problem(path)
    assert model_of(path).events == ()


def test_two_manifests_for_one_layered_standard_are_left_aside(tmp_path: Path) -> None:
    adopted = ATTRIBUTES.replace("org.fmimaster", "org.example")
    other = EXTRA.replace("org.fmimaster", "org.example")
    path = event_fmu(tmp_path / "a.fmu", members={other: manifest(attributes=adopted)})
    model = model_of(path)
    assert model.events == ()
    assert len(model.layered_standards) == 2
    for standard in model.layered_standards:
        [found] = standard.problems
        assert "several manifests for one layered standard: extra/org.ex" in found


def test_a_manifest_without_name_is_left_aside(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", members={EXTRA: b"<fmiLayeredStandardManifest/>"})
    assert 'has no name. Expected the attribute fmi-ls-name="org.fmim' in problem(path)


def test_a_version_must_have_three_numbers(tmp_path: Path) -> None:
    odd = manifest(attributes=ATTRIBUTES.replace("0.2.0", "one"))
    path = event_fmu(tmp_path / "a.fmu", members={EXTRA: odd})
    assert "line 2: fmi-ls-version is 'one'. Expected major.minor" in problem(path)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    inside = event("", 'scope="shared"') + "\n" + '<Policy/>\n<LookAhead next="lookahead"/>'
    found = problems(tmp_path, inside)
    assert [f[:6] for f in found] == ["line 3", *["line 4"] * 3, "line 5"]
    assert "attribute 'parameter' of Policy is missing" in found[1]


def test_misspelt_elements_and_attributes_are_told(tmp_path: Path) -> None:
    inside = event('<Indicater name="x"/><Indicator nam="x" name="x"/>') + "<Polcy/>"
    found = problems(tmp_path, inside)
    assert "element Polcy is not known. Did you mean 'Policy'?" in found[0]
    assert (
        "element Indicater is not known. Did you mean 'Indicator'? Expected Indicator, Payload"
        in found[1]
    )
    assert "attribute 'nam' of Indicator is not known. Did you mean 'name'?" in found[2]


# Rule 1: indicators ---------------------------------------------------------------------------------------------------


def test_an_event_needs_an_indicator(tmp_path: Path) -> None:
    [found] = problems(tmp_path, event(""))
    assert found == "line 3: Event 'e' has no Indicator. Expected at least 1."


def test_an_indicator_that_does_not_exist_is_told_with_the_near_ones(tmp_path: Path) -> None:
    [found] = problems(tmp_path, event('\n<Indicator name="ceiling.z[3]"/>'))
    assert found.startswith(
        "line 4: Indicator of event 'e': name='ceiling.z[3]' is not a variable of the FMU. Did you mean 'ceiling.z[2]'"
    )
    assert found.endswith(
        "Expected a continuous Float64 output, or such a local variable; correct the name."
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("u_x", "a continuous Float64 input"),
        ("x_rounded", "a discrete Float64 output"),
        ("collision.n", "a discrete Int32 input"),
    ],
)
def test_an_indicator_is_a_continuous_output_or_local(name: str, kind: str, tmp_path: Path) -> None:
    [found] = problems(tmp_path, event(f'<Indicator name="{name}"/>'))
    assert f"Indicator of event 'e': name='{name}' is {kind}. Expected a continuous" in found


def test_a_local_that_can_be_read_may_be_an_indicator(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", event('<Indicator name="force"/>'))
    assert model_of(path).events[0].indicators == (Indicator("force"),)


def test_an_indicator_may_have_a_tolerance_relative_to_its_nominal_value(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", event('<Indicator name="x" tolerance="1e-6"/>'))
    assert model_of(path).events[0].indicators == (Indicator("x", tolerance=1e-6),)
    [found] = problems(tmp_path, event('<Indicator name="x" tolerance="0"/>'))
    assert "is '0', expected a number above 0 and up to 1" in found


# Rule 2: scope --------------------------------------------------------------------------------------------------------


PAYLOAD = '<Payload output="v" input="collision.w"/>'
CONTACT = (
    '<Contact velocity="v" direction="-1" inverseMass="m" restitution="e" impulse="p" force="f"/>'
)


@pytest.mark.parametrize("scope", ["private", "coupled"])
@pytest.mark.parametrize(("inside", "what"), [(PAYLOAD, "Payload"), (CONTACT, "Contact")])
def test_an_event_that_is_not_shared_has_no_payload_and_no_contact(
    scope: str, inside: str, what: str, tmp_path: Path
) -> None:
    [found] = problems(tmp_path, event('<Indicator name="x"/>' + inside, f'scope="{scope}"'))
    assert (
        f"event 'e' is {scope} and has a {what}, but there is no other member. Remove the {what}, or make the event shared"
        in found
    )


def test_a_coupled_event_depends_on_others_and_resets_one(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", event(attributes='scope="coupled"'))
    assert model_of(path).events == (
        EventDeclaration("e", Scope.COUPLED, (Indicator("ceiling.z[1]"),)),
    )


MODES = VARIABLES + "sliding Boolean output discrete\nsticking Boolean local discrete\n"


@pytest.mark.parametrize("version", ["2.0", "3.0"])
@pytest.mark.parametrize("name", ["sliding", "sticking"])
def test_an_event_may_say_whether_it_can_occur(name: str, version: str, tmp_path: Path) -> None:
    inside = event(attributes=f'scope="private" active="{name}"')
    path = event_fmu(tmp_path / "a.fmu", inside, version=version, variables=MODES)
    assert model_of(path).events[0].active == name


def test_what_says_whether_an_event_can_occur_is_boolean(tmp_path: Path) -> None:
    [found] = problems(tmp_path, event(attributes='scope="private" active="x"'))
    assert "active='x' is a continuous Float64 output. Expected a Boolean output" in found


def test_a_private_event_may_have_a_trigger(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", event(attributes='scope="private" trigger="ceiling.in"'))
    assert model_of(path).events[0].trigger == "ceiling.in"


def test_a_scope_is_one_of_three(tmp_path: Path) -> None:
    [found] = problems(tmp_path, event(attributes='scope="common"'))
    assert found == (
        "line 3: attribute 'scope' of Event 'e' is 'common', expected private or coupled or shared."
    )


# Rule 3: announcement and trigger -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "attribute", "name", "told"),
    [
        ("3.0", "announce", "collision.in", "a discrete Clock input. Expected an output Clock"),
        ("3.0", "trigger", "collision.out", "a discrete Clock output. Expected an input Clock"),
        ("3.0", "trigger", "collision.w", "a discrete Float64 input. Expected an input Clock, or"),
        ("2.0", "announce", "x", "a continuous Float64 output. Expected an Integer output that"),
        ("2.0", "trigger", "collision.out", "a discrete Int32 output. Expected an Integer input"),
        ("2.0", "trigger", "collison.in", "not a variable of the FMU. Did you mean 'collision.in"),
    ],
)
def test_announcement_and_trigger_are_clocks_or_counters(
    version: str, attribute: str, name: str, told: str, tmp_path: Path
) -> None:
    inside = event(attributes=f'scope="shared" {attribute}="{name}"')
    [found] = problems(tmp_path, inside, version)
    assert f"line 3: event 'e': {attribute}='{name}' is {told}" in found


def test_a_trigger_of_version_0_1_lets_right_limits_be_read_without_a_step(tmp_path: Path) -> None:
    said = EVENTS.replace(' rightLimitsWithoutStep="true"', "")
    for version, expected in (("0.1.0", True), ("0.2.0", False)):
        text = manifest(said, ATTRIBUTES.replace("0.2.0", version))
        model = model_of(event_fmu(tmp_path / "a.fmu", members={EXTRA: text}))
        assert [e.right_limits_without_step for e in model.events] == [False, expected]


def test_fmi_3_may_count_events(tmp_path: Path) -> None:
    inside = event(attributes='scope="shared" trigger="collision.n"')
    assert model_of(event_fmu(tmp_path / "a.fmu", inside)).events[0].trigger == "collision.n"


# Rule 4: payload ------------------------------------------------------------------------------------------------------


def test_a_payload_goes_from_an_output_to_an_input(tmp_path: Path) -> None:
    inside = '<Indicator name="x"/><Payload output="u_v" input="x"/>'
    found = problems(tmp_path, event(inside, 'scope="shared"'))
    assert (
        "Payload of event 'e': output='u_v' is a continuous Float64 input. Expected an output"
        in found[0]
    )
    assert (
        "Payload of event 'e': input='x' is a continuous Float64 output. Expected an input"
        in found[1]
    )


def test_an_input_takes_one_payload_of_an_event(tmp_path: Path) -> None:
    inside = '<Indicator name="x"/>' + '<Payload output="v" input="collision.w"/>' * 2
    [found] = problems(tmp_path, event(inside, 'scope="shared"'))
    assert "event 'e' has several Payloads for the input 'collision.w'. Give each its own" in found


# Rule 5: derivatives --------------------------------------------------------------------------------------------------


def test_a_local_variable_serves_as_a_derivative(tmp_path: Path) -> None:
    [declared] = model_of(
        event_fmu(tmp_path / "a.fmu", event('<Indicator name="x" derivative="force"/>'))
    ).events
    assert declared.indicators == (Indicator("x", "force"),)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("u_x", "a continuous Float64 input"), ("x_rounded", "a discrete Float64 output")],
)
def test_a_derivative_is_a_continuous_output_or_local(name: str, kind: str, tmp_path: Path) -> None:
    [found] = problems(tmp_path, event(f'<Indicator name="x" derivative="{name}"/>'))
    assert f"Indicator of event 'e': derivative='{name}' is {kind}. Expected a continuous" in found


# Rule 6: look-ahead, and the policy -----------------------------------------------------------------------------------


def test_look_ahead_is_an_output(tmp_path: Path) -> None:
    [found] = problems(tmp_path, '<LookAhead next="lookahead"/>')
    assert (
        "LookAhead: next='lookahead' is not a variable of the FMU. Did you mean 'lookahead.next'"
        in found
    )


def test_an_fmu_has_one_policy_and_one_look_ahead(tmp_path: Path) -> None:
    inside = '<LookAhead next="lookahead.next"/>' * 2
    [found] = problems(tmp_path, inside)
    assert "there is a second LookAhead. Expected one; remove the others" in found


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ('parameter="u_x" execute="0" announce="1"', "Expected an integer parameter"),
        ('parameter="eventPolicy" execute="0"', "attribute 'announce' of Policy is missing"),
        ('parameter="eventPolicy" execute="no" announce="1"', "'no', expected a whole number"),
        (
            'parameter="eventPolicy" execute="0" announce="0"',
            "two values of the Policy are the same",
        ),
    ],
)
def test_a_policy_is_a_parameter_with_two_or_three_values(
    policy: str, told: str, tmp_path: Path
) -> None:
    [found] = problems(tmp_path, f"<Policy {policy}/>")
    assert told in found


def test_a_policy_starts_with_execution(tmp_path: Path) -> None:
    """Importers that do not know the manifest would miss the events."""
    [found] = problems(tmp_path, '<Policy parameter="eventPolicy" execute="1" announce="0"/>')
    assert "line 3: 'eventPolicy' starts at 0, but execute is 1: importers that do not" in found


# Clocks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attribute", ["announce", "trigger"])
def test_a_clock_of_an_event_is_triggered(attribute: str, tmp_path: Path) -> None:
    name = {"announce": "collision.out", "trigger": "collision.in"}[attribute]
    variables = "\n".join(
        line + " intervalVariability=constant intervalDecimal=1" if line.startswith(name) else line
        for line in VARIABLES.splitlines()
    )
    inside = event(attributes=f'{attribute}="{name}" scope="shared"')
    [found] = problems(tmp_path, inside, variables=variables)
    assert f"event 'e': {attribute}='{name}' ticks at intervals. Expected a triggered" in found


@pytest.mark.parametrize(
    ("variability", "told"),
    [
        ("continuous start=0", "is continuous"),
        ("discrete start=0 clocks=ceiling.in", "has the Clock "),
    ],
)
def test_the_trigger_clocks_its_payload(variability: str, told: str, tmp_path: Path) -> None:
    variables = VARIABLES.replace(
        "collision.w    Float64 input     discrete   start=0",
        f"collision.w    Float64 input     {variability}",
    )
    inside = event(
        '<Indicator name="x"/><Payload output="v" input="collision.w"/>',
        'scope="shared" trigger="collision.in"',
    )
    [found] = problems(tmp_path, inside, variables=variables)
    assert f"Payload of event 'e': input='collision.w' {told}" in found


# Input polynomials ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        (
            'input="x" coefficients="u_poly"',
            "input='x' is a continuous Float64 output. Expected a con",
        ),
        (
            'input="u_x" coefficients="u_pol"',
            "no 'u_pol[0]'. Did you mean 'u_poly'? Expected an array",
        ),
        ('input="u_x" coefficients="x"', "'x' has 0 dimensions. Expected an array with one"),
        (
            'input="u_x" coefficients="u_poly" value="5"',
            "has one of parameter and value. Expected both",
        ),
        ('input="u_x" coefficients="collision.dz"', "is not a variable of the FMU"),
    ],
)
def test_an_input_polynomial_has_inputs_for_its_coefficients(
    attributes: str, told: str, tmp_path: Path
) -> None:
    assert told in problems(tmp_path, f"<InputPolynomial {attributes}/>")[0]


def test_an_input_has_one_polynomial(tmp_path: Path) -> None:
    first = '<InputPolynomial input="u_x" derivative="u_v" coefficients="u_poly"/>'
    [found] = problems(tmp_path, first + '<InputPolynomial input="u_v" coefficients="u_poly"/>')
    assert "there is an InputPolynomial for 'u_v' already" in found


OF_POLYNOMIALS = "extra/org.fmimaster.fmi-ls-input-polynomials/fmi-ls-manifest.xml"


@pytest.mark.parametrize("version", ["2.0", "3.0"])
def test_input_polynomials_have_a_manifest_of_their_own(version: str, tmp_path: Path) -> None:
    text = write_polynomials([POLYNOMIAL])
    members = {OF_POLYNOMIALS: text}
    model = model_of(event_fmu(tmp_path / "a.fmu", None, version=version, members=members))
    assert model.input_polynomials == (POLYNOMIAL,)
    assert write_polynomials(model.input_polynomials) == text
    assert [s.name for s in model.layered_standards if s.known] == [
        "org.fmimaster.fmi-ls-input-polynomials"
    ]


def test_an_input_has_no_polynomial_in_both_manifests(tmp_path: Path) -> None:
    members = {OF_POLYNOMIALS: write_polynomials([POLYNOMIAL])}
    model = model_of(event_fmu(tmp_path / "a.fmu", members=members))
    assert model.input_polynomials == (POLYNOMIAL,)
    assert model.events == SAID.events
    [wrong] = [s for s in model.layered_standards if s.problems]
    assert wrong.name == "org.fmimaster.fmi-ls-input-polynomials"
    assert "there is an InputPolynomial for 'u_x' already" in wrong.problems[0]


def test_a_later_major_version_of_input_polynomials_is_left_aside(tmp_path: Path) -> None:
    text = write_polynomials([POLYNOMIAL]).replace(b'fmi-ls-version="0', b'fmi-ls-version="7')
    model = model_of(event_fmu(tmp_path / "a.fmu", None, members={OF_POLYNOMIALS: text}))
    assert model.input_polynomials == ()
    [standard] = model.layered_standards
    assert "fmi-ls-input-polynomials has version 7.3, expected 0.x" in standard.problems[0]


# Rule 8: several events -----------------------------------------------------------------------------------------------


def test_no_variable_triggers_two_events(tmp_path: Path) -> None:
    one = event(attributes='scope="shared" trigger="collision.in"')
    [found] = problems(tmp_path, one + one.replace('"e"', '"f"'))
    assert "event 'f' has the trigger 'collision.in', which is that of 'e'. Give each" in found


def test_events_have_different_names(tmp_path: Path) -> None:
    [found] = problems(tmp_path, event() * 2)
    assert "there is an event 'e' already. Give each its own name" in found


# Writing --------------------------------------------------------------------------------------------------------------


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    text = write_manifest(SAID)
    model = model_of(event_fmu(tmp_path / "a.fmu", members={EXTRA: text}))
    read = EventManifest(model.events, model.event_policy, model.look_ahead)
    assert read == replace(SAID, input_polynomials=())
    assert model.input_polynomials == ()
    assert write_manifest(read) == text


def test_a_written_manifest_is_the_one_of_the_specification() -> None:
    blanks = str.maketrans("", "", " \n")
    events = EVENTS[: EVENTS.index("<InputPolynomial")]
    assert write_manifest(SAID).decode().translate(blanks) == (
        manifest(events, ATTRIBUTES.replace("0.2.0", "0.3.0"))
        .decode()
        .replace('encoding="UTF-8"', "encoding='UTF-8'")
        .replace('version="1.0"', "version='1.0'")
        .translate(blanks)
    )


def test_an_array_is_written_by_its_name() -> None:
    text = write_polynomials([InputPolynomial("u", ("c",))])
    assert b'<InputPolynomial input="u" coefficients="c"/>' in text


def test_coefficients_without_a_common_name_cannot_be_written() -> None:
    odd = replace(POLYNOMIAL, coefficients=("a", "b"))
    with pytest.raises(OptionError, match=r"have no common name. Expected one array, or scalars"):
        write_polynomials([odd])


def test_a_manifest_is_added_to_a_copy_of_an_fmu(tmp_path: Path) -> None:
    before = event_fmu(tmp_path / "a.fmu", None, members={"resources/r.txt": b"kept"})
    content = before.read_bytes()
    after = add_manifest(before, write_manifest(SAID), tmp_path / "b.fmu")
    assert model_of(after).events == SAID.events
    assert before.read_bytes() == content
    fmu = FmuFile(Source(after))
    assert (fmu.folder / "resources" / "r.txt").read_bytes() == b"kept"
    fmu.close()


def test_adding_replaces_a_manifest_of_the_same_name(tmp_path: Path) -> None:
    before = event_fmu(tmp_path / "a.fmu", event())
    after = add_manifest(before, write_manifest(SAID), tmp_path / "b.fmu")
    assert model_of(after).events == SAID.events


def test_a_manifest_that_does_not_fit_is_not_added(tmp_path: Path) -> None:
    before = event_fmu(tmp_path / "a.fmu", None)
    with pytest.raises(ModelError, match=r"LookAhead: next='no' is not a variable"):
        add_manifest(before, write_manifest(EventManifest(look_ahead="no")), tmp_path / "b.fmu")
    assert [p.name for p in tmp_path.iterdir()] == ["a.fmu"]


def test_the_copy_is_not_the_fmu_itself(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", None)
    with pytest.raises(FileError, match=r"is the FMU itself. Choose another name"):
        add_manifest(path, write_manifest(SAID), path)


def test_a_manifest_without_a_name_is_not_added(tmp_path: Path) -> None:
    path = event_fmu(tmp_path / "a.fmu", None)
    with pytest.raises(ModelError, match=r"The manifest has the name None. Expected an attribute"):
        add_manifest(path, b"<fmiLayeredStandardManifest/>", tmp_path / "b.fmu")


def test_the_reason_of_several_problems_is_the_first_with_a_count(tmp_path: Path) -> None:
    more = '\n<LookAhead next="no"/>'
    path = event_fmu(tmp_path / "a.fmu", event("") + more)
    [standard] = model_of(path).layered_standards
    assert len(standard.problems) == 2
    assert standard.why_not_used == f"{standard.problems[0]} There is 1 more problem."
