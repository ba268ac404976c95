"""Values of a paused run by name: which can be read, and which can be set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import listed
from fmimaster.fmu.instance import Transfer
from fmimaster.plan.layout import Group
from fmimaster.prepare.prepared import Prepared
from fmimaster.session.session import Session
from fmimaster.system.conversions import parse_value
from fmimaster.system.model import Causality, DataType, Transformation, Variability, Variable

_SAME = Transformation()
_STORED = (Group.OUTPUTS, Group.DISCRETE, Group.PARAMETERS)
"""Groups whose stored values are those of the FMU at a pause; continuous inputs may be polynomials."""


class _Target(NamedTuple):
    """The target of a value that is set."""

    instance: int
    variable: Variable
    transformation: Transformation


class Access:
    """Reads values of a session, and keeps values that are set until the run continues.

    Attributes
    ----------
    settable : name → targets
        Open inputs, and unconnected tunable parameters.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan, self._store = session.plan, session.executor.store
        self._bare = session.prepared.description.is_single_fmu
        self._columns = {c.name: c for c in self._plan.recorded if c.present is None}
        self.settable = _settable(session.prepared, bare_names=self._bare)
        self._given: dict[tuple[int, str], NDArray[Any]] = {}
        """The values that were set before the run went on last, or that the initial FMU states have."""
        self._waiting: dict[tuple[int, str], NDArray[Any]] = {}
        """The values that were set since then."""
        self._setters: dict[
            tuple[int, DataType, tuple[int, ...]], tuple[NDArray[Any], Transfer]
        ] = {}
        """Setters of variables of an instance, each with the array of its values."""

    def read_settable(self, session: Session) -> None:
        """Read what can be set from FMUs that have taken other states; for the thread that calls FMUs."""
        for targets in self.settable.values():
            for i, variable, _ in targets:
                values = np.empty(variable.size, variable.type.dtype)
                session.instances[i].getter(variable.type, (variable.value_reference,), values)()
                self._given[i, variable.name] = values

    def get(self, name: str) -> Any:
        """The value of a variable: a number, a text, or an array of its shape.

        Raises
        ------
        OptionError
            If there is no such variable, or its value is not known.
        """
        column = self._columns.get(name)
        if column is not None and column.instance is None:
            return self._store.values[column.type].item(column.slot.start)
        if name in self.settable:
            return self._of_settable(*self.settable[name][0])
        found = self._variable(name)
        if found is None:
            raise self._unknown(name)
        i, variable = found
        for group in _STORED:
            if (i, group, variable.name) in self._plan.layout.slots:
                kind, slot = self._plan.layout.slots[i, group, variable.name]
                return _shaped(self._store.values[kind][slot], variable)
        if (i, Group.CONTINUOUS, variable.name) in self._plan.layout.slots:
            return _shaped(self._continuous_input(i, variable), variable)
        if variable.variability in (Variability.CONSTANT, Variability.FIXED):
            start = self._start(i, variable)
            if start is not None and variable.causality is not Causality.CALCULATED_PARAMETER:
                return _shaped(start, variable)
        raise OptionError(
            f"The value of '{name}' is not known at a pause. Record it: output_variables=['{name}', ...]."
        )

    def set(self, name: str, value: Any) -> None:
        """Keep a value until the run continues.

        Raises
        ------
        OptionError
            If there is no such variable, or it cannot be set.
        DescriptionError
            If the value does not have the type of the variable.
        """
        targets = self.settable.get(name)
        if targets is None:
            raise self._not_settable(name)
        for i, variable, transformation in targets:
            values = parse_value(variable, value, f"'{name}'")
            if variable.type.is_float:
                if not np.isfinite(values).all():
                    raise OptionError(f"'{name}' was set to {value}. Give finite numbers.")
                if not transformation.is_identity:
                    values = transformation.factor * values + transformation.offset
                    values = values.astype(variable.type.dtype)
            self._waiting[i, variable.name] = values

    def hand_over(self, session: Session) -> None:
        """Set the kept values that have changed; for the thread that calls FMUs."""
        of: dict[int, dict[DataType, list[Variable]]] = {}
        for (i, name), values in self._waiting.items():
            variable = self._plan.instances[i].model.variable(name)
            assert variable is not None
            before = self._present(i, variable)
            if before is None or not np.array_equal(before, values):
                of.setdefault(i, {}).setdefault(variable.type, []).append(variable)
        self._given |= self._waiting
        self._waiting = {}
        if not of:
            return

        def set_values(i: int) -> None:
            for kind, variables in of[i].items():
                references = tuple(v.value_reference for v in variables)
                values = np.concatenate([self._given[i, v.name] for v in variables])
                key = i, kind, references
                if key not in self._setters:  # instances keep the array from which they set values
                    setter = session.instances[i].setter(kind, references, values)
                    self._setters[key] = values, setter
                buffer, act = self._setters[key]
                buffer[:] = values
                act()

        session.give(frozenset(of), set_values)

    @property
    def is_waiting(self) -> bool:
        """Whether values were set since the last advance."""
        return bool(self._waiting)

    def _of_settable(self, i: int, variable: Variable, transformation: Transformation) -> Any:
        values = self._waiting.get((i, variable.name))
        if values is None:
            values = self._present(i, variable)
        if values is None:
            raise OptionError(
                f"The FMU of '{self._plan.instances[i].name}' has no start value of '{variable.name}', and it was not "
                "set yet."
            )
        if not transformation.is_identity:
            values = (values - transformation.offset) / transformation.factor
        return _shaped(values, variable)

    def _present(self, i: int, variable: Variable) -> NDArray[Any] | None:
        """The FMU's present value of a settable variable."""
        given = self._given.get((i, variable.name))
        return self._start(i, variable) if given is None else given

    def _start(self, i: int, variable: Variable) -> NDArray[Any] | None:
        planned = self._plan.instances[i]
        start = planned.start_values.get(variable.name, variable.start)
        return None if start is None else parse_value(variable, start, f"'{variable.name}'")

    def _continuous_input(self, i: int, variable: Variable) -> NDArray[Any]:
        kind, slot = self._plan.layout.slots[i, Group.CONTINUOUS, variable.name]
        courses = self._store.courses
        if courses.get(i) is None:
            return self._store.values[kind][slot]
        first = self._plan.layout.segments(i, Group.CONTINUOUS)[0].start
        values = courses.value(
            i, self._session.state.time.seconds, self._plan.instances[i].model.highest_order
        )
        return values[slot.start - first : slot.stop - first]

    def _variable(self, name: str) -> tuple[int, Variable] | None:
        """The variable of a component, by its name."""
        ends = [k for k, letter in enumerate(name) if letter == "."]
        found = [
            (self._plan.instances.numbers.get(name[:k]), name[k + 1 :]) for k in reversed(ends)
        ]
        found += [(0, name)] if self._bare else []
        for i, rest in found:
            variable = None if i is None else self._plan.instances[i].model.variable(rest)
            if i is not None and variable is not None:
                return i, variable
        return None

    def _unknown(self, name: str) -> OptionError:
        known = [*self.settable, *self._columns]
        return OptionError(f"The system has no variable '{name}'.{did_you_mean(name, known)}")

    def _not_settable(self, name: str) -> OptionError:
        found = self._variable(name)
        if found is None:
            return self._unknown(name)
        i, variable = found
        link = next(
            (k for k in self._plan.links if k.target == i and k.input.name == variable.name), None
        )
        known = f"Can be set: {listed(self.settable) or 'nothing'}."
        if link is not None:
            source = f"{self._plan.instances[link.source].name}.{link.output.name}"
            return OptionError(f"'{name}' cannot be set: '{source}' feeds it. {known}")
        if variable.causality is Causality.OUTPUT:
            return OptionError(f"'{name}' cannot be set: it is an output. {known}")
        if variable.causality in (Causality.PARAMETER, Causality.STRUCTURAL_PARAMETER):
            return OptionError(
                f"'{name}' cannot be set during a run: it is not tunable. Give it in start_values. {known}"
            )
        return OptionError(f"'{name}' cannot be set: it is not an input. {known}")


def _settable(prepared: Prepared, *, bare_names: bool) -> dict[str, list[_Target]]:
    found: dict[str, list[_Target]] = {}
    plan = prepared.plan

    def add(i: int, variable: Variable, transformation: Transformation, connector: str) -> None:
        if variable.type is DataType.CLOCK or variable.clocks:
            return
        full = f"{plan.instances[i].name}.{variable.name}"
        found.setdefault(variable.name if bare_names else full, []).append(
            _Target(i, variable, _SAME)
        )
        if connector:
            found.setdefault(connector, []).append(_Target(i, variable, transformation))

    for o in prepared.open_inputs:
        add(o.target, o.input, o.transformation, o.connector)
    for i, planned in enumerate(plan.instances):
        for variable in planned.model.with_causality(Causality.PARAMETER):
            taken = (Group.PARAMETERS, Group.SETTINGS)
            if variable.variability is Variability.TUNABLE and not any(
                (i, group, variable.name) in plan.layout.slots for group in taken
            ):
                add(i, variable, _SAME, "")
    return found


def _shaped(values: NDArray[Any], variable: Variable) -> Any:
    return values.reshape(variable.shape).copy() if variable.shape else values.item(0)
