"""The border at which a model description becomes a Model: what is read, what is refused, what is ignored."""

from __future__ import annotations

import re
import zipfile
from fractions import Fraction
from pathlib import Path

import pytest
from fmpy.model_description import read_model_description

from fmimaster.base.errors import ModelError
from fmimaster.base.installation import reference_names, reference_path
from fmimaster.fmu.description.model_description import read_model
from fmimaster.system.clocks import ClockAttributes, IntervalVariability
from fmimaster.system.declarations import Capabilities, Experiment
from fmimaster.system.model import DataType, DependencyKind, Initial, Model, Unit, Variability

VARIABLES = """
<Float64 name="time" valueReference="0" causality="independent"/>
<Float64 name="u" valueReference="1" causality="input" start="0" intermediateUpdate="true">
  <Alias name="u again"/></Float64>
<Float64 name="before" valueReference="2" variability="discrete" clocks="4"/>
<Float64 name="x" valueReference="3" causality="output" variability="discrete" clocks="4 5" previous="2"/>
<Clock name="decimal" valueReference="4" causality="input" intervalVariability="fixed" intervalDecimal="0.1"
  shiftDecimal="2.5e-1" priority="2"/>
<Clock name="counted" valueReference="5" causality="input" intervalVariability="changing" resolution="3"
  intervalCounter="1" shiftCounter="2" intervalDecimal="0.33" supportsFraction="true" canBeDeactivated="true">
  <Alias name="counted again"/></Clock>
<Clock name="triggered" valueReference="6" causality="output" intervalVariability="triggered"/>
"""
STRUCTURE = '<Output valueReference="3" dependencies="1 2" dependenciesKind="fixed constant"/>'


def write(folder: Path, variables: str, structure: str = "", attributes: str = "") -> Path:
    (folder / "modelDescription.xml").write_text(
        f"""<fmiModelDescription fmiVersion="3.0" modelName="m" instantiationToken="x">
<CoSimulation modelIdentifier="m" {attributes}/>
<ModelVariables>{variables}</ModelVariables><ModelStructure>{structure}</ModelStructure></fmiModelDescription>""",
        encoding="utf-8",
    )
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return read_model(write(tmp_path, VARIABLES, STRUCTURE), "m.fmu")


def clock(model: Model, name: str) -> ClockAttributes | None:
    variable = model.variable(name)
    assert variable is not None
    return variable.clock


def test_intervals_of_clocks_are_exact(model: Model) -> None:
    assert clock(model, "decimal") == ClockAttributes(
        IntervalVariability.FIXED, Fraction(1, 10), Fraction(1, 4), priority=2
    )


def test_a_counter_with_its_resolution_goes_before_a_decimal_number(model: Model) -> None:
    counted = clock(model, "counted")
    assert counted == ClockAttributes(
        IntervalVariability.CHANGING,
        Fraction(1, 3),
        Fraction(2, 3),
        resolution=3,
        supports_fraction=True,
        can_be_deactivated=True,
    )
    assert clock(model, "counted again") == counted


def test_a_triggered_clock_has_no_interval(model: Model) -> None:
    triggered = clock(model, "triggered")
    assert triggered == ClockAttributes()
    assert triggered is not None
    assert not triggered.is_time_based
    assert clock(model, "u") is None


def test_clocked_variables_know_their_clocks_and_previous_values(model: Model) -> None:
    x = model.variable("x")
    assert x is not None
    assert (x.clocks, x.previous) == (("decimal", "counted"), "before")


def test_inputs_of_intermediate_update_mode_are_known_but_not_their_aliases(model: Model) -> None:
    assert [v.name for v in model.variables if v.intermediate_update] == ["u"]


