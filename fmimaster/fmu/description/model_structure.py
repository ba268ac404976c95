"""Dependencies of a model description: which outputs depend directly on which inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fmimaster.fmu.description.dialects import Dialect
from fmimaster.fmu.description.entries import Entry, References
from fmimaster.fmu.description.findings import Findings, labelled
from fmimaster.system.model import Causality, DependencyKind, Initial, Variable
from fmimaster.system.xml import Element, children, shown

_KINDS = {kind.value: kind for kind in DependencyKind}


@dataclass(frozen=True)
class Dependencies:
    """Output → inputs, in Step Mode and in Initialization Mode; the fields of Model."""

    dependencies: Mapping[str, frozenset[str]]
    initial_dependencies: Mapping[str, frozenset[str]]
    assumed_dependencies: frozenset[str]
    assumed_initial_dependencies: frozenset[str]
    dependency_kinds: Mapping[str, Mapping[str, DependencyKind]]
    event_indicators: tuple[str, ...]


@dataclass(frozen=True)
class _Unknown:
    """One entry of ModelStructure."""

    name: str
    dependencies: tuple[str, ...] | None
    """None if it is not declared on what it depends."""
    kinds: tuple[str, ...]


def read_dependencies(
    root: Element,
    dialect: Dialect,
    references: References,
    variables: Sequence[Variable],
    names: Mapping[str, set[str]],
    findings: Findings,
) -> Dependencies:
    """What ModelStructure declares; an output for which nothing is declared depends on all inputs.

    Parameters
    ----------
    names
        Name of a variable with aliases → all its names.
    """

    def unknowns(path: tuple[str, ...]) -> list[_Unknown]:
        return list(_unknowns(root, path, dialect.referred_by, references, findings))

    outputs, initials = unknowns(dialect.outputs), unknowns(dialect.initial_unknowns)
    dependencies, declared = _declared(outputs, variables, names)
    initial, initially_declared = _declared(initials, variables, names)
    listed = {name for unknown in initials for name in _all_names(unknown, names)}
    for variable in variables:
        if variable.name in initial and variable.name not in listed:
            # an output with a start value is known; one that should be listed and is not depends as in Step Mode
            known = variable.initial is Initial.EXACT
            initial[variable.name] = frozenset() if known else dependencies[variable.name]
            initially_declared |= {variable.name} if known or variable.name in declared else set()
    indicators = unknowns(dialect.event_indicators) if dialect.event_indicators else []
    return Dependencies(
        dependencies=dependencies,
        initial_dependencies=initial,
        assumed_dependencies=frozenset(dependencies) - declared,
        assumed_initial_dependencies=frozenset(initial) - initially_declared,
        dependency_kinds=_kinds(outputs, dependencies, names),
        event_indicators=tuple(u.name for u in indicators),
    )


def _unknowns(
    root: Element,
    path: tuple[str, ...],
    attribute: str,
    references: References,
    findings: Findings,
) -> Iterator[_Unknown]:
    for element in children(root, "ModelStructure", *path):
        entry = references.find(element.get(attribute) or "")
        if entry is None:
            what = f"{path[0]} of ModelStructure has an entry for a variable that does not exist, it is left aside"
            findings.note(element, what, shown(element.get(attribute)))
            continue
        known = _known(element, entry, references, findings)
        yield _Unknown(entry.name, known, tuple((element.get("dependenciesKind") or "").split()))


def _known(
    element: Element, entry: Entry, references: References, findings: Findings
) -> tuple[str, ...] | None:
    text = element.get("dependencies")
    if text is None:
        return None
    found = []
    for number in text.split():
        known = references.find(number)
        if known is None:
            what = "dependencies name a variable that does not exist; it counts as depending on all inputs"
            findings.note(element, what, f"{labelled(entry.element)} ({shown(number)})")
            return None
        found.append(known.name)
    return tuple(found)


def _all_names(unknown: _Unknown, names: Mapping[str, set[str]]) -> set[str]:
    return names.get(unknown.name) or {unknown.name}


def _declared(
    unknowns: Sequence[_Unknown], variables: Sequence[Variable], names: Mapping[str, set[str]]
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Dependencies of outputs on inputs, and the outputs for which they are declared; the others depend on all inputs."""
    inputs = frozenset(v.name for v in variables if v.causality is Causality.INPUT)
    found = {v.name: inputs for v in variables if v.causality is Causality.OUTPUT}
    declared: set[str] = set()
    for unknown in unknowns:
        if unknown.dependencies is not None:
            for name in found.keys() & _all_names(unknown, names):
                found[name] = frozenset(unknown.dependencies) & inputs
                declared.add(name)
    return found, declared


def _kinds(
    unknowns: Sequence[_Unknown],
    dependencies: Mapping[str, frozenset[str]],
    names: Mapping[str, set[str]],
) -> dict[str, dict[str, DependencyKind]]:
    """Kinds of the dependencies of outputs on inputs; a kind that FMI does not know is left aside."""
    found: dict[str, dict[str, DependencyKind]] = {}
    for unknown in unknowns:
        # the two lists are of different length in some FMUs
        pairs = zip(unknown.dependencies or (), unknown.kinds, strict=False)
        kinds = {name: _KINDS[kind] for name, kind in pairs if kind in _KINDS}
        for name in dependencies.keys() & _all_names(unknown, names):
            if of_inputs := {i: k for i, k in kinds.items() if i in dependencies[name]}:
                found[name] = of_inputs
    return found
