"""C declarations and tables that build.py derives from a model's FMI 3.0 modelDescription.xml and manifest."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from fractions import Fraction

from description import (
    INPUT_DERIVATIVES,
    Event,
    Variable,
    c_name,
    events,
    fmi2_variables,
    has_model_exchange,
    main_interface,
    state_derivatives,
    variables,
)

C_TYPES = {
    "Float32": "float",
    "Float64": "double",
    "Int8": "int8_t",
    "UInt8": "uint8_t",
    "Int16": "int16_t",
    "UInt16": "uint16_t",
    "Int32": "int32_t",
    "UInt32": "uint32_t",
    "Int64": "int64_t",
    "UInt64": "uint64_t",
    "Boolean": "bool",
    "String": "fm_String",
    "Binary": "fm_Binary",
    "Enumeration": "int64_t",
    "Clock": "fm_Clock",
}


def c_header(
    description: ET.Element,
    manifest: ET.Element | None,
    external_names: Iterable[str],
    *,
    has_resources: bool = False,
    hears_calls: bool = False,
) -> str:
    """variables.h: facts of the FMU, its events, struct Variables, and the value references.

    `external_names` are functions and objects that the C sources share. `has_resources`, `hears_calls`: the model has the
    function model_load, model_called.
    """
    interface = main_interface(description)

    def flag(name: str) -> str:
        return "1" if interface.get(name) == "true" else "0"

    identifier = interface.attrib["modelIdentifier"]

    members = [f"    {_declaration(v)};" for v in variables(description)]
    members += [
        f"    double {_array(_derivatives(v), v)};   /* of {v.member}, by time, in the next step */"
        for v in variables(description)
        if v.is_interpolated
    ]
    references = [f"    VR_{v.member} = {v.reference}," for v in variables(description)]
    names = [f"EVENT_{c_name(event.name)}" for event in events(manifest)]
    most_clocks = max([1, *(len(v.clocks) for v in variables(description))])
    has_intervals = any(v.ticks for v in variables(description))
    most_payload = max([1, *(len(event.payload) for event in events(manifest))])
    return "\n".join(
        [
            "/* Made by build.py from modelDescription.xml and fmi-ls-manifest.xml; included by model.h. */",
            f'#define FM_MODEL_IDENTIFIER "{identifier}"',
            f'#define FM_INSTANTIATION_TOKEN "{description.attrib["instantiationToken"]}"',
            f"#define FM_CAN_GET_AND_SET_FMU_STATE {flag('canGetAndSetFMUState')}",
            f"#define FM_PROVIDES_DIRECTIONAL_DERIVATIVES {flag('providesDirectionalDerivatives')}",
            f"#define FM_HAS_EVENT_MODE {flag('hasEventMode')}",
            f"#define FM_HAS_MODEL_EXCHANGE {int(has_model_exchange(description))}",
            f"#define FM_HAS_SCHEDULED_EXECUTION {int(interface.tag == 'ScheduledExecution')}",
            f"enum {{ FM_STATE_COUNT = {len(state_offsets(description))} }};",
            f"enum {{ FM_INDICATOR_COUNT = {len(indicator_offsets(description))} }};",
            f"#define FM_HAS_RESOURCES {int(has_resources)}",
            f"#define FM_HEARS_CALLS {int(hears_calls)}",
            f"#define FM_HAS_INTERVALS {int(has_intervals)}",
            f"#define FM_INPUT_DERIVATIVES {INPUT_DERIVATIVES}",
            "",
            "/* Several of these FMUs can be linked into one program. FMI functions have a prefix too. */",
            *(f"#define {name} {identifier}_{name}" for name in external_names),
            f"#define FMI2_FUNCTION_PREFIX {identifier}_",
            f"#define FMI3_FUNCTION_PREFIX {identifier}_",
            "",
            f"enum {{ {', '.join([*names, 'FM_EVENT_COUNT'])} }};",
            f"enum {{ FM_MOST_PAYLOAD = {most_payload} }};",
            f"enum {{ FM_MOST_CLOCKS = {most_clocks} }};",
            '#include "event_memory.h"',
            "",
            "typedef struct {",
            *members,
            "    fm_Memory memory;",
            "} Variables;",
            "",
            "enum {",
            *references,
            "};",
            "",
        ]
    )


def c_source(
    description: ET.Element, manifest: ET.Element | None, version: str, *, by_element: bool = False
) -> str:
    """variables.c: the table of the variables, their start values, and the events.

    `by_element`: in FMI 3.0 too, arrays are scalars in the description of the FMU.
    """
    ordered = sorted(variables(description), key=lambda v: v.reference)
    starts = [f"    .{v.member} = {_c_start(v)}," for v in ordered if v.start is not None]
    starts += [f"    .{v.member} = {_c_interval(*v.interval)}," for v in ordered if v.interval]
    clocks = {v.reference: v.member for v in ordered if v.type == "Clock"}
    has_arrays = version == "fmi3" and not by_element
    rows = [_c_row(v, clocks) for v in ordered] if has_arrays else _scalar_rows(description)
    return "\n".join(
        [
            "/* Made by build.py from modelDescription.xml and fmi-ls-manifest.xml. */",
            '#include "instance.h"',
            "",
            "const Variables fm_start_values = {",
            *starts,
            "};",
            "",
            "const fm_Variable fm_variables[] = {",
            *(f"    {row}," for row in rows),
            "};",
            "",
            "const size_t fm_variable_count = sizeof fm_variables / sizeof *fm_variables;",
            "",
            "const fm_StateVariable fm_states[] = {",
            *(f"    {{{_offset(x)}, {_offset(dx)}}}," for x, dx in state_offsets(description)),
            "    {0}",
            "};",
            "",
            "const size_t fm_indicators[] = {",
            *(f"    {_offset(z)}," for z in indicator_offsets(description)),
            "    0",
            "};",
            "",
            "const fm_Event fm_events[] = {",
            *(f"    {_c_event(event)}," for event in events(manifest)),
            "    {0}",
            "};",
            "",
        ]
    )


def state_offsets(description: ET.Element) -> list[tuple[str, str]]:
    """Members of each state and of its derivative, for Model Exchange."""
    if not has_model_exchange(description):
        return []
    of = {v.reference: v.member for v in variables(description)}
    derivatives = state_derivatives(description)
    return [(of[int(v.element.attrib["derivative"])], v.member) for v in derivatives]


def indicator_offsets(description: ET.Element) -> list[str]:
    """Members of the event indicators."""
    of = {v.reference: v.member for v in variables(description)}
    unknowns = description.iterfind("ModelStructure/EventIndicator")
    return [of[int(unknown.attrib["valueReference"])] for unknown in unknowns]


def _declaration(variable: Variable) -> str:
    return f"{C_TYPES[variable.type]} {_array(variable.member, variable)}"


def _derivatives(variable: Variable) -> str:
    """The member with what FMI 2.0 sets beside an interpolated input."""
    if variable.derivatives == 1:
        return f"{variable.member}_slope"
    return f"{variable.member}_derivatives[{variable.derivatives}]"


def _array(member: str, variable: Variable) -> str:
    """The declarator of a member with as many elements as a variable."""
    return f"{member}[{variable.length}]" if variable.length > 1 else member


def _c_start(variable: Variable) -> str:
    start = variable.start or ""
    if variable.type == "String":
        return '{"' + re.sub(r'(["\\])', r"\\\1", start) + '"}'
    if variable.type == "Binary":
        values = bytes.fromhex(start)
        return f"{{{len(values)}, {{{', '.join(map(str, values))}}}}}"
    return f"{{{', '.join(start.split())}}}" if variable.length > 1 else start


def _c_interval(interval: Fraction, shift: Fraction) -> str:
    """The start value of a clock whose interval is declared."""

    def fraction(value: Fraction) -> str:
        return f"{{{value.numerator}u, {value.denominator}u}}"

    return (
        f"{{.known = FM_UNCHANGED, .interval = {fraction(interval)}, .shift = {fraction(shift)}}}"
    )


def _c_row(variable: Variable, clocks: dict[int, str]) -> str:
    offsets = ", ".join(_offset(clocks[clock]) for clock in variable.clocks)
    return _row(variable, variable.member, offsets or "0")


def _scalar_rows(description: ET.Element) -> list[str]:
    """FMI 2.0 sees the count of a clock and the elements of an array; it does not know clocked variables."""
    whole = {v.reference: v for v in variables(description)}
    rows, array = [], None
    for v in sorted(fmi2_variables(description), key=lambda v: v.reference):
        array = whole.get(v.reference, array)
        assert array is not None
        part = ""
        if array.type == "Clock":
            part = ".count"
        elif array.length > v.length:
            part = f"[{v.reference - array.reference}]"
        rows.append(_row(v, array.member, "0", part, array.role))
    return rows


def _row(
    variable: Variable, member: str, clocks: str, part: str = "", role: str | None = None
) -> str:
    """The row of a variable that is a member of Variables, or a part of it such as [0]."""
    slope = _offset(f"{member}_slope{part}") if variable.derivatives == 1 else "0"
    if variable.derivatives > 1:
        slope = _offset(f"{member}_derivatives")
    is_discrete = variable.is_changing and variable.variability != "continuous"
    flags = ", ".join(
        "true" if is_so else "false" for is_so in (is_discrete, variable.is_intermediate)
    )
    return (
        f"{{{variable.reference}, FM_{variable.type.upper()}, {' | '.join(variable.settable) or '0'}, "
        f"{variable.length}, {_offset(member + part)}, {slope}, {variable.derivatives}, {role or variable.role}, "
        f'{flags}, {{{clocks}}}, {" | ".join(variable.ticks) or "0"}, "{variable.name}"}}'
    )


def _c_event(event: Event) -> str:
    shared = "true" if event.is_shared else "false"
    offsets = [_offset(m) if m else "0" for m in (event.announce, event.trigger)]
    payload = ", ".join(map(_offset, event.payload)) or "0"
    return f'{{"{event.name}", {shared}, {", ".join(offsets)}, {{{payload}}}}}'


def _offset(member: str) -> str:
    return f"offsetof(Variables, {member})"
