"""System descriptions from SSP archives and folders, and from single SSDs.

SSP 1.0 and 2.0 are read, except for the parts that docs/system-descriptions.md lists: these are refused by name, or
ignored with a note. Enumerations are not read: SSP leaves their numbers to the FMUs. Common mistakes of existing files
are corrected with a note where that is safe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from fmimaster.base.errors import DescriptionError, FileError
from fmimaster.base.text import listed
from fmimaster.system.archive import open_archive
from fmimaster.system.declarations import Interface
from fmimaster.system.description import Component, Connection, Connector, System, SystemDescription
from fmimaster.system.model import Causality, DataType, Source
from fmimaster.system.ssp_annotations import (
    read_constraints,
    read_power_bonds,
    read_sequence,
    with_lifetimes,
)
from fmimaster.system.ssp_document import (
    Document,
    read_ends,
    read_transformation,
    read_unit,
    refuse_unknown,
)
from fmimaster.system.ssp_events import (
    read_adaptation,
    read_clocks,
    read_interval,
    read_shared_events,
)
from fmimaster.system.ssp_parameters import read_experiment, read_parameters
from fmimaster.system.xml import (
    Element,
    child,
    children,
    local_name,
    location,
    text_of,
    value_of,
)

SSD = "SystemStructure.ssd"
_FMU = "application/x-fmu-sharedlibrary"
_IMPLEMENTATIONS: Mapping[str, Interface | None] = {
    "any": None,
    **{i.value: i for i in Interface},
}
"""The attribute ``implementation`` of a component → the interface by which its FMU is used."""
_KINDS: Mapping[str, Causality] = {
    "input": Causality.INPUT,
    "output": Causality.OUTPUT,
    "parameter": Causality.PARAMETER,
    "calculatedParameter": Causality.CALCULATED_PARAMETER,
    "structuralParameter": Causality.STRUCTURAL_PARAMETER,
    "constant": Causality.OUTPUT,
    "local": Causality.OUTPUT,
    "inout": Causality.LOCAL,
    "unspecified": Causality.LOCAL,
}
"""Kinds of connectors; LOCAL means that the connections decide the direction. In SSP 2.0 a connected local variable
acts as an output."""

_MOST_WARNINGS = 20
"""Most kinds of findings that are listed; the others are counted."""

_TYPES: Mapping[str, DataType | None] = {
    **{t.value: t for t in DataType},
    "Real": DataType.FLOAT64,
    "Integer": DataType.INT32,
    "Enumeration": None,  # Int32 in FMI 2.0, Int64 in FMI 3.0: the FMU decides
}


def find_ssd(path: Path) -> tuple[Source, tuple[str, ...]]:
    """The description in an archive or folder; notes if it has an unexpected name, or if there are others."""
    if path.is_dir():  # only the top level: a folder may hold anything
        names: tuple[str, ...] = tuple(sorted(p.name for p in path.iterdir() if p.is_file()))
    else:
        with open_archive(Source(path)) as archive:
            names = archive.names()
    found = [SSD] if SSD in names else [n for n in names if n.lower().endswith(".ssd")]
    if not found:
        raise FileError(
            f"'{path}' has no {SSD} and no other .ssd file. Expected a system in SSP form, or an "
            "FMU."
        )
    if len(found) > 1:
        raise FileError(
            f"'{path}' has no {SSD}, but {', '.join(found)}. Give the path of the one to be "
            "simulated; unpack an archive first."
        )
    ssd, advice = Source(path, found[0]), "unpack the archive and give its path"
    if path.is_dir():
        ssd, advice = Source(path / found[0]), "give its path"
    return ssd, tuple(_about(path, found[0], names, advice))


def _about(path: Path, read: str, names: Iterable[str], advice: str) -> Iterator[str]:
    """Notes about the description that is read, and about others beside it, which are variants (SSP 2.0, chapter 3)."""
    if read != SSD:
        yield f"'{path}' has no {SSD}; '{read}' is read instead."
    others = [n for n in names if n.lower().endswith(".ssd") and "/" not in n and n != read]
    if others:
        yield f"'{path}' has other descriptions, which are not read: {listed(others)}. To use one, {advice}."


def read_ssd(ssd: Source, notes: tuple[str, ...], path: Path) -> SystemDescription:
    """The system of an SSD, which comes from the archive, folder or file ``path``; ``notes`` come first."""
    document = Document(ssd)
    root = document.root
    version = root.get("version")
    if version not in ("1.0", "2.0"):
        document.note(root, f"SSP version '{version}' is read as far as it is like 1.0 or 2.0")
    system = child(root, "System")
    if system is None:
        raise FileError(f"{location(root)}: it has no element System.")
    described, sequence = _system(system, document), read_sequence(system, document)
    # the experiment last: it notes the annotations that were not read
    experiment = read_experiment(document)
    description = SystemDescription(described, experiment, path, sequence=sequence)
    _check_unique(_full_names(description.system, ""), "components with the full name", root)
    return replace(
        description,
        notes=(*notes, *document.notes.lines()),
        warnings=document.warnings.lines(_MOST_WARNINGS),
    )


def _full_names(system: System, prefix: str) -> Iterator[str]:
    """Full names of all components and systems in a system."""
    yield from (prefix + c.name for c in system.components)
    for nested in system.systems:
        yield prefix + nested.name
        yield from _full_names(nested, f"{prefix}{nested.name}.")


def _system(element: Element, document: Document) -> System:
    inside = [e for elements in children(element, "Elements") for e in elements]
    dictionaries = [e for e in inside if local_name(e) == "SignalDictionaryReference"]
    for dictionary in dictionaries:
        document.note(dictionary, "references to signal dictionaries are ignored")
    names = [text_of(e, "name") for e in inside]
    adapting, adapted = read_adaptation(element, names, document)
    names += (c.name for c in adapting)
    _check_unique(names, "elements with the name", element)
    inner, left_aside = dict.fromkeys(names), [text_of(d, "name") for d in dictionaries]
    connections = tuple(
        _connection(c, inner, left_aside) for c in children(element, "Connections", "Connection")
    )
    constraints, constrained = read_constraints(element, names, document)
    components = [_component(e, document) for e in inside if local_name(e) == "Component"]
    components += (*constraints, *adapting)
    clocks = read_clocks(element, [c.name for c in components], inner, document)
    described = System(
        name=text_of(element, "name"),
        components=clocks.with_priorities(components),
        systems=tuple(_system(e, document) for e in inside if local_name(e) == "System"),
        connectors=_connectors(element, document),
        connections=(*connections, *constrained, *adapted, *clocks.connections),
        parameters=(*read_parameters(element, document), *clocks.intervals),
        shared_events=read_shared_events(element, document),
        power_bonds=read_power_bonds(element, document),
    )
    return with_lifetimes(described, element, document)


_OTHERS = {
    "text/csv": "remove the component and its connections, and give the table as the file of input signals: input_file "
    "(--input-file)."
}
"""What to do instead of components of other types."""


def _component(element: Element, document: Document) -> Component:
    name, kind = text_of(element, "name"), element.get("type")
    if element.get("source") is None:
        raise FileError(
            f"{location(element)}: attribute 'source' of Component '{name}' is missing: it has no implementation (SSP "
            "2.0), so it cannot be simulated. Name an FMU as its source."
        )
    uri = text_of(element, "source")
    if (kind or _FMU) != _FMU or uri.startswith("#") or uri.lower().endswith((".ssd", ".ssp")):
        raise DescriptionError(
            f"{location(element)}: component '{name}' is not an FMU but "
            f"'{uri}'{f' of type {kind}' if kind else ''}. Expected an FMU; "
            + _OTHERS.get(
                kind or "",
                "place the content of another system description here as a nested System.",
            )
        )
    implementation = element.get("implementation") or "any"
    if implementation not in _IMPLEMENTATIONS:
        raise DescriptionError(
            f"{location(element)}: component '{name}' has the implementation '{implementation}', which is not "
            f"supported. Expected {', '.join(_IMPLEMENTATIONS)}, and an FMU that offers it."
        )
    source = document.locate(element)
    return Component(
        name,
        source,
        _connectors(element, document),
        read_parameters(element, document, source),
        _IMPLEMENTATIONS[implementation],
    )


def _connectors(element: Element, document: Document) -> tuple[Connector, ...]:
    found = tuple(_connector(c, document) for c in children(element, "Connectors", "Connector"))
    _check_unique((c.name for c in found), "connectors with the name", element)
    return found


def _connector(element: Element, document: Document) -> Connector:
    kind = text_of(element, "kind")
    if kind not in _KINDS:
        raise FileError(
            f"{location(element)}: kind '{kind}' of a connector is not known. Expected one of "
            f"{', '.join(_KINDS)}."
        )
    name = text_of(element, "name")
    clocks = tuple(text_of(c, "name") for c in children(element, "Clock") if c.get("name"))
    found = Connector(name, _KINDS[kind], dimensions=_dimensions(element), clocks=clocks)
    for below in element:
        what = local_name(below)
        if what == "Clock" and below.get("name") is not None:
            continue  # the connector is clocked by it
        if what in _TYPES:
            interval = read_interval(below) if what == "Clock" else None
            unit = read_unit(below, document.units)
            return replace(found, type=_TYPES[what], unit=unit, interval=interval)
    return found


def _dimensions(element: Element) -> tuple[int | None, ...] | None:
    """Sizes of an array connector (SSP 2.0); None if the description leaves them to the FMU."""
    sizes = [value_of(d, "size", int, None) for d in children(element, "Dimension")]
    return tuple(sizes) or None


def _connection(element: Element, known: Collection[str], dictionaries: list[str]) -> Connection:
    connection = Connection(
        *read_ends(element),
        read_transformation(element),
        value_of(element, "suppressUnitConversion", bool, False),
    )
    where = f"{location(element)}: connection '{connection}'"
    for end in (connection.start, connection.end):
        if end.element in dictionaries:
            raise DescriptionError(
                f"{where} leads to a signal dictionary, which is not supported. Connect the "
                "components directly."
            )
        if end.element:
            refuse_unknown(end.element, known, "element", where)
    for indices in ("startIndices", "endIndices"):
        if element.get(indices) is not None:
            raise DescriptionError(
                f"{where} connects elements of an array ({indices}, SSP 2.0), which is not supported. Connect whole "
                "arrays."
            )
    return connection


def _check_unique(names: Iterable[str], what: str, element: Element) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DescriptionError(
            f"{location(element)}: there are several {what} '{twice[0]}'. Give each its own name."
        )
