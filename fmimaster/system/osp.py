"""System structures of Open Simulation Platform (``OspSystemStructure.xml``), as libcosim reads them.

Simulators, their initial values, connections of variables and linear transformations are read. Other elements would
change the results, and are refused by name: sums, and groups of variables, which are described outside of the FMUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from fmimaster.base.errors import DescriptionError, FileError, did_you_mean
from fmimaster.base.files import read_whole
from fmimaster.system.declarations import Experiment
from fmimaster.system.description import (
    Component,
    Connection,
    Endpoint,
    Parameter,
    System,
    SystemDescription,
)
from fmimaster.system.model import Source, Transformation
from fmimaster.system.notes import Notes
from fmimaster.system.xml import (
    Element,
    child,
    children,
    local_name,
    location,
    parse_lenient_xml,
    parse_text,
    path_of_uri,
    text_of,
    value_of,
)

FILE = "OspSystemStructure.xml"
FILES = "OspSystemStructure*.xml"
"""Files as libcosim's own variants of a system are named."""
_REFUSED = {
    "VariableGroupConnection": "groups of variables",
    "SignalGroupConnection": "groups of signals",
    "Sum": "sums",
    "VectorSum": "sums of vectors",
}
"""Elements that are not read, in words."""


def read_osp(path: Path) -> SystemDescription:
    """Read the system in an OspSystemStructure.xml.

    Raises
    ------
    FileError
        If it is malformed.
    DescriptionError
        If names do not fit together, or something is used that is not supported.
    """
    root, _ = parse_lenient_xml(read_whole(path), str(path))
    if local_name(root) != "OspSystemStructure":
        raise FileError(f"{path}: the root is {local_name(root)}, expected OspSystemStructure.")
    for element in root.iter():
        if (what := _REFUSED.get(local_name(element))) is not None:
            raise DescriptionError(
                f"{location(element)}: {what} ({local_name(element)}) are not supported. Connect the variables one by "
                "one, or use an FMU for it."
            )
    notes = Notes()
    components = tuple(
        _component(e, path, notes) for e in children(root, "Simulators", "Simulator")
    )
    names = [c.name for c in components]
    connections = (*_connections(root, names), *_signals(root, names))
    _note_bonds(root, notes)
    if (algorithm := child(root, "Algorithm")) is not None and _text(algorithm) != "fixedStep":
        notes.add(
            "the algorithm is left to the settings of the run",
            _text(algorithm),
            location(algorithm),
        )
    experiment = Experiment(
        _number(root, "StartTime"),
        _number(root, "EndTime"),
        step_size=_number(root, "BaseStepSize"),
    )
    system = System(path.parent.name or "system", components, connections=connections)
    return SystemDescription(system, experiment, path, notes.lines())


def _component(element: Element, path: Path, notes: Notes) -> Component:
    uri = text_of(element, "source")
    if "://" in uri and not uri.startswith("file://"):
        raise FileError(
            f"{location(element)}: source '{uri}' is not a file. Place the FMU next to the description."
        )
    if element.get("stepSize") is not None:
        notes.add(
            "step sizes of simulators are ignored; --component-step-size sets them",
            text_of(element, "name"),
            location(element),
        )
    file = path_of_uri(uri) if uri.startswith("file:") else unquote(uri).replace("\\", "/")
    source = Source(path.parent / file)
    values = []
    for entry in children(element, "InitialValues", "InitialValue"):
        for value in entry:
            where = location(value)
            values.append(
                Parameter(text_of(entry, "variable"), value.get("value") or "", where=where)
            )
    return Component(text_of(element, "name"), source, parameters=tuple(values))


def _connections(root: Element, names: list[str]) -> Iterator[Connection]:
    for element in children(root, "Connections", "VariableConnection"):
        first, second = _two(element, "Variable")
        yield Connection(_endpoint(first, names), _endpoint(second, names))


def _signals(root: Element, names: list[str]) -> Iterator[Connection]:
    """Connections through a linear transformation: from the variable at its ``in`` to those at its ``out``."""
    factors = {
        text_of(f, "name"): Transformation(
            value_of(f, "factor", float, 1.0), value_of(f, "offset", float, 0.0)
        )
        for f in children(root, "Functions", "LinearTransformation")
    }
    ends: dict[str, Mapping[str, list[Endpoint]]] = {
        name: {"in": [], "out": []} for name in factors
    }
    for element in children(root, "Connections", "SignalConnection"):
        signal, variable = child(element, "Signal"), child(element, "Variable")
        if signal is None or variable is None:
            raise FileError(f"{location(element)}: a Signal and a Variable are expected in it.")
        function, name = text_of(signal, "function"), text_of(signal, "name")
        if function not in ends or name not in ends[function]:
            raise DescriptionError(
                f"{location(signal)}: there is no signal '{name}' of a function '{function}'.{did_you_mean(function, ends)}"
            )
        ends[function][name].append(_endpoint(variable, names))
    for function, both in ends.items():
        for source in both["in"]:
            for target in both["out"]:
                yield Connection(source, target, factors[function])


def _note_bonds(root: Element, notes: Notes) -> None:
    bonds = dict[str, list[str]]()
    for element in children(root, "Connections", "VariableConnection"):
        if (name := element.get("powerBond")) is not None:
            ends = (
                f"{text_of(v, 'simulator')}.{text_of(v, 'name')}" for v in _two(element, "Variable")
            )
            bonds.setdefault(name, []).append(" - ".join(ends))
    for name, pairs in bonds.items():
        if len(pairs) != 2:
            raise DescriptionError(
                f"{root.base}: the power bond '{name}' has {len(pairs)} connections, expected 2."
            )
        notes.add(
            "power bonds without a direction, which this format does not have, are not measured; declare them by "
            "power_bonds, see docs/power-bonds.md",
            f"{name} ({', '.join(pairs)})",
        )


def _two(element: Element, name: str) -> tuple[Element, Element]:
    found = list(children(element, name))
    if len(found) != 2:
        raise FileError(f"{location(element)}: {len(found)} elements {name}, expected 2.")
    return found[0], found[1]


def _endpoint(variable: Element, names: list[str]) -> Endpoint:
    simulator = text_of(variable, "simulator")
    if simulator not in names:
        raise DescriptionError(
            f"{location(variable)}: there is no simulator '{simulator}'.{did_you_mean(simulator, names)}"
        )
    return Endpoint(simulator, text_of(variable, "name"))


def _text(element: Element) -> str:
    return (element.text or "").strip()


def _number(root: Element, name: str) -> float | None:
    element = child(root, name)
    return None if element is None else parse_text(element, name, float, _text(element))
