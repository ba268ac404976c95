"""CVODE as the integrator of Model Exchange FMUs, for stiff models, from the SUNDIALS libraries that fmpy contains.

``kernel/cvode.c`` makes the same calls in the same order, so that both executors agree in every bit. It gets the
addresses of the functions, since fmpy has the libraries without headers: so the kernel is built without SUNDIALS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int, c_int64, c_void_p, cast
from enum import Enum
from functools import cache
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.fmu.model_exchange.integrator import (
    Equations,
    ErrorControlled,
    Integration,
    KernelIntegrators,
    StuckError,
    Vector,
)
from fmimaster.fmu.model_exchange.one_step import TOO_SHORT, DormandPrince

_DERIVATIVES = CFUNCTYPE(c_int, c_double, c_void_p, c_void_p, c_void_p)
"""``CVRhsFn``: time, states, their derivatives, user data → 0, or a negative number for a failure."""
_JACOBIAN = CFUNCTYPE(c_int, c_double, *[c_void_p] * 7)
"""``CVLsJacFn``: time, states, their derivatives, matrix, user data, three vectors → as above."""
_MESSAGE = CFUNCTYPE(None, c_int, c_char_p, c_char_p, c_char_p, c_int, c_void_p, c_void_p)
"""``SUNErrHandlerFn``: line, function, file, message, code, user data, context."""

_ONE_STEP = 2
"""Task of ``CVode``: one step, not beyond the stop time."""
_BDF = 2
"""Method of ``CVodeCreate``: backward differentiation formulas, for stiff systems."""

_HANDLE = POINTER(c_void_p)
_FUNCTIONS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "core": {
        "SUNContext_Create": (c_int, c_int, _HANDLE),
        "SUNContext_ClearErrHandlers": (c_int, c_void_p),
        "SUNContext_PushErrHandler": (c_int, c_void_p, _MESSAGE, c_void_p),
        "SUNContext_Free": (c_int, _HANDLE),
        "N_VGetArrayPointer": (c_void_p, c_void_p),
        "N_VDestroy": (None, c_void_p),
        "SUNMatDestroy": (None, c_void_p),
        "SUNLinSolFree": (c_int, c_void_p),
    },
    "nvecserial": {"N_VMake_Serial": (c_void_p, c_int64, c_void_p, c_void_p)},
    "sunmatrixdense": {
        "SUNDenseMatrix": (c_void_p, c_int64, c_int64, c_void_p),
        "SUNDenseMatrix_Data": (c_void_p, c_void_p),
    },
    "sunlinsoldense": {"SUNLinSol_Dense": (c_void_p, c_void_p, c_void_p, c_void_p)},
    "cvode": {
        "CVodeCreate": (c_void_p, c_int, c_void_p),
        "CVodeInit": (c_int, c_void_p, c_void_p, c_double, c_void_p),
        "CVodeReInit": (c_int, c_void_p, c_double, c_void_p),
        "CVodeSVtolerances": (c_int, c_void_p, c_double, c_void_p),
        "CVodeSetLinearSolver": (c_int, c_void_p, c_void_p, c_void_p),
        "CVodeSetUserData": (c_int, c_void_p, c_void_p),
        "CVodeSetJacFn": (c_int, c_void_p, c_void_p),
        "CVodeSetMaxHnilWarns": (c_int, c_void_p, c_int),
        "CVodeSetStopTime": (c_int, c_void_p, c_double),
        "CVode": (c_int, c_void_p, c_double, c_void_p, POINTER(c_double), c_int),
        "CVodeGetDky": (c_int, c_void_p, c_double, c_int, c_void_p),
        "CVodeFree": (None, _HANDLE),
    },
}
"""Library → function → type of its result, and types of its arguments."""


@cache
def sundials() -> Any:
    """The functions by their names, as attributes; the libraries are loaded once.

    Raises
    ------
    OptionError
        If fmpy has none for this platform, or of another version.
    """
    found = SimpleNamespace()
    try:
        from fmpy.sundials import libraries  # loads five libraries

        for library, functions in _FUNCTIONS.items():
            loaded = getattr(libraries, f"sundials_{library}")
            for name, (result, *arguments) in functions.items():
                function = loaded[name]  # a new object: fmpy has declared its own argument types
                function.restype, function.argtypes = result, arguments
                setattr(found, name, function)
    except Exception as error:  # fmpy raises Exception itself for another version of SUNDIALS
        raise OptionError(
            f"The solver cvode needs the SUNDIALS libraries of fmpy, which cannot be loaded here: {error}. "
            "Use the solver dormand-prince."
        ) from error
    return found


def address_of(function: Any) -> int:
    """Address of a function of C, or of a callback."""
    return cast(function, c_void_p).value or 0


LARGEST_JUMP = 1.0
"""Largest change of a state over a step by jumps of the inputs, in units of its tolerance, for which CVODE goes on without
a restart. Without restarts at larger ones, an oscillator with held inputs is ten times less accurate, or fails."""

_SUCCESS, _RECOVERABLE, _FAILED = 0, 1, -1
"""Answers of a callback: it was computed; try a shorter step; give up."""
_TOO_CLOSE = -27
"""``CV_TOO_CLOSE``: the end of the step is the present time, apart from rounding."""


class Jacobian(Enum):
    """How CVODE gets the partial derivatives of the derivatives by the states."""

    DIFFERENCES = "differences"
    """Difference quotients: one evaluation of the derivatives for each state."""
    DIRECTIONAL = "directional"
    """Directional derivatives of the FMU: one call for each state."""


@dataclass(frozen=True)
class Cvode(ErrorControlled):
    """CVODE: backward differentiation formulas of variable order, for stiff models.

    The step size and the order follow from earlier steps. They begin anew where states or nominal values have changed in an
    event, where an event or an input makes the derivatives jump by more than the tolerance, and when an earlier state was
    restored; otherwise not.

    Parameters
    ----------
    relative : float, optional
        Relative tolerance; default: the tolerance of the run, see ``Settings.tolerance``.
    absolute : float, optional
        Tolerance in units of the nominal value of a state; default: the relative one.
    jacobian : Jacobian, optional
        Default: directional derivatives if the FMU provides them, otherwise differences.

    Raises
    ------
    OptionError
        If a tolerance is not above 0.

    Source: Hindmarsh et al. (2005), SUNDIALS: Suite of nonlinear and differential/algebraic equation solvers.
    """

    jacobian: Jacobian | None = None

    title: ClassVar[str] = "CVODE"
    remembers: ClassVar[bool] = True
    twin: ClassVar[str] = "cvode"

    @property
    def words(self) -> str:
        """Its settings in a few words."""
        return super().words + (f", Jacobian: {self.jacobian.value}" if self.jacobian else "")

    @property
    def needs_jacobian(self) -> bool:
        """Whether it uses the directional derivatives of the FMU, and nothing else."""
        return self.jacobian is Jacobian.DIRECTIONAL

    def start(self, equations: Equations, tolerance: float) -> Integration:
        """The integration of an instance.

        Raises
        ------
        OptionError
            If fmpy has no SUNDIALS libraries for this platform.
        """
        relative, absolute = self.tolerances(tolerance)
        if not equations.n:  # there is nothing to integrate: only events
            return DormandPrince().start(equations, relative)
        differences = self.jacobian is Jacobian.DIFFERENCES
        return CvodeIntegration(
            equations, relative, absolute, equations.has_jacobian and not differences
        )


class CvodeIntegration(Integration):
    """The integration of one instance.

    Parameters
    ----------
    relative, absolute : float
        Tolerances; the absolute one in units of the nominal values.
    has_jacobian : bool
        Whether the Jacobian consists of directional derivatives of the FMU.

    Attributes
    ----------
    memory, vectors : int, list of int
        Addresses of the memory of CVODE, and of its vectors ``states``, ``work`` and ``tolerances``.
    size : float
        Length in s of the longest step since it began; 0 if it begins.
    """

    judges_events: ClassVar[bool] = True

    def __init__(
        self, equations: Equations, relative: float, absolute: float, has_jacobian: bool
    ) -> None:
        self.equations, self.relative, self.absolute = equations, relative, absolute
        self.has_jacobian = has_jacobian
        self._raised: BaseException | None = None
        """The exception of a callback, which CVODE cannot pass on."""
        self._sundials = sundials()
        n = equations.n
        self.states, self.work, self.tolerances = (np.zeros(n) for _ in range(3))
        self._slopes, self._slopes_before = np.zeros(n), np.zeros(n)
        self._views: dict[int, Vector] = {}
        """Address of the elements of a vector of CVODE → the vector as an array."""
        self._time = c_double()
        self._is_fresh = True
        """Whether no step was done since it began."""
        self._is_known = False
        """Whether the derivatives where it stands are known as they were in the last step."""
        self._events = 0.0
        """How often Event Mode had been entered at the last restart."""
        self._context, self.memory = c_void_p(), c_void_p()
        self._callbacks: tuple[Any, ...] = ()

    def continue_in(self, kernel: KernelIntegrators) -> None:
        """Let the kernel continue with the memory of CVODE."""
        kernel.cvode(self)

    def allocate(
        self, derivatives: int, jacobian: int, data: int | None = None
    ) -> tuple[int, list[int]]:
        """Allocate the memory of CVODE; returns the addresses of the memory and of the vectors.

        Parameters
        ----------
        derivatives, jacobian
            Addresses of the functions that CVODE calls, of the types :data:`_DERIVATIVES` and :data:`_JACOBIAN`.
        data
            Address that is passed to both.
        """
        s, n = self._sundials, self.equations.n
        s.SUNContext_Create(0, byref(self._context))
        on_message = _MESSAGE(self._keep_message)
        self._callbacks += (on_message,)
        s.SUNContext_ClearErrHandlers(self._context)  # the default one prints
        s.SUNContext_PushErrHandler(self._context, on_message, None)
        self.vectors = [
            s.N_VMake_Serial(n, array.ctypes.data, self._context)
            for array in (self.states, self.work, self.tolerances)
        ]
        self._matrix = s.SUNDenseMatrix(n, n, self._context)
        self._solver = s.SUNLinSol_Dense(self.vectors[0], self._matrix, self._context)
        self.memory.value = s.CVodeCreate(_BDF, self._context)
        s.CVodeInit(self.memory, derivatives, 0.0, self.vectors[0])
        s.CVodeSetUserData(self.memory, data)
        s.CVodeSetMaxHnilWarns(self.memory, -1)  # none: a step that is too short is an error here
        s.CVodeSVtolerances(self.memory, self.relative, self.vectors[2])
        s.CVodeSetLinearSolver(self.memory, self._solver, self._matrix)
        if self.has_jacobian:
            s.CVodeSetJacFn(self.memory, jacobian)
        return self.memory.value or 0, self.vectors

    def _keep_message(self, *arguments: Any) -> None:
        """Receive a message; the fourth argument is its text."""
        self.message = arguments[3].decode("utf-8", "replace")

    def _guarded(self, compute: Callable[[], bool]) -> int:
        """What a callback returns; an exception is kept."""
        try:
            return _SUCCESS if compute() else _RECOVERABLE
        except BaseException as error:  # Ctrl-C too: it is raised again in advance()
            self._raised = error
            return _FAILED

    def _derive(self, time: float, states: int, derivatives: int, _: int) -> int:
        equations = self.equations
        return self._guarded(
            lambda: (
                equations.move(time, self._view(states))
                and equations.derive(self._view(derivatives))
            )
        )

    def _linearize(self, time: float, states: int, _: int, matrix: int, *_others: int) -> int:
        n, equations = self.equations.n, self.equations
        first = self._sundials.SUNDenseMatrix_Data(matrix)

        def fill() -> bool:
            columns = _array(first, n * n).reshape(n, n)  # SUNDIALS stores column by column
            return equations.move(time, self._view(states)) and all(
                equations.multiply_jacobian(seed, column)
                for seed, column in zip(np.eye(n), columns, strict=True)
            )

        return self._guarded(fill)

    def _view(self, vector: int) -> Vector:
        """The elements of a vector."""
        address: int = self._sundials.N_VGetArrayPointer(vector)
        view = self._views.get(address)
        if view is None:
            view = self._views[address] = _array(address, self.equations.n)
        return view

    def restart(self, time: float, states: Vector) -> None:
        """Start here; or go on, if nothing but the inputs can have changed, and the derivatives have hardly changed."""
        if not self.memory:
            self._callbacks = _DERIVATIVES(self._derive), _JACOBIAN(self._linearize)
            self.allocate(*map(address_of, self._callbacks))
        is_new = self.size == 0.0  # an earlier state was restored
        if is_new or time != self._time.value or self._has_other_states(states):
            self._is_fresh = True
        may_jump = self.equations.has_inputs or self.events != self._events
        self._events = self.events
        if self._is_fresh or (may_jump and self._has_jumped()):
            self._time.value = time
            self.states[:] = states
            self._begin()

    def _has_other_states(self, states: Vector) -> bool:
        """Whether the states, or their nominal values, are not those of the last step."""
        tolerances = self.absolute * self.equations.nominals
        is_same = np.array_equal(states, self.states)
        return not (is_same and np.array_equal(tolerances, self.tolerances))

    def _begin(self) -> None:
        self.tolerances[:] = self.absolute * self.equations.nominals
        self._sundials.CVodeSVtolerances(self.memory, self.relative, self.vectors[2])
        self._sundials.CVodeReInit(self.memory, self._time, self.vectors[0])
        self._is_fresh, self.size = True, 0.0

    def _has_jumped(self) -> bool:
        """Whether the derivatives have jumped, so that a state differs by more than its tolerance after a step."""
        if not self._is_known or not self.equations.derive(self._slopes):
            return True
        changes = self.size * (self._slopes - self._slopes_before)
        tolerances = self.relative * np.abs(self.states) + self.tolerances
        return not bool((np.abs(changes / tolerances) <= LARGEST_JUMP).all())

    def advance(self, end: float) -> float:
        """One step, not beyond ``end``; returns the time reached."""
        before = self._time.value
        flag = self._step(end)
        if flag < 0 and not self._is_fresh:
            self._begin()  # the derivatives of now do not continue those of the last steps
            flag = self._step(end)
        if flag == _TOO_CLOSE:
            self._time.value = end
        elif flag < 0:
            raise StuckError(before, self.message)
        elif self._time.value <= before:
            raise StuckError(before, TOO_SHORT)
        self._is_fresh, self._is_known = flag == _TOO_CLOSE, False
        self.size = max(self.size, self._time.value - before)
        there, equations = self._time.value, self.equations
        equations.move(there, self.states)
        if there == end and equations.has_inputs:
            self.mark_event()
        return there

    def mark_event(self) -> None:
        """Keep the derivatives, to find out whether they jump."""
        if not self._is_known:
            self._is_known = self.equations.derive(self._slopes_before)

    def _step(self, end: float) -> int:
        s = self._sundials
        s.CVodeSetStopTime(self.memory, end)
        flag: int = s.CVode(self.memory, end, self.vectors[0], byref(self._time), _ONE_STEP)
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        return flag

    def between(self, time: float, states: Vector) -> None:
        """States at a time inside the last step."""
        self._sundials.CVodeGetDky(self.memory, time, 0, self.vectors[1])
        states[:] = self.work

    def free(self) -> None:
        """Release the memory of CVODE."""
        if not self.memory:
            return
        s = self._sundials
        s.CVodeFree(byref(self.memory))  # sets it to null
        s.SUNLinSolFree(self._solver)
        s.SUNMatDestroy(self._matrix)
        for vector in self.vectors:
            s.N_VDestroy(vector)
        s.SUNContext_Free(byref(self._context))
        self._callbacks = ()  # they refer to this object


def _array(address: int, size: int) -> Vector:
    return np.ctypeslib.as_array((c_double * size).from_address(address))
