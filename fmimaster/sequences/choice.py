"""The sequence of a run: that of the user, else that of the system description, else the automatic one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TypeAlias

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.sequences.methods import AUTOMATIC, METHODS, QUICK, SequenceMethod
from fmimaster.sequences.units import Units

SequenceSetting: TypeAlias = SequenceMethod | Sequence[str] | str
"""A method, names of all components, or the name of a method."""

THE_SYSTEM, THE_USER = "the system", "the user"
AT_ANY_RATE = 50
"""Up to this number of units the best sequence is searched even if it has no influence, because the page of the plan shows
its benefit. The search takes a moment; for a thousand units with many connections, it takes ten seconds."""

GIVEN = (THE_SYSTEM, THE_USER)
"""Origins of a given sequence, in words; any other sequence was chosen by a method."""

_METHODS = f"a method ({', '.join(METHODS)})"


def check_sequence(setting: SequenceSetting | None) -> None:
    """Refuse a setting that names neither a method nor components.

    Raises
    ------
    OptionError
    """
    if setting is None or isinstance(setting, SequenceMethod):
        return
    if isinstance(setting, str):
        if setting not in METHODS:
            raise OptionError(
                f"sequence: there is no method '{setting}'.{did_you_mean(setting, METHODS)} Give {_METHODS}, or the names "
                "of all components in the order in which they are to step."
            )
    elif not isinstance(setting, Sequence) or not all(isinstance(name, str) for name in setting):
        raise OptionError(
            f"sequence: {setting!r}, expected {_METHODS}, an object such as LeastStale(), or a list of the names of all "
            "components."
        )


def choose_sequence(
    units: Units,
    setting: SequenceSetting | None = None,
    described: Sequence[str] = (),
    unnamed: Collection[str] = (),
    *,
    matters: bool = True,
) -> tuple[tuple[str, ...], str]:
    """The sequence of a run.

    Parameters
    ----------
    setting
        The setting of the user; None if there is none.
    described
        The sequence in the system description; empty if there is none.
    unnamed
        Units that users do not name, for example the table of an input file. They step first.
    matters
        Whether the results depend on the sequence.

    Returns
    -------
    The names of all units in the order in which they step, and who chose it, in words.

    Raises
    ------
    OptionError
        If names are missing, repeated or unknown.
    """
    if setting is None and described:
        try:
            return _named(described, "Sequence of the system", units, unnamed), THE_SYSTEM
        except OptionError as error:
            raise OptionError(
                f"{error} Correct it in the system description, or give another one (--sequence)."
            ) from None
    if setting is None:
        setting = AUTOMATIC if matters or len(units.names) <= AT_ANY_RATE else QUICK
    if isinstance(setting, str):
        return METHODS[setting].choose(units), f"method {setting}"
    if isinstance(setting, SequenceMethod):
        return setting.choose(units), repr(setting)
    return _named(setting, "sequence", units, unnamed), THE_USER


def _named(
    names: Sequence[str], where: str, units: Units, unnamed: Collection[str]
) -> tuple[str, ...]:
    known = dict.fromkeys(name for name in units.names if name not in unnamed)
    for name in names:
        if name not in known:
            meant = did_you_mean(name, known) or f" There {_listed(tuple(known), is_last=False)}."
            raise OptionError(
                f"{where}: there is no component '{name}'.{meant} Name each of the components once."
            )
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise OptionError(
            f"{where}: {_listed(repeated)} named more than once. Each component steps once: name it once."
        )
    given = set(names)
    missing = [name for name in known if name not in given]
    if missing:
        raise OptionError(f"{where}: {_listed(missing)} missing. Name each of the components once.")
    return (*(name for name in units.names if name in unnamed), *names)


def _listed(names: Sequence[str], *, is_last: bool = True) -> str:
    """The first names and the number of further names, with the verb after or before them."""
    shown = ", ".join(f"'{name}'" for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{shown}{more} {verb}" if is_last else f"{verb} {shown}{more}"


_SHOWN = 5
"""Largest number of names that a message lists."""
