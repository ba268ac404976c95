"""What a setting takes, its option, and what it does to files, as one value: the row of a table.

What a row needs to read or to check a value is named by its place, ``"module:name"`` below fmimaster, and imported then:
a help page shows the options of all rows, and must be fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from numbers import Integral, Real
from typing import Any

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError
from fmimaster.base.public_names import at_place
from fmimaster.configure.named import NO_TOLERANCE, choice


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line.

    Parameters
    ----------
    group : str
        Title of its group on the help page.
    metavar : str, or two for an option that takes ``NAME=VALUE``
        Empty for an option without a value.
    also : str
        What its help says after the first sentence of the text of the setting.
    help : str
        Its help, if that is not this sentence.
    name : str
        Default: that of the setting.
    kind : type
        Of the value; text by default.
    one_run : bool
        Whether only ``simulate`` has it, because it is about one run.
    is_or_not : bool
        Whether it has an opposite with ``--no-``, which is something else than to leave it out.
    hidden : str
        A second name, which the help page does not show.
    """

    group: str
    metavar: str | tuple[str, str] = ""
    also: str = ""
    help: str = ""
    name: str = ""
    kind: type | None = None
    is_repeated: bool = False
    one_run: bool = False
    is_or_not: bool = False
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A setting, or a part of one that has an option of its own.

    Parameters
    ----------
    expected, fits : str, function
        What a message says of a wrong value, and whether a value is right.
    convert : place or function
        From what was given to the value. It may refuse it, too.
    read : place
        The function that reads a text, with the name of the setting or of the option for messages.
    instance : place, what its objects are, example
        The class of which the value is an object.
    needed : bool
        Whether None is refused as other wrong values are.
    not_with : other setting → why
    is_file : bool
        Whether it is, or may be, the path of a file.
    writes : str
        What a run writes to this file.
    beside : str
        What follows the name of the checkpoint in the name of this file, when a run continues.
    changes_rows : bool
        Whether the rows of a run depend on it.
    is_part : bool
        Whether it is no setting, but an option that is a part of one.
    """

    name: str
    option: Option | None = None
    expected: str = ""
    fits: Callable[[Any], bool] | None = None
    convert: str | Callable[[Any], Any] = ""
    read: str = ""
    instance: tuple[str, str, str] | None = None
    needed: bool = False
    not_with: Mapping[str, str] = field(default_factory=dict)
    is_file: bool = False
    writes: str = ""
    beside: str = ""
    changes_rows: bool = True
    is_part: bool = False

    @property
    def spelled(self) -> str:
        """The option."""
        given = "" if self.option is None else self.option.name
        return given or "--" + self.name.replace("_", "-")

    def value(self, given: Any) -> Any:
        """The value of the setting for what was given.

        Raises
        ------
        OptionError
            If it is none.
        """
        if given is None and not self.needed:
            return None
        if self.read and isinstance(given, str):
            given = at_place(self.read)(given, self.name)
        if self.instance:
            expect_instance(given, self.name, *self.instance)
        if self.convert:
            convert = at_place(self.convert) if isinstance(self.convert, str) else self.convert
            given = convert(given)
        if self.fits is not None and not self.fits(given):
            raise OptionError(f"{self.name}: {given!r}, expected {self.expected}.")
        return given


def expect_instance(given: object, where: str, place: str, what: str, example: str) -> None:
    """Refuse what is no object of the class at a place.

    Raises
    ------
    OptionError
    """
    kind = at_place(place)
    if isinstance(given, type) and issubclass(given, kind):
        raise OptionError(
            f"{where}: {given.__name__} is a class. Give an object: {given.__name__}()."
        )
    if not isinstance(given, kind):
        raise OptionError(f"{where}: {given!r} is not {what}. Give an object such as {example}.")


# Kinds of settings ----------------------------------------------------------------------------------------------------


def flag(name: str, group: str = "", also: str = "", *, changes_rows: bool = True) -> Row:
    """A setting that is True or False."""
    option = Option(group, also=also) if group else None
    fits = is_truth_value
    return Row(name, option, "True or False", fits, needed=True, changes_rows=changes_rows)


def positive(name: str, option: Option, expected: str = "a positive number", **more: Any) -> Row:
    """A setting that is a finite positive number."""
    return Row(name, option, expected, is_positive, **more)


def whole(name: str, option: Option, least: int, expected: str, **more: Any) -> Row:
    """A setting that is a whole number."""
    return Row(
        name, option, expected, lambda n: isinstance(n, Integral) and int(n) >= least, **more
    )


def names(name: str, option: Option, expected: str) -> Row:
    """A setting that is names, or one name."""
    expected = f"a sequence of {expected}"
    return Row(name, option, expected, are_names, convert=as_sequence, needed=True)


def path(name: str, option: Option, **more: Any) -> Row:
    """A setting that is a path."""
    return Row(name, option, "a path", is_path, is_file=True, **more)


def member(name: str, option: Option, place: str, what: str, **more: Any) -> Row:
    """A setting that is a member of an enumeration, or its value as text."""

    def convert(given: Any) -> Any:
        kind = at_place(place)
        given = choice(kind, what, given) if isinstance(given, str) else given
        if not isinstance(given, kind):
            raise OptionError(f"{name}: {given!r}, expected one of {[*kind]}.")
        return given

    return Row(name, option, convert=convert, needed=True, **more)


def part(name: str, option: Option, text: str) -> Row:
    """No setting, but an option that is a part of one."""
    return Row(name, replace(option, help=text), is_part=True)


# Values ---------------------------------------------------------------------------------------------------------------


def is_truth_value(given: object) -> bool:
    """Whether it is True or False: "no" would be true."""
    return isinstance(given, bool)


def is_positive(given: object) -> bool:
    """Whether it is a finite number above 0."""
    return isinstance(given, Real) and 0 < float(given) < inf


def is_path(given: object) -> bool:
    """Whether it is a path."""
    return isinstance(given, str | os.PathLike)


def are_names(given: object) -> bool:
    """Whether it is a sequence of texts."""
    is_sequence = isinstance(given, Sequence) and not isinstance(given, str)
    return is_sequence and all(isinstance(entry, str) for entry in given)  # type: ignore[attr-defined]


def as_sequence(given: Any) -> Any:
    """One name as a sequence."""
    return (given,) if isinstance(given, str) else given


def isolation(given: Any) -> Any:
    """Names as a sequence; addresses of one name as well.

    Raises
    ------
    OptionError
        If a text is no address.
    """
    if not is_mapping_of_names(given):
        return as_sequence(given)
    address = at_place("apart.connection:Address.of")
    found = {name: as_sequence(where) for name, where in given.items()}
    for name, where in found.items():
        if where is not True and not (are_names(where) and where):
            raise OptionError(
                f"isolate: '{name}' is {where!r}, expected True for this machine, or the address of a host on another one, "
                "'tcp://HOST:PORT', or several."
            )
        for text in () if where is True else where:
            address(text, "isolate")
    return found


def is_isolation(given: object) -> bool:
    """Whether it is what :func:`isolation` returns."""
    return is_truth_value(given) or are_names(given) or is_mapping_of_names(given)


def is_tolerance(given: object) -> bool:
    """Whether it is a tolerance of FMUs, or the word for none."""
    return given == NO_TOLERANCE or is_positive(given)


def is_mapping_of_names(given: object) -> bool:
    """Whether its keys are texts."""
    return isinstance(given, Mapping) and all(isinstance(name, str) for name in given)


def system(given: Any) -> Any:
    """A path, or a description of a system; a builder has one.

    Raises
    ------
    OptionError
    """
    if isinstance(given, at_place("system.builder:SystemBuilder")):
        return given.build()
    if is_path(given) or isinstance(given, at_place("system.description:SystemDescription")):
        return given
    raise OptionError(
        f"system: {given!r} is neither a path nor a system description. Give the path of an FMU or SSP, or what "
        "SystemBuilder.build() returns."
    )


def bonds(given: Any) -> Any:
    """Power bonds.

    Raises
    ------
    OptionError
    """
    if not isinstance(given, Sequence):
        raise OptionError(f"power_bonds: {given!r}, expected a sequence of power bonds.")
    what, example = "a power bond", "PowerBond('coupling', ports)"
    for bond in given:
        expect_instance(bond, "power_bonds", "system.description:PowerBond", what, example)
    return given


def open_inputs(given: Any) -> Any:
    """The path of a file, or signals."""
    return given if is_path(given) else at_place("configure.input_signals:InputSignals.of")(given)


def solver(given: Any) -> Any:
    """Solvers instead of their texts."""
    found = at_place("configure.reading:solvers")(given)
    at_place("fmu.model_exchange.integrator:check_solver")(found)
    return found


def refused_by(place: str) -> Callable[[Any], Any]:
    """A conversion that changes nothing, but raises what the function at a place raises."""

    def convert(given: Any) -> Any:
        at_place(place)(given)
        return given

    return convert


def is_not_negative(given: Any) -> bool:
    """Whether it is a time of at least 0 s."""
    return bool(at_place("system.clocks:exact")(given) >= 0)
