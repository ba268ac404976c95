"""Components written in Python: the class for users, and its model description."""

from __future__ import annotations

import copy
import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from fmimaster.base.errors import DescriptionError, did_you_mean
from fmimaster.system.declarations import Capabilities, Version
from fmimaster.system.model import Causality, DataType, Initial, Model, Unit, Variability, Variable

_GROUPS: Mapping[str, Causality] = {
    "parameters": Causality.PARAMETER,
    "inputs": Causality.INPUT,
    "states": Causality.LOCAL,
    "outputs": Causality.OUTPUT,
}
"""Attribute of a component that declares variables → their causality and variability."""

_ATOMS = {float, int, bool, str, bytes, type(None), *(kind.dtype.type for kind in DataType)}
"""Types whose values never change, so that they need no copy."""

_TYPES = {
    kind.dtype: kind
    for kind in DataType
    if kind.is_numeric  # text and binaries are Python objects, and a clock looks like a Boolean
}


class PythonComponent:
    """A component of a system that is written in Python: a controller, a driver, a signal; no FMU is needed.

    A subclass declares its variables and computes one step. Its variables are attributes with the present values:

    >>> class Proportional(PythonComponent):
    ...     inputs = {"speed": 0.0}
    ...     outputs = {"torque": 0.0}
    ...     parameters = {"gain": 2.0, "target": 10.0}
    ...     units = {"speed": "rad/s", "torque": "N.m"}
    ...
    ...     def step(self, t: float, h: float) -> None:
    ...         self.torque = self.gain * (self.target - self.speed)

    >>> from fmimaster import SystemBuilder
    >>> system = SystemBuilder("drive")
    >>> system.add("controller", Proportional(), {"gain": 3.0})
    'controller'

    Functions can replace a class: ``PythonComponent(inputs=..., outputs=..., step=function)``. They take the component
    as their first argument.

    Each run works with a copy of the object that was added, so that runs do not influence each other.

    Parameters
    ----------
    inputs, outputs, parameters, states : name → start value
        Variables by their names, which must be names of Python attributes. States are kept from step to step; they can
        be recorded, as outputs are. A number is a Float64, ``True`` or ``False`` a Boolean, a text a String; numbers of
        NumPy have their own types (``np.int32(0)`` is an Int32). A list or an array of numbers is an array variable of
        its shape.
    units : name → unit
        A name, such as ``"rad/s"``, or a :class:`Unit`; only values with a :class:`Unit` are converted.
    discrete : names
        Floating point variables that change only at single instants, such as the output of a sampled controller.
    dependencies : output → names of inputs
        Inputs on which an output depends directly, through :meth:`output`. Without it, each output is assumed to depend
        on all inputs if there is such a method.
    can_go_back : bool
        Whether a step can be undone and repeated. False if the step has external effects, for example on a device.
    step, output : function
        Functions instead of the methods of the same name.
    """

    inputs: Mapping[str, Any] = {}
    outputs: Mapping[str, Any] = {}
    parameters: Mapping[str, Any] = {}
    states: Mapping[str, Any] = {}
    units: Mapping[str, str | Unit] = {}
    discrete: Iterable[str] = ()
    dependencies: Mapping[str, Iterable[str]] | None = None
    can_go_back: bool = True

    _functions: Mapping[str, Callable[..., Any]] = {}
    """Functions instead of methods."""

    if TYPE_CHECKING:  # the variables, which only the declarations define

        def __getattr__(self, name: str) -> Any: ...

        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(
        self,
        *,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        states: Mapping[str, Any] | None = None,
        units: Mapping[str, str | Unit] | None = None,
        discrete: Iterable[str] | None = None,
        dependencies: Mapping[str, Iterable[str]] | None = None,
        can_go_back: bool | None = None,
        step: Callable[[Any, float, float], None] | None = None,
        output: Callable[[Any, float], None] | None = None,
        **unknown: NoReturn,
    ) -> None:
        given = {
            "inputs": inputs,
            "outputs": outputs,
            "parameters": parameters,
            "states": states,
            "units": units,
            "discrete": discrete,
            "dependencies": dependencies,
            "can_go_back": can_go_back,
        }
        for name in unknown:
            raise DescriptionError(
                f"{type(self).__name__}({name}=...): there is no such argument."
                f"{did_you_mean(name, [*given, 'step', 'output'])}"
            )
        vars(self).update({name: value for name, value in given.items() if value is not None})
        functions = {"step": step, "output": output}
        self._functions = {name: act for name, act in functions.items() if act is not None}

    # What a subclass defines

    def start(self, t: float) -> None:
        """Called once before the first step, with the start time in s: parameters have their values."""

    def step(self, t: float, h: float) -> None:
        """Go from ``t`` to ``t + h``, both in s: set outputs and states to their values at the end.

        Inputs have the values that the algorithm gives them for this step: with Jacobi those at ``t``.
        """

    def output(self, t: float) -> None:
        """Set outputs that depend directly on inputs, at ``t`` in s. Called after :meth:`start` and each step."""

    def stop(self) -> None:
        """Called once after the last step, also if the run has failed."""

    def save(self) -> Any:
        """Save the state at this instant, without the declared variables, as a value of any type.

        By default it returns a copy of all attributes. Define it, with :meth:`restore`, if that is too slow or not
        possible.
        """
        return self._copied({n: v for n, v in vars(self).items() if n not in _DECLARATIONS})

    def restore(self, saved: Any) -> None:
        """Restore a state that :meth:`save` has returned; it may be called again with the same one."""
        vars(self).update(self._copied(saved))

    def _copied(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The attributes, with copies of mutable values except this object itself."""
        mutable = {n: v for n, v in attributes.items() if type(v) not in _ATOMS}
        return {**attributes, **copy.deepcopy(mutable, {id(self): self})} if mutable else attributes

    # For fmimaster

    def called(self, name: str) -> Callable[..., Any]:
        """The method of that name, or the function that was given instead."""
        function = self._functions.get(name)
        return getattr(self, name) if function is None else partial(function, self)

    def has_direct_outputs(self) -> bool:
        """Whether outputs are computed from inputs at one instant."""
        return "output" in self._functions or type(self).output is not PythonComponent.output

    def model(self) -> Model:
        """The model description of this component.

        Raises
        ------
        DescriptionError
            If a declaration is wrong.
        """
        return _Declarations(self).model()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(names) or "-" for names in (self.inputs, self.outputs))
        return f"<{type(self).__name__}: {inputs} -> {outputs}>"


_DECLARATIONS = frozenset(
    {*_GROUPS, "units", "discrete", "dependencies", "can_go_back", "_functions"}
)
"""Attributes that describe the component and do not change in a run."""


class _Declarations:
    """The declarations of a component, checked."""

    _NAMED: ClassVar = ("units", "discrete", "dependencies")

    def __init__(self, component: PythonComponent) -> None:
        self.component = component
        self.what = type(component).__name__
        self.variables: list[Variable] = []
        self._names = set[str]()
        for group, causality in _GROUPS.items():
            singular = group.removesuffix("s")
            if isinstance(getattr(type(component), singular, None), Mapping):
                raise self._wrong(f"'{singular}' declares nothing. Did you mean '{group}'?")
            declared = getattr(component, group)
            if not isinstance(declared, Mapping):
                raise self._wrong(f"{group}={declared!r}, expected names with start values.")
            for name, start in declared.items():
                self._check_name(group, name)
                self._names.add(name)
                self.variables.append(
                    self._variable(name, causality, vars(component).get(name, start))
                )
        for declaration in self._NAMED:
            for name in getattr(component, declaration) or ():
                if name not in self._names:
                    near = did_you_mean(name, [v.name for v in self.variables])
                    raise self._wrong(
                        f"{declaration} names '{name}', which is not a variable.{near}"
                    )

    def _wrong(self, what: str) -> DescriptionError:
        return DescriptionError(f"Python component {self.what}: {what}")

    def _check_name(self, group: str, name: object) -> None:
        is_name = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
        if not is_name or str(name).startswith("_"):
            raise self._wrong(
                f"{group} has the name {name!r}. Expected the name of a Python attribute, such as 'speed'."
            )
        if name in self._names:
            raise self._wrong(f"the variable '{name}' is declared twice. Rename one of them.")
        if hasattr(type(self.component), str(name)):
            raise self._wrong(
                f"{group} has the name '{name}', which is a method or an attribute of the class. Rename the variable."
            )

    def _variable(self, name: str, causality: Causality, start: Any) -> Variable:
        kind, values = self._typed(name, start)
        is_held = not kind.is_float or name in self.component.discrete
        is_computed = causality is Causality.OUTPUT and self.component.has_direct_outputs()
        return Variable(
            name=name,
            value_reference=len(self.variables),
            type=kind,
            causality=causality,
            variability=Variability.TUNABLE
            if causality is Causality.PARAMETER
            else Variability.DISCRETE
            if is_held
            else Variability.CONTINUOUS,
            initial=Initial.CALCULATED if is_computed else Initial.EXACT,
            start=tuple(values.ravel().tolist()),
            dimensions=values.shape,
            shape=values.shape,
            unit=self._unit(name),
        )

    def _typed(self, name: str, start: Any) -> tuple[DataType, np.ndarray[Any, Any]]:
        """The type of a variable by its start value."""
        values = np.asarray(start)
        is_of_numpy = isinstance(start, np.ndarray | np.generic)
        if values.dtype.kind == "U":
            return DataType.STRING, values.astype(object)
        if values.dtype.kind in "iu" and not is_of_numpy:  # 0 is meant as a number, not as an Int64
            values = values.astype(np.float64)
        kind = _TYPES.get(values.dtype)
        if kind is None or values.size == 0:
            raise self._wrong(
                f"the start value of '{name}' is {start!r}. Expected a number, a truth value, a text, or an array of them."
            )
        return kind, values

    def _unit(self, name: str) -> Unit | None:
        unit = self.component.units.get(name)
        if unit is not None and not isinstance(unit, str | Unit):
            raise self._wrong(
                f"the unit of '{name}' is {unit!r}. Expected its name, such as 'N.m'."
            )
        return Unit(unit) if isinstance(unit, str) else unit

    def _dependencies(self) -> dict[str, frozenset[str]]:
        """Output → inputs on which it depends at one instant."""
        component, given = self.component, self.component.dependencies
        inputs = frozenset(component.inputs)
        if given is None:
            every = inputs if component.has_direct_outputs() else frozenset[str]()
            return dict.fromkeys(component.outputs, every)
        for output, names in given.items():
            if output not in component.outputs or isinstance(names, str) or set(names) - inputs:
                raise self._wrong(
                    f"dependencies={{{output!r}: {names!r}}}. Expected an output, with a sequence of names of inputs."
                )
        return {output: frozenset(given.get(output, ())) for output in component.outputs}

    def _check_methods(self) -> None:
        """Refuse a class that computes nothing: probably the name of its method is misspelt."""
        kind, component = type(self.component), self.component
        computes = kind.step is not PythonComponent.step or component.has_direct_outputs()
        if kind is PythonComponent or computes or "step" in component._functions:
            return
        methods = [name for name in vars(kind) if callable(getattr(kind, name))]
        near = "".join(did_you_mean(name, methods) for name in ("step", "output"))
        raise self._wrong(f"it defines neither step(t, h) nor output(t).{near}")

    def model(self) -> Model:
        """The model description from all declarations."""
        self._check_methods()
        dependencies = self._dependencies()
        is_assumed = self.component.dependencies is None and self.component.has_direct_outputs()
        assumed = frozenset(dependencies) if is_assumed else frozenset[str]()
        documented = type(self.component) is not PythonComponent
        described = inspect.getdoc(self.component) if documented else None
        return Model(
            name=self.what,
            fmi_version=Version("none (in Python)"),
            variables=tuple(self.variables),
            dependencies=dependencies,
            initial_dependencies=dependencies,
            assumed_dependencies=assumed,
            assumed_initial_dependencies=assumed,
            capabilities=Capabilities(
                can_get_and_set_fmu_state=self.component.can_go_back,
                can_handle_variable_communication_step_size=True,
            ),
            description=(described or "").partition("\n")[0],
        )