def test_kinds_of_dependencies_on_inputs_are_known(model: Model) -> None:
    assert model.dependency_kinds == {"x": {"u": DependencyKind.FIXED}}


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (
            'intervalDecimal="1/3"',
            "attribute 'intervalDecimal' of Clock 'c' is '1/3', expected a number",
        ),
        ('intervalDecimal="1e-999999999"', "expected a number"),
        ('intervalDecimal="1e999999999"', "expected a number"),
        ('intervalDecimal="1e999"', "has an interval that is not above 0 s and finite"),
        ('intervalDecimal="0"', "has an interval that is not above 0 s and finite"),
        ('shiftDecimal="-1"', "or a shift below 0 s"),
        ('priority="high"', "attribute 'priority' of Clock 'c' is 'high', expected a whole number"),
        ('resolution="0.1"', "expected a whole number"),
        ('resolution="0" intervalCounter="1"', "expected a whole number from 1 to"),
        ('clocks="7"', "clocks of Clock 'c' refers to '7', but there is no such variable"),
    ],
)
def test_a_clock_that_cannot_be_understood_is_refused(
    tmp_path: Path, attribute: str, words: str
) -> None:
    variability = 'causality="input" intervalVariability="fixed"'
    text = f'<Clock name="c" valueReference="1" {variability} {attribute}/>'
    with pytest.raises(ModelError, match=f"line 3: .*{words}"):
        read_model(write(tmp_path, text), "m.fmu")


def test_an_unknown_variability_of_an_interval_is_refused(tmp_path: Path) -> None:
    text = '<Clock name="c" valueReference="1" intervalVariability="often"/>'
    with pytest.raises(
        ModelError, match=r"of Clock 'c' is 'often', expected one of constant, fixed"
    ):
        read_model(write(tmp_path, text), "m.fmu")


# Both versions --------------------------------------------------------------------------------------------------------


def write_fmi2(folder: Path, variables: str, structure: str = "") -> Path:
    """Each variable as ``name|attributes|<Real .../>``, one in a line."""
    lines: list[str] = []
    for line in variables.strip().splitlines():
        name, attributes, kind = line.strip().split("|")
        reference = "" if "valueReference" in attributes else f'valueReference="{len(lines)}"'
        lines.append(
            f'<ScalarVariable name="{name}" {reference} {attributes}>{kind}</ScalarVariable>'
        )
    (folder / "modelDescription.xml").write_text(
        f"""<fmiModelDescription fmiVersion="2.0" modelName="m" guid="x">
<CoSimulation modelIdentifier="m"/>
<ModelVariables>
{chr(10).join(lines)}
</ModelVariables><ModelStructure>{structure}</ModelStructure></fmiModelDescription>""",
        encoding="utf-8",
    )
    return folder


# fmpy does not know types of clocks
READ_BY_FMPY = [
    n for n in reference_names() if n.endswith(".fmu") and not n.endswith("Partitions.fmu")
]


@pytest.mark.parametrize("name", READ_BY_FMPY)
def test_all_is_read_as_fmpy_reads_it(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(reference_path(name)) as archive:
        archive.extract("modelDescription.xml", tmp_path)
    ours, theirs = read_model(tmp_path, name), read_model_description(tmp_path, validate=False)
    is_fmi2 = theirs.fmiVersion == "2.0"
    enumeration = "Int32" if is_fmi2 else "Int64"
    kinds = {"Real": "Float64", "Integer": "Int32", "Enumeration": enumeration}
    assert [
        (v.name, v.value_reference, v.type.value, v.causality.value, v.variability.value)
        for v in ours.variables
    ] == [
        (v.name, v.valueReference, kinds.get(v.type, v.type), v.causality, v.variability)
        for v in theirs.modelVariables
    ]
    assert [
        (v.initial.value if v.initial else None, v.shape, v.unit.name if v.unit else None)
        for v in ours.variables
    ] == [
        # fmpy takes "exact" for inputs; FMI 2.0 does not define it for them
        (None if is_fmi2 and v.causality == "input" else v.initial, v.shape, v.unit)
        for v in theirs.modelVariables
    ]
    assert [v.derivative_of for v in ours.variables] == [
        v.derivative.name if v.derivative else None for v in theirs.modelVariables
    ]
    assert {u.variable.name for u in theirs.outputs} == set(ours.dependencies)
    assert ours.notes == ()


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ('<Float64 name="x"/>', "valueReference of Float64 'x' is missing"),
        ('<Float64 name="x" valueReference="-1"/>', "is '-1', expected a whole number from 0 to"),
        ('<Float64 name="x" valueReference="4294967296"/>', "expected a whole number from 0 to"),
        ('<Float64 name="x" valueReference="one"/>', "is 'one', expected a whole number"),
        ('<Float65 name="x" valueReference="1"/>', "Float65 'x' has no type, expected one of Flo"),
        ('<Float64 name="x" valueReference="1" causality="in"/>', "causality of .* is 'in', expec"),
        ('<Float64 name="x" valueReference="1" variability="no"/>', "variability of .* is 'no'"),
        ('<Float64 name="x" valueReference="1" initial="no"/>', "initial of .* is 'no', expected"),
        (
            '<Float64 name="x" valueReference="1" clocks="1"/>',
            "names Float64 'x', which is not a clo",
        ),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, variable: str, words: str
) -> None:
    with pytest.raises(ModelError, match=rf"m\.fmu/modelDescription\.xml, line 4: .*{words}"):
        read_model(write(tmp_path, f"\n{variable}"), "m.fmu")


