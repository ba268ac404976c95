"""A component written in Python as an instance: it calls the methods of the user's object and checks their results.

Attributes of the object are its variables and its state. A step that adds one is an error: a misspelt output would keep its
old value without a message. To count the attributes takes 20 ns.
"""

from __future__ import annotations

import copy
import logging
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError, ModelError, did_you_mean
from fmimaster.fmu.instance import Instance, StepAnswer, Transfer
from fmimaster.system.model import Causality, DataType, Variable
from fmimaster.system.python_component import PythonComponent

log = logging.getLogger("fmimaster")


class PythonInstance(Instance):
    """A copy of a :class:`PythonComponent`, in one run.

    Its variables are attributes of the copy. :meth:`PythonComponent.output` is called when an output is read after an
    input has changed, as FMUs do it.

    Parameters
    ----------
    component : PythonComponent
        The object that the user has added to the system; it is not changed.

    Raises
    ------
    ModelError
        If it cannot be copied.
    """

    def __init__(self, component: PythonComponent, name: str) -> None:
        super().__init__(name, model := component.model())
        try:
            self._object = copy.deepcopy(component)
        except Exception as error:
            raise ModelError(
                f"The Python component '{name}' cannot be copied for a run: {error}. Create objects that cannot be "
                "copied, such as a connection to a device, in start(), or define __deepcopy__."
            ) from error
        self._values = vars(self._object)
        self._step, self._output = map(self._object.called, ("step", "output"))
        self._variables = {v.value_reference: v for v in model.variables}
        self._values.update((v.name, _start(v)) for v in model.variables)
        self._declared = tuple(v.name for v in model.variables)
        self._saves_itself = type(component).save is not PythonComponent.save
        self._has_direct_outputs = component.has_direct_outputs()
        self._is_stale = False
        """Whether an input has changed since outputs were computed."""
        self._time = 0.0
        self._is_initializing = False
        self._is_running = False
        self._inputs = tuple(self._object.inputs)
        self._n_attributes = 0
        """Number of attributes of the object after its start; steps must not add any."""
        self._places: dict[int, tuple[dict[str, Any], Any, float, bool]] = {}

    # Values

    def getter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that reads these attributes into ``values``."""
        del kind
        variables = [self._variables[reference] for reference in references]
        of, is_flat = self._values, all(not v.shape for v in variables)

        def read_scalars() -> None:
            if self._is_stale:
                self._compute()
            for k, v in enumerate(variables):
                value = of.get(v.name)
                values[k] = value if isinstance(value, float) else self._checked(v, value)[0]

        def read() -> None:
            if self._is_stale:
                self._compute()
            at = 0
            for v in variables:
                values[at : at + v.size] = self._checked(v, of.get(v.name))
                at += v.size

        return read_scalars if is_flat and variables[0].type is DataType.FLOAT64 else read

    def setter(self, kind: DataType, references: Sequence[int], values: NDArray[Any]) -> Transfer:
        """A function that sets these attributes from ``values``: numbers of Python, and arrays of NumPy."""
        del kind
        variables = [self._variables[reference] for reference in references]
        names = [v.name for v in variables]
        of, is_flat = self._values, all(not v.shape for v in variables)
        are_inputs = all(v.causality is Causality.INPUT for v in variables)

        def write() -> None:
            if is_flat:
                of.update(zip(names, values.tolist(), strict=True))
            else:
                at = 0
                for v in variables:
                    part = values[at : at + v.size].reshape(v.shape).copy()
                    of[v.name] = part if v.shape else part.item()
                    at += v.size
            self._is_stale = self._has_direct_outputs
            if self._is_initializing and not are_inputs:
                self._begin()

        return write

    def _compute(self) -> None:
        self._is_stale = False
        self._call("output", self._output, self._time)

    def _checked(self, variable: Variable, value: Any) -> NDArray[Any]:
        """The value of an attribute, checked for the variable's type and shape; shape (size,)."""
        kinds, what = _EXPECTED[variable.type]
        array = np.asarray(value)
        if array.shape == variable.shape and array.dtype.kind in kinds:
            with np.errstate(invalid="ignore"):  # NaN as an integer
                converted = array.astype(variable.type.dtype).ravel()
            if not variable.type.is_integer or (converted == array.ravel()).all():
                return converted
        shape = f" of the shape {variable.shape}" if variable.shape else ""
        raise self._error(
            f"'{self.name}.{variable.name}' is {value!r} at t = {self._time:.12g} s. Expected {what}{shape}.",
            variable.name,
            "wrong value",
        )

    # Modes

    def enter_initialization_mode(
        self, start: float, stop: float | None, tolerance: float | None
    ) -> None:
        """Call ``start``."""
        self._time, self._is_initializing, self._is_running = start, True, True
        self._begin()

    def _begin(self) -> None:
        """Call ``start``: again, if a parameter takes its value from another component."""
        self._call("start", self._object.start, self._time)
        self._is_stale = self._has_direct_outputs

    def enter_step_mode(self) -> None:
        """The end of the initialization."""
        self._is_initializing = False
        if self._is_stale:
            self._compute()
        self._n_attributes = len(self._values)

    # Time

    def do_step(self, time: float, size: float) -> StepAnswer | None:
        """Call ``step``."""
        given = [self._values[name] for name in self._inputs]
        answer = self._call("step", self._step, time, size)
        self._time = time + size
        self._is_stale = self._has_direct_outputs
        if answer is not None:
            raise self._error(
                f"step of '{self.name}' has returned {answer!r}. Expected None: it sets outputs as attributes, such as "
                f"self.{next(iter(self._object.outputs), 'torque')} = 1.0.",
                "step",
                "wrong value",
            )
        if len(self._values) != self._n_attributes:
            self._refuse_new_attributes()
        for name, value in zip(self._inputs, given, strict=True):
            if self._values[name] is not value:
                self._refuse_set_input(name)
        return None

    def _refuse_set_input(self, name: str) -> None:
        """An input belongs to what feeds it: a value that a step sets would be lost, or used once."""
        raise self._error(
            f"step of '{self.name}' has set the input '{name}'. Inputs are set by connections. "
            "Declare it in outputs or states.",
            "step",
            "wrong attribute",
        )

    def _refuse_new_attributes(self) -> None:
        """Refuse an attribute that is new after a step: it is a misspelt variable, or an undeclared state."""
        name = list(self._values)[-1]
        raise self._error(
            f"step of '{self.name}' has set the attribute '{name}', which is not declared."
            f"{did_you_mean(name, self._declared)} Declare it in outputs or states, or set it first in start() or "
            "__init__().",
            "step",
            "wrong attribute",
        )

    def save(self, place: int) -> None:
        """Keep the result of ``save``, and the declared variables if the result does not include them."""
        own = self._call("save", self._object.save)
        self._places[place] = self._kept(self._values), own, self._time, self._is_stale

    def restore(self, place: int) -> None:
        """Restore what was kept."""
        values, own, self._time, self._is_stale = self._places[place]
        self._values.update(self._kept(values))
        self._call("restore", self._object.restore, own)

    def serialized(self) -> bytes:
        """The result of :meth:`save` as bytes.

        Raises
        ------
        CallError
            If it is more than numbers, texts, arrays, containers of them, and objects of the component's own module.
        """
        from fmimaster.base.codec import NotPlainError, as_bytes  # few runs

        own = self._call("save", self._object.save)
        state = [self._kept(self._values), own, self._time, self._is_stale]
        try:
            return as_bytes(state, self._modules, is_strict=True)
        except NotPlainError as error:
            raise self._error(
                f"The state of '{self.name}' cannot be written to a file: {error}.",
                "save",
                "not plain",
            ) from None

    def deserialize(self, state: bytes) -> None:
        """Restore a serialized state."""
        from fmimaster.base.codec import from_bytes

        values, own, self._time, self._is_stale = from_bytes(state, self._modules)
        self._values.update(values)
        self._call("restore", self._object.restore, own)

    @property
    def _modules(self) -> frozenset[str]:
        """The module of the component, whose objects a state may contain."""
        return frozenset({type(self._object).__module__})

    def _kept(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The declared variables among some attributes, arrays as copies; none if ``save`` keeps them."""
        if not self._saves_itself:
            return {}
        return {name: copy.copy(values[name]) for name in self._declared}

    # The end

    def terminate(self) -> None:
        """Call ``stop``."""
        if self._is_running:
            self._is_running = False
            self._call("stop", self._object.stop)

    def free(self) -> None:
        """Call ``stop`` if the run has failed before it was called. Never raises."""
        try:
            self.terminate()
        except CallError as error:
            log.warning("%s", error)

    # Calls

    def _call(self, function: str, act: Callable[..., Any], *arguments: float | Any) -> Any:
        try:
            return act(*arguments)
        except (Exception, SystemExit) as error:  # sys.exit() would lose the rows
            step = f" (step {arguments[1]:.6g} s)" if function == "step" else ""
            raise self._error(
                f"{function} of '{self.name}' has raised {type(error).__name__} at t = {self._time:.12g} s{step}: "
                f"{error}.{_place(error.__traceback__)}{_ADVICE.get(function, '')}",
                function,
                type(error).__name__,
            ) from error

    def _error(self, message: str, function: str, status: str) -> CallError:
        return CallError(
            message, instance=self.name, function=function, status=status, time=self._time
        )


_ADVICE = {
    "save": " Define save() and restore() for what cannot be copied, or set can_go_back = False."
}


def _integer(kind: DataType) -> tuple[str, str]:
    limits = np.iinfo(kind.dtype)
    return "iubf", f"an integer from {limits.min} to {limits.max}"


_EXPECTED = {
    **dict.fromkeys((k for k in DataType if k.is_float), ("fiub", "a number")),
    **{k: _integer(k) for k in DataType if k.is_integer},
    DataType.BOOLEAN: ("b", "True or False"),
    DataType.STRING: ("U", "a text"),
}
"""Type → permitted kinds of NumPy for an attribute, and their description."""


def _start(variable: Variable) -> Any:
    """The declared start value in the form of the attribute."""
    assert variable.start is not None
    if not variable.shape:
        return variable.start[0]
    return np.array(variable.start, variable.type.dtype).reshape(variable.shape)


def _place(raised: TracebackType | None) -> str:
    """Where in the user's code an exception was raised, as a sentence."""
    frames = traceback.extract_tb(raised)[1:]  # the first one is in this file
    if not frames or frames[0].filename == sys.modules[PythonComponent.__module__].__file__:
        return ""
    frame = [f for f in frames if f.filename == frames[0].filename][-1]
    code = f": {frame.line}" if frame.line else ""
    return f" It is in line {frame.lineno} of {frame.filename}, in {frame.name}{code}"
