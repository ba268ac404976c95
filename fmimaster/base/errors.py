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
    ├── AccuracyError           results are less accurate than they should be; only raised with ``strict``
    └── SimulationError         a run has started and has failed; holds the rows up to the failure
        ├── CallError           an FMI function returned Discard, Error or Fatal, or could not be called
        │   └── FmuLostError    the process of an FMU has ended, or was ended because it did not answer
        ├── NotANumberError      an output became NaN or infinite
        ├── ConvergenceError    an iteration did not converge
        │   └── LoopError       an algebraic loop was not solved
        ├── ConstraintError     a constraint is not met at the start
        ├── ZenoError           events accumulate before a finite time
        └── Interrupted         the user pressed Ctrl-C; a KeyboardInterrupt as well

A completed run whose accuracy is doubtful gives a warning, :class:`AccuracyWarning`.

Each message states what happened and where, what was expected, and what to do. The facts are attributes as well.
"""

from __future__ import annotations

import copyreg
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from fmimaster.base.text import listed, visible


class FmimasterError(Exception):
    """Base of all errors that fmimaster raises on purpose."""

    def __str__(self) -> str:
        # a message contains names and texts of FMUs, and Python prints it unchanged
        return visible(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        # without the constructor: an exception would call it without the names of its arguments
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class InputError(FmimasterError):
    """Files, systems or options cannot be used; nothing has been simulated."""


class FileError(InputError):
    """A file is missing, unreadable, unsafe, or has the wrong type."""


class ModelError(InputError):
    """An FMU cannot be used: its model description, its binary, its capabilities.

    Attributes
    ----------
    problems : tuple of str
        One message per problem; the message of the error has one line for each.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class DescriptionError(InputError):
    """A system description contradicts itself or its FMUs."""


class OptionError(InputError):
    """An option or an argument has no meaning here."""


class ColumnError(OptionError, KeyError):
    """The results have no column of that name. It is a KeyError as well, as for any mapping.

    Attributes
    ----------
    name : str
        The name that was given.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        known = list(known)
        near = did_you_mean(name, known) or there_are(known)
        super().__init__(f"The results have no column '{name}'.{near}")
        self.name = name

    def __str__(self) -> str:
        return visible(self.args[0])  # a KeyError shows the repr


class ProgramError(FmimasterError):
    """A co-simulation algorithm needs a capability that an FMU lacks, or violates FMI."""


class AccuracyError(FmimasterError):
    """Results are less accurate than they should be; only raised with the setting ``strict``.

    Attributes
    ----------
    warnings : tuple of str
        The texts that are :class:`AccuracyWarning` without ``strict``.
    results : Results or None
        The results of the whole run, if the problem was found only by the run.
    """

    def __init__(self, warnings: Sequence[str], results: Any = None) -> None:
        super().__init__(
            "\n".join(["The results are less accurate than they should be.", *warnings])
        )
        self.warnings = tuple(warnings)
        self.results = results


class SimulationError(FmimasterError):
    """A run has started and has failed.

    Attributes
    ----------
    time : float or None
        Time in s of the failure; None before the start time was reached.
    results : Results or None
        All rows computed before the failure; set by ``Simulation.run``.
    """

    def __init__(self, message: str, *, time: float | None = None) -> None:
        super().__init__(message)
        self.time = time
        self.results: Any = None


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


class FmuLostError(CallError):
    """The process of an FMU has ended, or was ended because it did not answer in time.

    Attributes
    ----------
    how : str
        The end in words, after the name of the process: ``"was ended by SIGSEGV"``.
    signal : str
        Name of the signal that has ended it, ``"SIGSEGV"``; empty if it was none.
    """

    def __init__(
        self,
        message: str,
        *,
        how: str,
        signal: str = "",
        instance: str,
        function: str,
        time: float | None = None,
    ) -> None:
        super().__init__(message, instance=instance, function=function, status="lost", time=time)
        self.how = how
        self.signal = signal


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
        Values of the attempt with the smallest residual, in the unit of the output; for a discrete loop the last
        values.
    residuals : unknown → float
        Residuals of that attempt, in the unit of the output; empty for a discrete loop.
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
        Differences of positions (``gap``) and velocities (``der(gap)``), in the units of the first end.
    """

    def __init__(self, message: str, *, constraint: str, differences: Mapping[str, float]) -> None:
        super().__init__(message)
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
    """The user pressed Ctrl-C; a KeyboardInterrupt as well, so other code does not handle it as an ordinary error."""


class AccuracyWarning(UserWarning):
    """A completed run has results that are less accurate than they should be; the message has the place and a
    remedy."""


def warn_of(texts: Iterable[str]) -> None:
    """Give each text as an AccuracyWarning, located at the line that called fmimaster."""
    package = str(Path(__file__).parent.parent) + os.sep
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    for text in texts:
        warnings.warn(text, AccuracyWarning, stacklevel=level)


def did_you_mean(name: str, known: Iterable[str], share: float = 0.6) -> str:
    """Sentence that suggests the :func:`nearest` known names, with a leading space; empty if no name is near."""
    return suggested(nearest(name, known, share))


def nearest(name: str, known: Iterable[str], share: float, *, by_tail: bool = True) -> list[str]:
    """The known names that are probably meant; none if less than this share of the letters is equal (as in difflib).

    Names that differ only in case come first. A name is also near if it is the last part of a dotted name (``by_tail``).
    """
    known = list(known)
    folded = [k for k in known if k.lower() == name.lower()]
    tails = [k for k in known if by_tail and k.rpartition(".")[2] == name]
    if folded or tails:
        return folded or tails[:3]
    from difflib import get_close_matches  # few names are wrong

    return get_close_matches(name, known, n=3, cutoff=share)


def suggested(names: Sequence[str]) -> str:
    """Sentence that suggests these names, with a leading space; empty if there are none."""
    return f" Did you mean {' or '.join(map(repr, names))}?" if names else ""


def there_are(names: Sequence[str]) -> str:
    """Sentence that lists the first names and the number of the others, with a leading space."""
    return f" There are {listed(names)}." if names else " There are none."


def unknown_attribute(
    of: object, name: str, elsewhere: Mapping[str, str], hint: str = ""
) -> AttributeError:
    """The error for an attribute that an object does not have.

    Parameters
    ----------
    elsewhere : name → what it is here
        Names that other libraries have.
    hint
        Sentence with a leading blank that is used if ``elsewhere`` does not have the name.
    """
    meant = ""
    if not name.startswith("_"):
        known = [n for n in dir(of) if not n.startswith("_")]
        given = f" Did you mean {elsewhere[name]}?" if name in elsewhere else hint
        meant = given or did_you_mean(name, known)
    return AttributeError(f"'{type(of).__name__}' object has no attribute '{name}'.{meant}")
