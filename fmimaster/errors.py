"""The exceptions of fmimaster, and how they are related.

::

    FmimasterError
    ├── InputError              files, systems or options cannot be used; nothing has been simulated
    │   ├── FileError           a file is missing, unreadable, unsafe, or has the wrong type
    │   ├── ModelError          an FMU cannot be used: its model description, its binary, its capabilities
    │   ├── DescriptionError    a system description contradicts itself or its FMUs
    │   └── OptionError         an option or an argument has no meaning here
    │       └── ColumnError     the results have no column of that name; a KeyError as well
    ├── ProgramError            a co-simulation algorithm needs a capability that an FMU lacks, or violates FMI
    ├── AccuracyError           results less accurate than they should be; only raised with ``strict``
    └── SimulationError         a run has started and has failed; holds the rows until then
        ├── CallError           an FMI function returned Discard, Error or Fatal, or could not be called
        ├── NotANumberError      an output became NaN or infinite
        ├── ConvergenceError    an iteration did not converge
        │   └── LoopError       an algebraic loop was not solved
        ├── ConstraintError     a constraint is not met at the start
        ├── ZenoError           events accumulate before a finite time
        └── Interrupted         the user pressed Ctrl-C; a KeyboardInterrupt as well

A run that has ended with doubtful accuracy gives a warning, :class:`AccuracyWarning`.

Each message states what happened and where, what was expected, and what to do. The facts are attributes as well.
"""

from __future__ import annotations

import copyreg
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import FrameType
from typing import Any

from fmimaster.visible import visible


class FmimasterError(Exception):
    """Base of all errors that fmimaster raises on purpose."""

    def __str__(self) -> str:
        # a message holds names, and words of FMUs, and Python shows it as it is
        return visible(super().__str__())


class InputError(FmimasterError):
    """What was given cannot be used; nothing has been simulated."""


class FileError(InputError):
    """A file is missing, unreadable, unsafe, or has the wrong type."""


class ModelError(InputError):
    """An FMU cannot be used: its model description, its binary, its capabilities.

    Attributes
    ----------
    problems : tuple of str
        Each thing that is wrong, a message for itself; the message of the error has them in lines.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DescriptionError(InputError):
    """A system description contradicts itself or its FMUs."""


class OptionError(InputError):
    """An option or an argument has no meaning here."""


class ColumnError(OptionError, KeyError):
    """The results have no column of that name. A KeyError as well, as of any mapping.

    Attributes
    ----------
    name : str
        The name that was given.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        known = list(known)
        near = did_you_mean(name, known) or listed(known)
        super().__init__(f"The results have no column '{name}'.{near}")
        self.name = name

    def __str__(self) -> str:
        return visible(self.args[0])  # a KeyError shows the repr

    def __reduce__(self) -> tuple[Any, ...]:
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class ProgramError(FmimasterError):
    """A co-simulation algorithm needs a capability that an FMU lacks, or violates FMI."""


class AccuracyError(FmimasterError):
    """Results less accurate than they should be, which the setting ``strict`` refuses: they would be, or they are.

    Attributes
    ----------
    warnings : tuple of str
        What would be an :class:`AccuracyWarning` otherwise.
    results : Results or None
        Of the whole run, if only the run has shown it.
    """

    def __init__(self, warnings: Sequence[str], results: Any = None) -> None:
        super().__init__(
            "\n".join(["The results are less accurate than they should be.", *warnings])
        )
        self.warnings = tuple(warnings)
        self.results = results

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.warnings, self.results)


