"""The variables of an exported system: open inputs, parameters, recorded outputs, start values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.plan.layout import SET_IN_A_RUN
from fmimaster.plan.plan import Plan
from fmimaster.prepare.prepared import Prepared
from fmimaster.system.conversions import parse_value
from fmimaster.system.model import Causality, DataType, Initial, Model, Variability, Variable

_ABSENT = (DataType.BINARY, DataType.CLOCK)
"""Types of variables that an exported system does not have."""

_WITHOUT_START = {DataType.BOOLEAN: False, DataType.STRING: ""}
"""The start value of an input for which its FMU gives none; 0 for numbers."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """One variable of an exported system, which is a variable of a component.

    Attributes
    ----------
    variable : Variable
        By its name in the system, with its role there; its value reference is that in the component.
    start : tuple, optional
        Values of all its elements at the start; None if they are computed.
    """

    component: str
    name: str
    """In the component."""
    variable: Variable
    start: tuple[Any, ...] | None = None
    is_of_fmi2: bool = False
    """Whether its component is an FMU of FMI 2.0."""

    @property
    def key(self) -> tuple[str, str]:
        """Component and variable."""
        return self.component, self.name

    @property
    def settable(self) -> str:
        """When it can be set: ``i``: always; ``k``: likewise, but kept until Initialization Mode, as FMI 2.0 demands it for
        inputs; ``p``: before Step Mode; ``a``: before Initialization Mode; ``-``: never."""
        v = self.variable
        if v.causality is Causality.INPUT:
            return "k" if self.is_of_fmi2 else "i"
        if v.causality is Causality.PARAMETER and v.variability is Variability.TUNABLE:
            return "i"
        return {Initial.EXACT: "p", Initial.APPROX: "a"}.get(v.initial or Initial.CALCULATED, "-")


@dataclass(frozen=True)
class ExposedVariables:
    """All variables of an exported system, in the order of their value references."""

    prepared: Prepared
    every: tuple[Exposed, ...]
    left_out: tuple[str, ...]
    """Names of variables of types that it does not have."""

    @cached_property
    def by_key(self) -> Mapping[tuple[str, str], int]:
        """Component and variable → value reference."""
        return {exposed.key: k for k, exposed in reversed([*enumerate(self.every)])}

    def of(self, *causalities: Causality) -> list[int]:
        """Value references of the variables with these roles."""
        return [k for k, e in enumerate(self.every) if e.variable.causality in causalities]

    @cached_property
    def feedthrough(self) -> Mapping[int, Sequence[int]]:
        """Output → inputs on which it depends without a step between them: those of the same component."""
        found = {}
        for k in self.of(Causality.OUTPUT):
            exposed = self.every[k]
            inputs = self._models[exposed.component].dependencies.get(exposed.name, ())
            keys = ((exposed.component, name) for name in inputs)
            found[k] = sorted(self.by_key[key] for key in keys if key in self.by_key)
        return found

    @cached_property
    def initial(self) -> Mapping[int, Sequence[int]]:
        """Variable that is computed in Initialization Mode → those that are set there and on which it depends, also over
        other components."""
        plan = self.prepared.plan
        fed = {
            (plan.instances[k.target].name, k.input.name): (
                plan.instances[k.source].name,
                k.output.name,
            )
            for k in (*plan.links, *plan.parameter_links)
        }
        return {
            k: self._knowns(exposed, fed)
            for k, exposed in enumerate(self.every)
            if exposed.variable.initial in (Initial.CALCULATED, Initial.APPROX)
            and exposed.variable.causality in (Causality.OUTPUT, Causality.CALCULATED_PARAMETER)
        }

    def _knowns(
        self, exposed: Exposed, fed: Mapping[tuple[str, str], tuple[str, str]]
    ) -> Sequence[int]:
        """Inputs and parameters on which it depends, and the start values of all states of the components on the way."""
        waiting, seen, found = [exposed.key], {exposed.key}, set[int]()
        while waiting:
            component, name = waiting.pop()
            found |= self._states.get(component, set())
            for other in self._models[component].initial_dependencies.get(name, ()):
                key = component, other
                if (known := self.by_key.get(key)) is not None:
                    if self.every[known].settable != "-":
                        found.add(known)
                elif (source := fed.get(key)) is not None and source not in seen:
                    seen.add(source)
                    waiting.append(source)
        return sorted(found)

    @cached_property
    def _states(self) -> Mapping[str, set[int]]:
        """Component → its variables with start values that are neither inputs nor parameters."""
        found: dict[str, set[int]] = {}
        for k, exposed in enumerate(self.every):
            if exposed.settable in "pa" and exposed.variable.causality is not Causality.PARAMETER:
                found.setdefault(exposed.component, set()).add(k)
        return found

    @cached_property
    def _models(self) -> Mapping[str, Model]:
        return {planned.name: planned.model for planned in self.prepared.plan.instances}


def interface_of(prepared: Prepared, fmi_version: int) -> ExposedVariables:
    """The variables that a system has as an FMU of this version."""
    found = dict[str, Exposed]()
    for exposed in (*_inputs(prepared), *_parameters(prepared), *_recorded(prepared)):
        found.setdefault(exposed.variable.name, exposed)
    has = _types_of_fmi2 if fmi_version == 2 else _types_of_fmi3
    every = tuple(e for e in found.values() if has(e.variable))
    left_out = tuple(e.variable.name for e in found.values() if not has(e.variable))
    return ExposedVariables(prepared, every, left_out)


def _types_of_fmi3(variable: Variable) -> bool:
    return variable.type not in _ABSENT


def _types_of_fmi2(variable: Variable) -> bool:
    """Scalars whose values an fmi2Integer or an fmi2Real can have."""
    is_wide = variable.type in (DataType.UINT32, DataType.INT64, DataType.UINT64)
    fits = not is_wide or variable.enumeration is not None
    return _types_of_fmi3(variable) and not variable.shape and fits


def _inputs(prepared: Prepared) -> Iterator[Exposed]:
    """The open inputs. A connector of the system gives its name to one input with the same unit."""
    fed = Counter(open_input.connector for open_input in prepared.open_inputs)
    for target, variable, connector, transformation in (
        (o.target, o.input, o.connector, o.transformation) for o in prepared.open_inputs
    ):
        planned = prepared.plan.instances[target]
        if _is_set_by_the_run(prepared.plan, target, variable.name):
            continue
        is_named = connector and fed[connector] == 1 and transformation.is_identity
        name = connector if is_named else _name(prepared, planned.name, variable.name)
        start = _start(planned.start_values, variable) or _default(variable)
        is_of_fmi2 = planned.model.fmi_version.startswith("2")
        shown = _named(variable, name, Initial.EXACT)
        yield Exposed(planned.name, variable.name, shown, start, is_of_fmi2)


def _parameters(prepared: Prepared) -> Iterator[Exposed]:
    """Parameters, and other variables with a start value that is set."""
    steady = {(one.instance, one.state) for one in prepared.plan.steady}
    for i, planned in enumerate(prepared.plan.instances):
        if prepared.components[i].is_table:
            continue
        for v in planned.model.variables:
            can_be_set = v.initial in (Initial.EXACT, Initial.APPROX)
            is_kept = v.causality in (Causality.PARAMETER, Causality.OUTPUT, Causality.LOCAL)
            if not (can_be_set and is_kept) or v.variability is Variability.CONSTANT:
                continue
            if _is_set_by_the_run(prepared.plan, i, v.name) or (i, v.name) in steady:
                continue
            if (start := _start(planned.start_values, v)) is not None:
                name = _name(prepared, planned.name, v.name)
                yield Exposed(planned.name, v.name, _named(v, name, v.initial), start)


def _recorded(prepared: Prepared) -> Iterator[Exposed]:
    """What results have: outputs, and what else was asked for. Connectors are left out where they convert values."""
    columns = [c for c in prepared.plan.recorded if c.instance is not None]
    for column in columns:
        assert column.instance is not None
        planned = prepared.plan.instances[column.instance]
        if prepared.components[column.instance].is_table or not column.transformation.is_identity:
            continue
        v = planned.model.variable(column.variable)
        assert v is not None
        if v.causality in (Causality.INPUT, Causality.STRUCTURAL_PARAMETER, Causality.PARAMETER):
            is_fixed = v.causality is not Causality.INPUT
            v = replace(
                v,
                causality=Causality.LOCAL,
                variability=Variability.FIXED if is_fixed else v.variability,
            )
        is_constant = v.variability is Variability.CONSTANT
        initial = Initial.EXACT if is_constant else Initial.CALCULATED
        start = _start({}, v) if is_constant else None
        if is_constant and start is None:
            continue
        yield Exposed(planned.name, column.variable, _named(v, column.name, initial), start)


def _named(variable: Variable, name: str, initial: Initial | None) -> Variable:
    """With another name; some FMUs declare variables continuous that are no floating point numbers."""
    v = variable.variability
    is_wrong = v is Variability.CONTINUOUS and not variable.type.is_float
    variability = Variability.DISCRETE if is_wrong else v
    return replace(variable, name=name, initial=initial, variability=variability)


def _name(prepared: Prepared, component: str, variable: str) -> str:
    return variable if prepared.description.is_single_fmu else f"{component}.{variable}"


def _is_set_by_the_run(plan: Plan, instance: int, name: str) -> bool:
    return any((instance, group, name) in plan.layout.slots for group in SET_IN_A_RUN)


def _start(given: Mapping[str, Sequence[Any]], variable: Variable) -> tuple[Any, ...] | None:
    """Its values at the start: those of the system, or of the FMU; None if there are none."""
    values = given.get(variable.name, variable.start)
    return None if values is None else (*parse_value(variable, values, variable.name).tolist(),)


def _default(variable: Variable) -> tuple[Any, ...]:
    return (_WITHOUT_START.get(variable.type, 0),) * variable.size