def test_each_problem_is_reported_and_many_are_counted(tmp_path: Path) -> None:
    variables = "".join(f'\n<Float64 name="x{i}"/>' for i in range(50))
    with pytest.raises(ModelError) as caught:
        read_model(write(tmp_path, variables), "m.fmu")
    assert len(caught.value.problems) == 21
    assert caught.value.problems[-1] == "There are 30 more problems."


DIMENSION = '<Float64 name="x" valueReference="1"><Dimension {}/></Float64>'
HOLDER = '<UInt64 name="n" valueReference="2" {}/>'


@pytest.mark.parametrize(
    ("dimension", "holder", "words"),
    [
        ('start="-1"', "", "a dimension of Float64 'x' is '-1'. Expected a whole number"),
        ('start="many"', "", "a dimension of Float64 'x' is 'many'"),
        ("", "", "a dimension of Float64 'x' is ''"),
        ('start="9223372036854775808"', "", "has more than 10000000 elements, shape [92233"),
        (f'start="{2**64}"', "", "a dimension of Float64 'x' is '18446744073709551616'"),
        ('valueReference="7"', "", "of Float64 'x' refers to '7', but there is no such variable"),
        ('valueReference="2"', 'variability="fixed" causality="parameter"', "by UInt64 'n'. Expec"),
        ('valueReference="2"', 'causality="structuralParameter" start="a"', "by UInt64 'n'. Expec"),
        ('valueReference="1"', "", "by Float64 'x'. Expected a whole number"),
        ('valueReference="3"', "", "by UInt64 'array'. Expected a whole number"),
    ],
)
def test_a_dimension_that_cannot_be_is_refused(
    tmp_path: Path, dimension: str, holder: str, words: str
) -> None:
    text = DIMENSION.format(dimension) + (HOLDER.format(holder) if holder else "")
    text += """<UInt64 name="array" valueReference="3" causality="structuralParameter" start="1">
      <Dimension start="1"/></UInt64>"""
    with pytest.raises(ModelError, match=re.escape(words)):
        read_model(write(tmp_path, text), "m.fmu")


def test_all_arrays_together_are_limited(tmp_path: Path) -> None:
    big = '<Float64 name="{0}" valueReference="{0}"><Dimension start="9000000"/></Float64>'
    with pytest.raises(ModelError, match="all variables together have more than 10000000 elements"):
        read_model(write(tmp_path, big.format(1) + big.format(2)), "m.fmu")


def test_a_dimension_can_refer_to_a_constant(tmp_path: Path) -> None:
    constant = HOLDER.format('causality="local" variability="constant" start="3"')
    model = read_model(write(tmp_path, DIMENSION.format('valueReference="2"') + constant), "m.fmu")
    x = model.resized({}).variable("x")
    assert x is not None
    assert (x.shape, x.dimensions) == ((3,), (3,))


def test_two_outputs_of_one_name_are_refused(tmp_path: Path) -> None:
    variables = """y|causality="output"|<Real/>
        y|causality="output"|<Real/>"""
    words = r"line 5: ScalarVariable 'y' has the name of another variable \(.*line 4\)"
    with pytest.raises(ModelError, match=words):
        read_model(write_fmi2(tmp_path, variables), "m.fmu")


def test_an_alias_with_the_name_of_an_output_is_refused(tmp_path: Path) -> None:
    variables = """<Float64 name="y" valueReference="1" causality="output"/>
<Float64 name="z" valueReference="2"><Alias name="y"/></Float64>"""
    with pytest.raises(ModelError, match="line 4: Alias 'y' has the name of another variable"):
        read_model(write(tmp_path, variables), "m.fmu")