class SimulationError(FmimasterError):
    """A run was begun and could not be ended.

    Attributes
    ----------
    time : float or None
        Time in s at which it happened, None before the start time was reached.
    results : Results or None
        All rows that had been computed; set by ``Simulation.run``.
    """

    def __init__(self, message: str, *, time: float | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.results: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # not by way of the constructor: an exception would call it without the names of its arguments
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class CallError(SimulationError):
    """An FMI function returned Discard, Error or Fatal, or could not be called.

    Attributes
    ----------
    instance, function, status : str
        Name of the instance, of the FMI function, and of the status it returned (``"fmi3Error"``).
    messages : tuple of str
        The last messages that the FMU has logged, oldest first.
    """

    def __init__(
        self,
        message: str,
        *,
        instance: str,
        function: str,
        status: str,
        messages: Sequence[str] = (),
        time: float | None = None,
    ) -> None:
        super().__init__(message, time=time)
        self.instance = instance
        self.function = function
        self.status = status
        self.messages = tuple(messages)


class NotANumberError(SimulationError):
    """An output became NaN or infinite."""


class ConvergenceError(SimulationError):
    """An iteration did not converge."""


class LoopError(ConvergenceError):
    """An algebraic loop was not solved.

    Attributes
    ----------
    loop : tuple of str
        Its variables, ``"instance.variable"``.
    reason, method : str
    sweeps : int
    values : unknown → value
        Of the attempt with the smallest residual, in the unit of the output; of a discrete loop the last ones.
    residuals : unknown → float
        Of that attempt, in the unit of the output; of a discrete loop there are none.
    """

    def __init__(
        self,
        message: str,
        *,
        loop: Sequence[str],
        reason: str,
        method: str,
        sweeps: int,
        values: Mapping[str, Any],
        residuals: Mapping[str, float],
        time: float | None = None,
    ) -> None:
        super().__init__(message, time=time)
        self.loop, self.reason, self.method, self.sweeps = tuple(loop), reason, method, sweeps
        self.values, self.residuals = dict(values), dict(residuals)


class ConstraintError(SimulationError):
    """A constraint is not met at the start.

    Attributes
    ----------
    constraint : str
        Full name of its component.
    differences : output → float
        Of positions (``gap``) and velocities (``der(gap)``), in the units of the first end.
    """

    def __init__(
        self,
        message: str,
        *,
        constraint: str,
        differences: Mapping[str, float],
        time: float | None = None,
    ) -> None:
        super().__init__(message, time=time)
        self.constraint, self.differences = constraint, dict(differences)


class ZenoError(SimulationError):
    """Events accumulate before a finite time.

    Attributes
    ----------
    limit : float
        An estimate of that time in s.
    """

    def __init__(self, message: str, *, time: float, limit: float) -> None:
        super().__init__(message, time=time)
        self.limit = limit


class Interrupted(SimulationError, KeyboardInterrupt):
    """The user pressed Ctrl-C; a KeyboardInterrupt as well, so that no other code handles it as an ordinary error."""


class AccuracyWarning(UserWarning):
    """A run has ended, but its results are less accurate than they should be: the message tells where, and what to do."""


def warn_of(texts: Iterable[str]) -> None:
    """Give each as an AccuracyWarning, at the line that has called fmimaster."""
    package = str(Path(__file__).parent) + os.sep
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, AccuracyWarning, stacklevel=level)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Sentence that suggests the nearest known name, with a leading blank; empty if none is near.

    Names that differ in case only come first; a name that is the last part of a dotted one counts as near.
    """
    known = list(known)
    folded = [k for k in known if k.lower() == name.lower()]
    tails = [k for k in known if k.rpartition(".")[2] == name]
    return suggested(folded or tails[:3] or get_close_matches(name, known, n=3, cutoff=0.6))


def suggested(names: Sequence[str]) -> str:
    """Sentence that suggests these names, with a leading blank; empty if there are none."""
    return f" Did you mean {' or '.join(map(repr, names))}?" if names else ""


_LISTED = 8
"""Names in a message; of more, the rest is counted."""


def listed(names: Sequence[str]) -> str:
    """Sentence that lists these names, with a leading blank; of many, the first ones and the number of the others."""
    if not names:
        return " There are none."
    others = len(names) - _LISTED
    more = f" and {others} more" if others > 0 else ""
    return f" There are {', '.join(names[:_LISTED])}{more}."
