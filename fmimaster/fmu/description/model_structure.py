"""Dependencies of a model description: which outputs depend directly on which inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from fmimaster.base.data import dataclass
from fmimaster.fmu.description.entries import Dialect, References, VariableEntry
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
    initial_dependency_kinds: Mapping[str, Mapping[str, DependencyKind]]
    event_indicators: tuple[str, ...]
    state_derivatives: tuple[str, ...]


class _Unknown(NamedTuple):
    """One entry of ModelStructure for one name of its variable."""

    name: str
    dependencies: tuple[str, ...] | None
    """None if its dependencies are not declared."""
    kinds: tuple[str, ...]


def read_dependencies(
    root: Element,
    dialect: Dialect,
    references: References,
    variables: Sequence[Variable],
    names: Mapping[str, set[str]],
    findings: Findings,
) -> Dependencies:
    """The dependencies that ModelStructure declares; an output without a declaration depends on all inputs.

    Parameters
    ----------
    names
        Name of a variable with aliases → all its names.
    """

    def unknowns(
        path: tuple[str, ...], names: Mapping[str, Collection[str]] = names
    ) -> list[_Unknown]:
        return _unknowns(root, path, dialect.referred_by, references, names, findings)

    outputs, initials = unknowns(dialect.outputs), unknowns(dialect.initial_unknowns)
    dependencies, declared = _declared(outputs, variables)
    _note_unlisted(root, outputs, variables, findings)
    initial, initially_declared = _initial(outputs, initials, variables)
    indicators = unknowns(dialect.event_indicators, {}) if dialect.event_indicators else []
    derivatives = unknowns(dialect.state_derivatives, {})
    kinds = _kinds(outputs, dependencies)
    return Dependencies(
        dependencies=dependencies,
        initial_dependencies=initial,
        assumed_dependencies=frozenset(n for n in dependencies if n not in declared),
        assumed_initial_dependencies=frozenset(n for n in initial if n not in initially_declared),
        dependency_kinds=kinds,
        initial_dependency_kinds=_initial_kinds(kinds, initials, initial),
        event_indicators=tuple(u.name for u in indicators),
        state_derivatives=tuple(u.name for u in derivatives),
    )


def _unknowns(
    root: Element,
    path: tuple[str, ...],
    attribute: str,
    references: References,
    names: Mapping[str, Collection[str]],
    findings: Findings,
) -> list[_Unknown]:
    found: list[_Unknown] = []
    known: dict[str, tuple[str, ...]] = {}  # many entries have the same list
    for element in children(root, "ModelStructure", *path):
        number = element.get(attribute) or ""
        entry = references.find(number)
        if entry is None:
            what = f"{path[0]} of ModelStructure has an entry for a variable that does not exist; the entry is ignored"
            findings.note(element, what, shown(number))
            continue
        text, kinds = element.get("dependencies"), element.get("dependenciesKind")
        of = None if text is None else known.get(text)
        if text is not None and of is None:
            of = _known(text, element, entry, references, findings)
            if of is not None:
                known[text] = of
        of_each = tuple(kinds.split()) if kinds else ()
        for name in names.get(entry.name) or (entry.name,):
            found.append(_Unknown(name, of, of_each))
    return found


def _known(
    text: str, element: Element, entry: VariableEntry, references: References, findings: Findings
) -> tuple[str, ...] | None:
    found = []
    for number in text.split():
        known = references.find(number)
        if known is None:
            what = "dependencies name a variable that does not exist; it is assumed to depend on all inputs"
            findings.note(element, what, f"{labelled(entry.element)} ({shown(number)})")
            return None
        found.append(known.name)
    return tuple(found)


def _declared(
    unknowns: Sequence[_Unknown], variables: Sequence[Variable]
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """Dependencies of outputs on inputs, and the outputs for which they are declared; the others depend on all inputs."""
    inputs = frozenset(v.name for v in variables if v.causality is Causality.INPUT)
    found = {v.name: inputs for v in variables if v.causality is Causality.OUTPUT}
    declared: set[str] = set()
    of_inputs = cache(inputs.intersection)
    for unknown in unknowns:
        if unknown.dependencies is not None and unknown.name in found:
            found[unknown.name] = of_inputs(unknown.dependencies)
            declared.add(unknown.name)
    return found, declared


def _note_unlisted(
    root: Element,
    outputs: Sequence[_Unknown],
    variables: Sequence[Variable],
    findings: Findings,
) -> None:
    """ModelStructure must list all outputs (FMI 2.0.4, 2.2.8; FMI 3.0, 2.4.8)."""
    listed = {unknown.name for unknown in outputs}
    missing = [
        v.name for v in variables if v.causality is Causality.OUTPUT and v.name not in listed
    ]
    if missing and any(v.causality is Causality.INPUT for v in variables):
        what = "ModelStructure does not list all outputs; missing outputs are assumed to depend on all inputs"
        for name in missing:
            findings.note(root, what, f"'{name}'")


def _initial(
    outputs: Sequence[_Unknown],
    initials: Sequence[_Unknown],
    variables: Sequence[Variable],
) -> tuple[dict[str, frozenset[str]], set[str]]:
    """In Initialization Mode: unknown → inputs and parameters on which it depends, and the unknowns for which they are
    declared.

    Unknowns are the outputs, and all others that the FMU lists. If an unknown depends on another one, such as a state
    that is initialized from an input, it has the dependencies of that one. An output that should be listed but is not
    has its dependencies of Step Mode, also through its states; an output with a start value has none.
    """
    knowns = frozenset(v.name for v in variables if v.causality in _KNOWN_INITIALLY)
    of = {unknown.name: unknown.dependencies for unknown in initials}
    in_step_mode = {unknown.name: unknown.dependencies for unknown in outputs}
    found: dict[str, frozenset[str]] = {}
    declared: set[str] = set()
    reached_from = cache(lambda start: _reached(start, of, knowns))
    for v in variables:
        if v.causality is Causality.OUTPUT and v.name not in of:
            start: tuple[str, ...] | None = in_step_mode.get(v.name)
            start = () if v.initial is Initial.EXACT else start
        elif v.name in of and v.causality is not Causality.INPUT:
            start = of[v.name]
        else:
            continue
        reached = reached_from(start)
        found[v.name] = knowns if reached is None else reached
        if reached is not None:
            declared.add(v.name)
    return found, declared


_KNOWN_INITIALLY = (Causality.INPUT, Causality.PARAMETER)


def _reached(
    start: tuple[str, ...] | None,
    unknowns: Mapping[str, tuple[str, ...] | None],
    knowns: frozenset[str],
) -> frozenset[str] | None:
    """Knowns on which these variables depend, also through other unknowns; None if one of these does not declare its
    dependencies."""
    if start is None:
        return None
    found, seen, waiting = set[str](), set(start), list(start)
    while waiting:
        name = waiting.pop()
        if name in knowns:
            found.add(name)
            continue
        further = unknowns.get(name, ())
        if further is None:
            return None
        waiting += [n for n in further if n not in seen]
        seen.update(further)
    return frozenset(found)


def _initial_kinds(
    kinds: Mapping[str, Mapping[str, DependencyKind]],
    initials: Sequence[_Unknown],
    initial: Mapping[str, frozenset[str]],
) -> dict[str, dict[str, DependencyKind]]:
    """Kinds that are known before the initialization is complete: constant ones; for outputs that are not listed, their
    kinds in Step Mode."""
    every = {**kinds, **_kinds(initials, initial)}
    found: dict[str, dict[str, DependencyKind]] = {
        output: {n: k for n, k in of.items() if k is DependencyKind.CONSTANT}
        for output, of in every.items()
    }
    return {output: of for output, of in found.items() if of}


def _kinds(
    unknowns: Sequence[_Unknown], dependencies: Mapping[str, frozenset[str]]
) -> dict[str, dict[str, DependencyKind]]:
    """Kinds of the dependencies of outputs on inputs; a kind that FMI does not know is ignored."""
    found: dict[str, dict[str, DependencyKind]] = {}
    for unknown in unknowns:
        if not unknown.kinds or unknown.name not in dependencies:
            continue
        # the two lists are of different length in some FMUs
        pairs = zip(unknown.dependencies or (), unknown.kinds, strict=False)
        kinds = {name: _KINDS[kind] for name, kind in pairs if kind in _KINDS}
        inputs = dependencies[unknown.name]
        if of_inputs := {i: k for i, k in kinds.items() if i in inputs}:
            found[unknown.name] = of_inputs
    return found