def test_of_two_local_variables_of_one_name_the_first_counts_and_it_is_noted(
    tmp_path: Path,
) -> None:
    model = read_model(write_fmi2(tmp_path, "x||<Real/>\nx||<Integer/>"), "m.fmu")
    assert [v.type for v in model.variables] == [DataType.FLOAT64]
    assert model.notes == (
        "m.fmu/modelDescription.xml, line 5: a variable has the name of another one; the first one is used: 'x' "
        "(m.fmu/modelDescription.xml, line 4).",
    )


def test_a_value_reference_of_two_variables_of_fmi_3_is_noted(tmp_path: Path) -> None:
    variables = '<Float64 name="a" valueReference="1"/><Int32 name="b" valueReference="1"/>'
    [note] = read_model(write(tmp_path, variables), "m.fmu").notes
    assert "two variables have one value reference" in note
    assert "1 of 'a' and 'b'" in note


def test_a_value_reference_of_two_variables_of_fmi_2_is_an_alias(tmp_path: Path) -> None:
    variables = """a|valueReference="1"|<Real/>
        b|valueReference="1"|<Real/>"""
    model = read_model(write_fmi2(tmp_path, variables), "m.fmu")
    assert [v.value_reference for v in model.variables] == [1, 1]
    assert model.notes == ()


@pytest.mark.parametrize(
    ("variable", "note"),
    [
        ("x||<Real nominal='0'/>", "nominal is not a finite number other than 0 and is ignored"),
        ("x||<Real nominal='INF'/>", "nominal is not a finite number other than 0 and is ignored"),
        ("x||<Real min='low' max='1'/>", "min is not a number and is ignored: 'x' ('low')"),
        ("x||<Real derivative='0'/>", "derivative refers to a variable that does not exist"),
        ("x||<Real derivative='2'/>", "derivative refers to a variable that does not exist"),
        ("x||<Real declaredType='T'/>", "declaredType is not defined and is ignored: 'x' ('T')"),
        ("x|causality='input' variability='constant'|<Real/>", "cannot be combined with variab"),
        ("x|variability=''|<Real/>", "variability is empty and is treated as missing: 'x'"),
    ],
)
def test_what_can_be_left_aside_is_noted_and_the_fmu_is_read(
    tmp_path: Path, variable: str, note: str
) -> None:
    model = read_model(write_fmi2(tmp_path, variable), "m.fmu")
    assert len(model.notes) == 1
    assert model.notes[0].startswith("m.fmu/modelDescription.xml, line 4: ")
    assert note in model.notes[0]
    x = model.variable("x")
    assert x is not None
    assert (x.start, x.nominal, x.min, x.derivative_of) == (None, 1.0, None, None)


@pytest.mark.parametrize(
    ("kind", "start", "expected"),
    [
        ("Real", "zero", "Float64"),
        ("Integer", "1.5", "Int32"),
        ("Integer", "2147483648", "Int32"),
        ("Boolean", "yes", "Boolean"),
    ],
)
def test_a_start_value_that_is_none_is_refused_with_its_place(
    tmp_path: Path, kind: str, start: str, expected: str
) -> None:
    folder = write_fmi2(tmp_path, f"x||<{kind} start='{start}'/>")
    with pytest.raises(ModelError) as error:
        read_model(folder, "m.fmu")
    assert str(error.value) == (
        f"m.fmu/modelDescription.xml, line 4: start of ScalarVariable 'x' is '{start}', expected a value of type "
        f"{expected}."
    )


@pytest.mark.parametrize(
    ("variable", "words"),
    [
        ('<Float64 name="x" valueReference="1" start="5" min="0" max="1"/>', "5, expected 0 to 1"),
        ('<Float32 name="x" valueReference="1" start="-1" min="0"/>', "-1, expected at least 0"),
        ('<Int64 name="x" valueReference="1" start="9" max="8"/>', "9, expected at most 8"),
        (
            '<Float64 name="x" valueReference="1" start="1 3 4" max="2"><Dimension start="3"/></Float64>',
            "3, expected at most 2",
        ),
    ],
)
def test_a_start_value_outside_of_min_and_max_is_noted(
    tmp_path: Path, variable: str, words: str
) -> None:
    model = read_model(write(tmp_path, variable), "m.fmu")
    [note] = model.notes
    assert note.endswith(f"start is outside of min and max: 'x' ({words}).")
    assert model.variables[0].start is not None


