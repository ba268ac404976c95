"""The functions of CVODE, from the SUNDIALS libraries that fmpy contains.

Source: Hindmarsh et al. (2005), SUNDIALS: Suite of nonlinear and differential/algebraic equation solvers, ACM
Transactions on Mathematical Software 31(3).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_void_p
from functools import lru_cache
from typing import Any

from fmimaster.base.errors import OptionError

DERIVATIVES = ctypes.CFUNCTYPE(c_int, c_double, c_void_p, c_void_p, c_void_p)
"""``CVRhsFn``: time, states, their derivatives, user data → 0, or a negative number for a failure."""
JACOBIAN = ctypes.CFUNCTYPE(c_int, c_double, *[c_void_p] * 7)
"""``CVLsJacFn``: time, states, their derivatives, matrix, user data, three vectors → as above."""
MESSAGE = ctypes.CFUNCTYPE(None, c_int, c_char_p, c_char_p, c_char_p, c_int, c_void_p, c_void_p)
"""``SUNErrHandlerFn``: line, function, file, message, code, user data, context."""

ONE_STEP = 2
"""Task of ``CVode``: one step, not beyond the stop time."""
BDF = 2
"""Method of ``CVodeCreate``: backward differentiation formulas, for stiff systems."""

_HANDLE = POINTER(c_void_p)
_FUNCTIONS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "core": {
        "SUNContext_Create": (c_int, c_int, _HANDLE),
        "SUNContext_ClearErrHandlers": (c_int, c_void_p),
        "SUNContext_PushErrHandler": (c_int, c_void_p, MESSAGE, c_void_p),
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


class Sundials:
    """The functions by their names, as attributes."""

    def __init__(self, libraries: Any) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        for library, functions in _FUNCTIONS.items():
            loaded = getattr(libraries, f"sundials_{library}")
            for name, (result, *arguments) in functions.items():
                function = loaded[name]  # a new object: fmpy has declared its own argument types
                function.restype, function.argtypes = result, arguments
                self._functions[name] = function

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]

    def address(self, name: str) -> int:
        """Address of a function."""
        function: Any = self._functions[name]
        return ctypes.cast(function, c_void_p).value or 0


@lru_cache(maxsize=1)
def sundials() -> Sundials:
    """The libraries, loaded once.

    Raises
    ------
    OptionError
        If fmpy has none for this platform, or of another version.
    """
    try:
        from fmpy.sundials import libraries  # loads five libraries

        return Sundials(libraries)
    except Exception as error:  # fmpy raises Exception itself for another version of SUNDIALS
        raise OptionError(
            f"The solver cvode needs the SUNDIALS libraries of fmpy, which cannot be loaded here: {error}. "
            "Use the solver dormand-prince."
        ) from error
