"""CVODE as the integrator of Model Exchange FMUs, for stiff models."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_double, c_void_p
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from fmimaster.errors import OptionError
from fmimaster.fmu.model_exchange.integrator import (
    Equations,
    Integration,
    Integrator,
    StuckError,
    Vector,
)
from fmimaster.fmu.model_exchange.one_step import DormandPrince
from fmimaster.fmu.model_exchange.sundials import (
    BDF,
    DERIVATIVES,
    JACOBIAN,
    MESSAGE,
    ONE_STEP,
    sundials,
)

LARGEST_JUMP = 1.0
"""Largest change of the states over a step by jumps of the inputs, in units of the tolerance, for which CVODE goes on
without a restart. Without restarts at larger ones, an oscillator with held inputs is ten times less accurate or fails."""

_SUCCESS, _RECOVERABLE, _FAILED = 0, 1, -1
"""Answers of a callback: it was computed; try a shorter step; give up."""
_NONE = -1
"""No warning that a step is too short to change the time; it is an error here."""
_TOO_CLOSE = -27
"""``CV_TOO_CLOSE``: the end of the step is the present time, apart from rounding."""


@dataclass(frozen=True, kw_only=True)
class Cvode(Integrator):
    """CVODE: backward differentiation formulas of variable order, for stiff models.

    The step size and the order follow from earlier steps. They begin anew after an event, after an input has jumped by
    more than the tolerance, and when an earlier state was restored; otherwise not. The Jacobian consists of directional
    derivatives if the FMU provides them, otherwise of difference quotients.

    Parameters
    ----------
    relative : float
        Relative tolerance. Default: the tolerance of the run.
    absolute : float
        Absolute tolerance, in units of the nominal value of each state. Default: the relative tolerance.

    Raises
    ------
    OptionError
        If a tolerance is not above 0, or fmpy has no SUNDIALS libraries for this platform.

    Source: Hindmarsh et al. (2005), SUNDIALS: Suite of nonlinear and differential/algebraic equation solvers.
    """

    relative: float | None = None
    absolute: float | None = None

    def __post_init__(self) -> None:
        for name in ("relative", "absolute"):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < 1.0:
                raise OptionError(f"Cvode: {name}={value!r}, expected a number between 0 and 1.")

    def start(self, equations: Equations, tolerance: float) -> Integration:
        """The integration of an instance."""
        relative = self.relative or tolerance
        if not equations.n:  # there is nothing to integrate: only events
            return DormandPrince().start(equations, relative)
        return CvodeIntegration(equations, relative, self.absolute or relative)

    @property
    def words(self) -> str:
        """Its settings in a few words."""
        given = ((name, getattr(self, name)) for name in ("relative", "absolute"))
        return ", ".join(["CVODE", *(f"{name} {value:g}" for name, value in given if value)])


class CvodeIntegration(Integration):
    """The integration of one instance.

    Parameters
    ----------
    relative, absolute : float
        Tolerances; the absolute one in units of the nominal values.
    """

    def __init__(self, equations: Equations, relative: float, absolute: float) -> None:
        self._equations, self._relative, self._absolute = equations, relative, absolute
        self._raised: BaseException | None = None
        """The exception of a callback, which CVODE cannot pass on."""
        self._message = ""
        self._sundials = s = sundials()
        n = equations.n
        self.states, self._work, self._tolerances, self._slopes = (np.zeros(n) for _ in range(4))
        self._views: dict[int, Vector] = {}
        """Address of the elements of a vector of CVODE → the vector as an array."""
        self._time, self._size = c_double(), c_double()
        self._is_fresh = True
        """Whether no step was done since it began."""
        self._context = c_void_p()
        s.SUNContext_Create(0, byref(self._context))
        self._callbacks: tuple[Any, ...] = (
            MESSAGE(self._keep_message),
            DERIVATIVES(self._derive),
            JACOBIAN(self._linearize),
        )
        on_message, derivatives, jacobian = self._callbacks
        s.SUNContext_ClearErrHandlers(self._context)  # the default one prints
        s.SUNContext_PushErrHandler(self._context, on_message, None)
        self._vectors = [
            s.N_VMake_Serial(n, array.ctypes.data, self._context)
            for array in (self.states, self._work, self._tolerances)
        ]
        self._matrix = s.SUNDenseMatrix(n, n, self._context)
        self._solver = s.SUNLinSol_Dense(self._vectors[0], self._matrix, self._context)
        self._memory = c_void_p(s.CVodeCreate(BDF, self._context))
        s.CVodeInit(self._memory, derivatives, 0.0, self._vectors[0])
        self._set_tolerances()
        s.CVodeSetLinearSolver(self._memory, self._solver, self._matrix)
        s.CVodeSetMaxHnilWarns(self._memory, _NONE)
        if equations.has_jacobian:
            s.CVodeSetJacFn(self._memory, jacobian)

    # What CVODE calls

    def _keep_message(self, *arguments: Any) -> None:
        """Receive a message; the fourth argument is its text."""
        self._message = arguments[3].decode("utf-8", "replace")

    def _guarded(self, compute: Callable[[], bool]) -> int:
        """What a callback returns; an exception is kept."""
        try:
            return _SUCCESS if compute() else _RECOVERABLE
        except BaseException as error:  # Ctrl-C too: it is raised again in advance()
            self._raised = error
            return _FAILED

    def _derive(self, time: float, states: int, derivatives: int, _: int) -> int:
        equations = self._equations
        return self._guarded(
            lambda: (
                equations.move(time, self._view(states))
                and equations.derive(self._view(derivatives))
            )
        )

    def _linearize(self, time: float, states: int, _: int, matrix: int, *others: int) -> int:
        del others
        n, equations = self._equations.n, self._equations
        first = self._sundials.SUNDenseMatrix_Data(matrix)

        def fill() -> bool:
            seeds = np.eye(n)
            columns = _array(first, n * n).reshape(n, n)  # SUNDIALS stores column by column
            return equations.move(time, self._view(states)) and all(
                equations.multiply_jacobian(seed, column)
                for seed, column in zip(seeds, columns, strict=True)
            )

        return self._guarded(fill)

    def _view(self, vector: int) -> Vector:
        """The elements of a vector."""
        address: int = self._sundials.N_VGetArrayPointer(vector)
        view = self._views.get(address)
        if view is None:
            view = self._views[address] = _array(address, self._equations.n)
        return view

    # The integration

    def restart(self, time: float, states: Vector) -> None:
        """Start here; go on instead if the states are those that it has reached, and their derivatives nearly so."""
        stays = time == self._time.value and np.array_equal(states, self.states)
        if stays and not self._is_fresh and self._jump(time) <= LARGEST_JUMP:
            return
        self._time.value = time
        self.states[:] = states
        self._begin()

    def _begin(self) -> None:
        self._set_tolerances()
        self._sundials.CVodeReInit(self._memory, self._time, self._vectors[0])
        self._is_fresh = True

    def _set_tolerances(self) -> None:
        self._tolerances[:] = self._absolute * self._equations.nominals
        self._sundials.CVodeSVtolerances(self._memory, self._relative, self._vectors[2])

    def _jump(self, time: float) -> float:
        """Change of the states over a step because derivatives have jumped, in units of the tolerance."""
        s = self._sundials
        if not self._equations.derive(self._slopes):
            return np.inf
        s.CVodeGetDky(self._memory, time, 1, self._vectors[1])  # the derivatives until here
        s.CVodeGetLastStep(self._memory, byref(self._size))
        tolerances = self._relative * np.abs(self.states) + self._tolerances
        change = self._size.value * (self._slopes - self._work) / tolerances
        return sqrt(float(np.mean(change**2)))

    def advance(self, end: float) -> float:
        """One step, not beyond ``end``; returns the time reached."""
        before = self._time.value
        flag = self._step(end)
        if (
            flag < 0 and not self._is_fresh
        ):  # the derivatives of now do not continue those of the last steps
            self._begin()
            flag = self._step(end)
        if flag == _TOO_CLOSE:
            self._time.value = end
        elif flag < 0:
            raise StuckError(self._time.value, self._message)
        elif self._time.value <= before:
            raise StuckError(before, f"Steps have become too short at t = {before:.12g} s.")
        else:
            self._is_fresh = False
        self._equations.move(self._time.value, self.states)
        return self._time.value

    def _step(self, end: float) -> int:
        s = self._sundials
        s.CVodeSetStopTime(self._memory, end)
        vector, reached = self._vectors[0], byref(self._time)
        flag: int = s.CVode(self._memory, end, vector, reached, ONE_STEP)
        if self._raised is not None:
            error, self._raised = self._raised, None
            raise error
        return flag

    def between(self, time: float, states: Vector) -> None:
        """States at a time inside the last step."""
        self._sundials.CVodeGetDky(self._memory, time, 0, self._vectors[1])
        states[:] = self._work

    def free(self) -> None:
        """Release the memory of CVODE."""
        if not self._memory:
            return
        s = self._sundials
        s.CVodeFree(byref(self._memory))  # sets it to null
        s.SUNLinSolFree(self._solver)
        s.SUNMatDestroy(self._matrix)
        for vector in self._vectors:
            s.N_VDestroy(vector)
        s.SUNContext_Free(byref(self._context))
        self._callbacks = ()  # they refer to this object


def _array(address: int, size: int) -> Vector:
    return np.ctypeslib.as_array((c_double * size).from_address(address))