def test_a_start_value_on_a_limit_is_inside(tmp_path: Path) -> None:
    huge = 2**62 + 1  # no double, as limit and start alike
    variable = f'<Int64 name="x" valueReference="1" start="{huge}" min="{huge}" max="{huge}"/>'
    assert read_model(write(tmp_path, variable), "m.fmu").notes == ()


@pytest.mark.parametrize(
    ("version", "like"), [("3.0-beta.2", "3.0"), ("2.0-rc1", "2.0"), ("2.1", "2.0")]
)
def test_a_version_of_fmi_that_is_no_release_is_noted(
    tmp_path: Path, version: str, like: str
) -> None:
    path = write(tmp_path, "") / "modelDescription.xml"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"3.0"', f'"{version}"'), encoding="utf-8"
    )
    [note] = read_model(tmp_path, "m.fmu").notes
    assert f"fmiVersion is that of no release, so it is read like FMI {like}: '{version}'" in note


@pytest.mark.parametrize("version", ["3.0", "3.0.2", "3.1"])
def test_a_released_version_is_not_noted(tmp_path: Path, version: str) -> None:
    path = write(tmp_path, "") / "modelDescription.xml"
    path.write_text(
        path.read_text(encoding="utf-8").replace('"3.0"', f'"{version}"'), encoding="utf-8"
    )
    assert read_model(tmp_path, "m.fmu").notes == ()


def test_many_findings_of_one_kind_are_one_note(tmp_path: Path) -> None:
    variables = "\n".join(f"x{i}||<Real nominal='0'/>" for i in range(100))
    [note] = read_model(write_fmi2(tmp_path, variables), "m.fmu").notes
    assert note.startswith(
        "m.fmu/modelDescription.xml, line 4 and 99 more places: nominal is not a "
    )
    assert note.endswith("'x7' ('0') and 92 more.")


def test_the_start_value_of_an_array_has_one_number_for_each_element(tmp_path: Path) -> None:
    text = '<Float64 name="x" valueReference="1" start="1 2"><Dimension start="3"/></Float64>'
    [note] = read_model(write(tmp_path, text), "m.fmu").notes
    assert "start has another number of elements than the variable and is ignored" in note


@pytest.mark.parametrize("wrong_first", [True, False])
def test_an_attribute_counts_at_its_place_only(tmp_path: Path, wrong_first: bool) -> None:
    given = ["wrong|unit='m'|<Real/>", "right||<Real unit='m'/>"]
    lines = "\n".join(given if wrong_first else given[::-1])
    model = read_model(write_fmi2(tmp_path, lines), "m.fmu")
    assert {v.name: v.unit.name if v.unit else None for v in model.variables} == {
        "wrong": None,
        "right": "m",
    }


@pytest.mark.parametrize(
    ("definition", "unit"),
    [
        ('<BaseUnit m="1" factor="0.001"/>', Unit("u", (0, 1, 0, 0, 0, 0, 0, 0), 0.001)),
        ("", Unit("u")),
        ('<BaseUnit m="1" factor="0"/>', Unit("u")),
        ('<BaseUnit m="1" factor="INF"/>', Unit("u")),
        ('<BaseUnit m="1" offset="NaN"/>', Unit("u")),
        ('<BaseUnit m="0.5"/>', Unit("u")),
        ('<BaseUnit m="9223372036854775808"/>', Unit("u")),
    ],
)
def test_a_unit_that_cannot_be_one_is_not_converted(
    tmp_path: Path, definition: str, unit: Unit
) -> None:
    write(tmp_path, '<Float64 name="x" valueReference="1" unit="u"/>')
    file = tmp_path / "modelDescription.xml"
    units = f'<UnitDefinitions><Unit name="u">{definition}</Unit></UnitDefinitions>'
    file.write_text(
        file.read_text(encoding="utf-8").replace("<ModelVariables>", f"{units}<ModelVariables>"),
        encoding="utf-8",
    )
    model = read_model(tmp_path, "m.fmu")
    x = model.variable("x")
    assert x is not None
    assert x.unit == unit
    is_noted = bool(definition) and unit.exponents is None
    assert [
        n for n in model.notes if "a unit has an invalid definition and is not converted: 'u'" in n
    ] == list(model.notes)
    assert bool(model.notes) is is_noted


def test_items_of_an_enumeration_need_a_name_and_a_number(tmp_path: Path) -> None:
    write(tmp_path, '<Enumeration name="x" valueReference="1" declaredType="T"/>')
    items = '<Item name="a" value="1"/><Item name="b"/><Item name="c" value="x"/><Item value="4"/>'
    types = (
        f'<TypeDefinitions><EnumerationType name="T">{items}</EnumerationType></TypeDefinitions>'
    )
    file = tmp_path / "modelDescription.xml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("<ModelVariables>", f"{types}<ModelVariables>"),
        encoding="utf-8",
    )
    model = read_model(tmp_path, "m.fmu")
    x = model.variable("x")
    assert x is not None
    assert x.enumeration == {"a": 1}
    assert "and 2 more places: an item of an enumeration without a name or" in model.notes[0]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ('startTime="1" stopTime="2"', Experiment(1.0, 2.0)),
        ('startTime="1" stopTime="1"', Experiment(1.0, 1.0)),
        ('startTime="NaN"', Experiment()),
        ('startTime="-INF"', Experiment()),
        ('stopTime="1e400"', Experiment()),
        ('startTime="2" stopTime="1"', Experiment(2.0)),
        ('stepSize="0"', Experiment()),
        ('stepSize="-0.1"', Experiment()),
        ('stepSize="small"', Experiment()),
        ('tolerance="0"', Experiment()),
        ('tolerance="1e-400"', Experiment()),
    ],
)
def test_an_experiment_that_cannot_be_is_left_aside(
    tmp_path: Path, attributes: str, expected: Experiment
) -> None:
    file = write(tmp_path, "") / "modelDescription.xml"
    experiment = f"<DefaultExperiment {attributes}/><ModelVariables>"
    file.write_text(
        file.read_text(encoding="utf-8").replace("<ModelVariables>", experiment), encoding="utf-8"
    )
    model = read_model(tmp_path, "m.fmu")
    assert model.default_experiment == expected
    given = attributes.count("=")
    kept = sum(
        v is not None
        for v in (expected.start_time, expected.stop_time, expected.tolerance, expected.step_size)
    )
    assert len(model.notes) == given - kept


@pytest.mark.parametrize("value", ["false", "-1", "1.5", "9223372036854775808", "1e400"])
def test_a_capability_that_is_no_number_is_left_aside(tmp_path: Path, value: str) -> None:
    write(tmp_path, "", attributes=f'maxOutputDerivativeOrder="{value}" fixedInternalStepSize="-1"')
    model = read_model(tmp_path, "m.fmu")
    assert model.capabilities == Capabilities()
    assert len(model.notes) == 2


@pytest.mark.parametrize(
    "structure",
    [
        '<Outputs><Unknown index="2" dependencies="1  9"/></Outputs>',
        '<Outputs><Unknown index="2" dependencies="x"/></Outputs>',
        '<Outputs><Unknown index="0" dependencies=""/></Outputs>',
        '<Outputs><Unknown index="9" dependencies=""/></Outputs>',
        '<Outputs><Unknown index="" dependencies=""/></Outputs>',
        '<Outputs><Unknown dependencies=""/></Outputs>',
    ],
)
def test_a_dependency_on_nothing_counts_as_not_declared(tmp_path: Path, structure: str) -> None:
    variables = """u|causality="input"|<Real/>
        y|causality="output"|<Real/>"""
    model = read_model(write_fmi2(tmp_path, variables, structure), "m.fmu")
    assert model.dependencies == {"y": {"u"}}
    assert model.assumed_dependencies == {"y"}
    assert "that does not exist" in model.notes[0]


def test_blanks_between_dependencies_do_not_count(tmp_path: Path) -> None:
    variables = """u|causality="input"|<Real/>
        y|causality="output"|<Real/>
        x|causality="input"|<Real/>"""
    structure = '<Outputs><Unknown index="2" dependencies=" 1   1 "/></Outputs>'
    model = read_model(write_fmi2(tmp_path, variables, structure), "m.fmu")
    assert model.dependencies == {"y": {"u"}}
    assert model.notes == ()


@pytest.mark.parametrize("name", ["../x", "/lib/x", "a\\b", "..", ".", "C:x"])
def test_a_model_identifier_is_a_bare_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, "")
    file = tmp_path / "modelDescription.xml"
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            'modelIdentifier="m"', f'modelIdentifier="{name}"'
        ),
        encoding="utf-8",
    )
    with pytest.raises(
        ModelError, match=r"line 2: modelIdentifier of CoSimulation is .* any folder"
    ):
        read_model(tmp_path, "m.fmu")


def test_an_ordinary_parameter_without_variability_is_settable(tmp_path: Path) -> None:
    p = read_model(write_fmi2(tmp_path, "p|causality='parameter'|<Real/>"), "m.fmu").variable("p")
    assert p is not None
    assert (p.variability, p.initial) == (Variability.FIXED, Initial.EXACT)


@pytest.mark.parametrize(
    ("version", "types", "variables"),
    [
        (
            "2.0",
            '<SimpleType name="T"><Real unit="K" relativeQuantity="true"/></SimpleType>',
            '<ScalarVariable name="own" valueReference="0"><Real relativeQuantity="true"/></ScalarVariable>'
            '<ScalarVariable name="by type" valueReference="1"><Real declaredType="T"/></ScalarVariable>'
            '<ScalarVariable name="not" valueReference="2"><Real declaredType="T" relativeQuantity="false"/>'
            '</ScalarVariable><ScalarVariable name="none" valueReference="3"><Real/></ScalarVariable>',
        ),
        (
            "3.0",
            '<Float64Type name="T" unit="K" relativeQuantity="true"/>',
            '<Float64 name="own" valueReference="0" relativeQuantity="true"/>'
            '<Float64 name="by type" valueReference="1" declaredType="T"/>'
            '<Float64 name="not" valueReference="2" declaredType="T" relativeQuantity="false"/>'
            '<Float64 name="none" valueReference="3"/>',
        ),
    ],
)
def test_differences_are_known_from_the_variable_or_its_type(
    tmp_path: Path, version: str, types: str, variables: str
) -> None:
    path = write(tmp_path, variables) / "modelDescription.xml"
    text = path.read_text(encoding="utf-8").replace('"3.0"', f'"{version}"')
    text = text.replace("instantiationToken", "guid") if version == "2.0" else text
    definitions = f"<TypeDefinitions>{types}</TypeDefinitions><ModelVariables>"
    path.write_text(text.replace("<ModelVariables>", definitions), encoding="utf-8")
    found = read_model(tmp_path, "m.fmu").variables
    assert [v.name for v in found if v.relative_quantity] == ["own", "by type"]


# Dependencies: sequence.md 6.1 ----------------------------------------------------------------------------------------

FMI2 = """u|causality="input"|<Real/>
    p|causality="parameter"|<Real start="1"/>
    x||<Real/>
    der(x)||<Real derivative="3"/>
    y|causality="output"|<Real/>
    z|causality="output"|<Real/>"""
"""u 1, p 2, x 3, der(x) 4, y 5, z 6."""


def fmi2(tmp_path: Path, structure: str) -> Model:
    return read_model(write_fmi2(tmp_path, FMI2, structure), "m.fmu")


def test_an_output_that_depends_on_a_state_only_has_no_feedthrough(tmp_path: Path) -> None:
    """sequence.md 6.1: the output lists the state, not the input; the derivatives do not count."""
    outputs = '<Outputs><Unknown index="5" dependencies="3"/><Unknown index="6" dependencies="1 3"/></Outputs>'
    derivatives = '<Derivatives><Unknown index="4" dependencies="1 3"/></Derivatives>'
    model = fmi2(tmp_path, outputs + derivatives)
    assert model.dependencies == {"y": frozenset(), "z": {"u"}}
    assert model.assumed_dependencies == frozenset()


def test_a_state_that_is_initialized_from_an_input_makes_its_output_depend_on_it(
    tmp_path: Path,
) -> None:
    """loops.md 4, I1: whether the FMU lists the output among the InitialUnknowns, over the state or not, or forgets it."""
    outputs = '<Outputs><Unknown index="5" dependencies="3"/><Unknown index="6" dependencies=""/></Outputs>'
    for more in (
        "",
        '<Unknown index="5" dependencies="3"/>',
        '<Unknown index="5" dependencies="1"/>',
    ):
        unknowns = (
            f'<InitialUnknowns><Unknown index="3" dependencies="1 2"/>{more}</InitialUnknowns>'
        )
        model = fmi2(tmp_path, outputs + unknowns)
        assert model.dependencies["y"] == frozenset()
        assert model.initial_dependencies["y"] >= {"u"}
        assert model.initial_dependencies["z"] == frozenset()
        assert model.assumed_initial_dependencies == frozenset()


def test_an_output_depends_on_all_if_a_state_that_it_depends_on_does_not_declare_it(
    tmp_path: Path,
) -> None:
    outputs = '<Outputs><Unknown index="5" dependencies="3"/><Unknown index="6" dependencies=""/></Outputs>'
    model = fmi2(tmp_path, outputs + '<InitialUnknowns><Unknown index="3"/></InitialUnknowns>')
    assert model.initial_dependencies["y"] == {"u", "p"}
    assert "y" in model.assumed_initial_dependencies
    assert "z" not in model.assumed_initial_dependencies


def test_states_that_depend_on_each_other_end_the_search(tmp_path: Path) -> None:
    outputs = '<Outputs><Unknown index="5" dependencies="3"/><Unknown index="6" dependencies=""/></Outputs>'
    unknowns = '<Unknown index="3" dependencies="4"/><Unknown index="4" dependencies="3 1"/>'
    model = fmi2(tmp_path, f"{outputs}<InitialUnknowns>{unknowns}</InitialUnknowns>")
    assert model.initial_dependencies["y"] == {"u"}


def test_an_output_that_modelstructure_does_not_list_depends_on_all_inputs_which_is_noted(
    tmp_path: Path,
) -> None:
    """sequence.md 6.1: an FMU whose ModelStructure misses outputs is invalid; warn and assume that it depends on all."""
    model = fmi2(tmp_path, '<Outputs><Unknown index="6" dependencies=""/></Outputs>')
    assert model.dependencies == {"y": {"u"}, "z": frozenset()}
    assert model.assumed_dependencies == {"y"}
    [note] = model.notes
    assert "ModelStructure does not list all outputs" in note
    assert note.endswith("assumed to depend on all inputs: 'y'.")


def test_a_calculated_parameter_depends_on_parameters(tmp_path: Path) -> None:
    """loops.md 4, I3."""
    variables = """<Float64 name="p" valueReference="1" causality="parameter" variability="fixed" start="2"/>
        <Float64 name="q" valueReference="2" causality="calculatedParameter" variability="fixed"/>"""
    structure = '<InitialUnknown valueReference="2" dependencies="1"/>'
    model = read_model(write(tmp_path, variables, structure), "m.fmu")
    assert model.initial_dependencies == {"q": {"p"}}
    assert model.dependencies == {}


def test_of_kinds_only_constant_ones_count_before_the_initialization_is_complete(
    tmp_path: Path,
) -> None:
    """sequence.md 6.1."""
    variables = """<Float64 name="u" valueReference="1" causality="input" start="0"/>
        <Float64 name="w" valueReference="2" causality="input" start="0"/>
        <Float64 name="y" valueReference="3" causality="output"/>"""
    structure = '<Output valueReference="3" dependencies="1 2" dependenciesKind="constant fixed"/>'
    model = read_model(write(tmp_path, variables, structure), "m.fmu")
    kinds = {"u": DependencyKind.CONSTANT, "w": DependencyKind.FIXED}
    assert model.dependency_kinds == {"y": kinds}
    assert model.initial_dependency_kinds == {"y": {"u": DependencyKind.CONSTANT}}
    unknown = '<InitialUnknown valueReference="3" dependencies="1 2" dependenciesKind="dependent constant"/>'
    model = read_model(write(tmp_path, variables, structure + unknown), "m.fmu")
    assert model.initial_dependency_kinds == {"y": {"w": DependencyKind.CONSTANT}}


@pytest.mark.parametrize(("text", "expected"), [("", True), ("true", True), ("false", False)])
def test_inputs_may_be_set_repeatedly_unless_the_fmu_says_otherwise(
    tmp_path: Path, text: str, expected: bool
) -> None:
    attribute = f'canHandleMultipleSetPerTimeInstant="{text}"' if text else ""
    variables = f'<Float64 name="u" valueReference="1" causality="input" start="0" {attribute}/>'
    u = read_model(write(tmp_path, variables), "m.fmu").variable("u")
    assert u is not None
    assert u.can_be_set_repeatedly == expected
