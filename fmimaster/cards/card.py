"""FMU cards: what was measured on an FMU, as data and as JSON; and the folder in which they are kept."""

from __future__ import annotations

import collections.abc
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError
from fmimaster.base.files import decoding, parsed_json, put_in_place, read_whole, reason_of
from fmimaster.base.installation import installed_version
from fmimaster.cards.measured import (
    EarlyReturns,
    Feedthrough,
    Leak,
    Loading,
    Repetition,
    ReplayedStep,
    Serialization,
    Stepping,
    TinySteps,
    Tried,
    TwoInstances,
)
from fmimaster.fmu.shared_library import FMI3
from fmimaster.system.declarations import Interface, attribute_name, to_json

FORM: Final = 1
"""Version of the form of the JSON file."""

DEADLINE: Final = 30.0
"""Wall time in s after which a measurement is ended, if no other one is given."""


@dataclass(frozen=True, kw_only=True)
class FmuCard:
    """What was measured on an FMU, beside what it declares.

    A measurement is None if it was not made or did not end; the reason is in ``not_measured``.
    """

    fmu: str
    """Name of the file."""
    sha256: str
    """Hash of the FMU; a card is used only for the FMU with this hash."""
    model_name: str
    fmi_version: str
    interface: str
    """``"CoSimulation"``, ``"ModelExchange"`` or ``"ScheduledExecution"``."""
    generation_tool: str
    platform: str
    fmimaster: str
    """Version that has made the card."""
    made: str
    """Date and time (ISO 8601, UTC)."""
    declared: Mapping[str, Any]
    """Name of a capability, as FMI 3.0 writes it → value in the model description."""
    declared_feedthrough: Mapping[str, tuple[str, ...]]
    """Output → inputs on which it depends directly in Step Mode; an output without declaration is missing."""
    declared_feedthrough_at_start: Mapping[str, tuple[str, ...]]
    """The same in Initialization Mode."""
    input_clocks: int = 0
    """Number of input clocks. Those without an interval do not tick in the measurements."""
    time_based_clocks: int = 0
    """Number of clocks that tick at intervals, also in the measurements."""
    loading: Loading | None = None
    stepping: Stepping | None = None
    two_processes: Repetition | None = None
    """The same run in two processes."""
    feedthrough: Feedthrough | None = None
    replay: ReplayedStep | None = None
    serialization: Serialization | None = None
    reset: Repetition | None = None
    """The steps after a reset, beside those of a new instance."""
    varying_steps: Tried | None = None
    """Sizes that change from step to step, between a third and twice the usual one."""
    tiny_steps: TinySteps | None = None
    beyond_stop: Tried | None = None
    """A step that ends after the stop time."""
    two_instances: TwoInstances | None = None
    read_at_end: Repetition | None = None
    """Outputs read only at the end, beside outputs read after each step."""
    read_before: Repetition | None = None
    """Outputs also read between inputs and step, beside outputs read only after each step."""
    early_return: EarlyReturns | None = None
    leak: Leak | None = None
    not_measured: Mapping[str, str] = field(default_factory=dict)
    """Name of a measurement → why it is None: ``"not declared"``, or how it has ended."""
    printed: Mapping[str, str] = field(default_factory=dict)
    """Name of a measurement → what the FMU has printed in it, at most a few lines."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Measurements that did not end as they should → how they have ended."""
        return {
            k: text
            for k, text in self.not_measured.items()
            if text not in NOT_NEEDED and not (k == "replay" and self.copies_states)
        }

    @property
    def copies_states(self) -> bool:
        """Whether the FMU cannot save its state, so that fmimaster copies what it knows of it (not Co-Simulation)."""
        return bool(self.declared.get("copiesStates"))

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the measurements whose process has ended before them, or was ended at its deadline."""
        return tuple(name for name, text in self.not_measured.items() if text.startswith(LOST))

    def to_json(self) -> dict[str, Any]:
        """The card as JSON values; docs/json.md lists the keys."""
        content: dict[str, Any] = {"form": FORM, **to_json(self)}
        return content

    @classmethod
    def from_json(cls, content: Any, where: str) -> FmuCard:
        """The card that :meth:`to_json` has returned.

        Raises
        ------
        FileError
            If it is no card, or one of another version of fmimaster that has another form.
        """
        if not isinstance(content, dict) or "form" not in content or "sha256" not in content:
            raise FileError(
                f"'{where}' is not an FMU card. Write one with: fmimaster probe FMU --output-file CARD"
            )
        if content["form"] != FORM:
            raise FileError(
                f"'{where}' is an FMU card of form {content['form']}, this version of fmimaster reads form {FORM}. "
                "Make the card again with 'fmimaster probe'."
            )
        try:
            card: FmuCard = from_json(cls, {k: v for k, v in content.items() if k not in _BESIDE})
        except ValueError as error:
            raise FileError(
                f"'{where}' is a damaged FMU card: {error}. Make the card again with 'fmimaster probe'."
            ) from error
        return card

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the card into a file as JSON. An older file is replaced only when the new one is complete."""
        path = Path(path)
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            text = json.dumps(self.to_json(), indent=2) + "\n"
            part.write_text(text, encoding="utf-8", newline="\n")
            put_in_place(part, path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise FileError(f"'{path}' cannot be written: {reason_of(error)}.") from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> FmuCard:
        """Read a card from a file.

        Raises
        ------
        FileError
            If the file is missing or is no card.
        """
        with decoding(path, "an FMU card"):
            return cls.from_json(parsed_json(read_whole(Path(path))), str(path))


_BESIDE = ("form", "differences")
"""Keys in a file that are no fields; the differences follow from the others."""
LOST = "the process "
"""The reason begins so if the process of a measurement has ended before it."""
NOT_DECLARED = "not declared"
"""The FMU does not declare the capability that is needed."""
NOTHING_THERE = "nothing to measure"
"""For instance: no inputs."""
NO_RUN = "the FMU does not run"
"""The reason is that of the measurement ``stepping``."""
FORBIDDEN = "no, which FMI permits: it forbids Get after Set without a step between them"
"""What a Co-Simulation FMU may refuse."""
NOT_NEEDED = (NOT_DECLARED, NOTHING_THERE, NO_RUN, FORBIDDEN)


def from_json(kind: Any, value: Any, where: str = "") -> Any:
    """The value of a type that :func:`to_json` has made JSON of.

    Parameters
    ----------
    kind
        A dataclass, ``Mapping[str, T]``, ``tuple[T, ...]``, ``T | None``, a plain type or Any.
    where
        Key of the value, for messages.

    Raises
    ------
    ValueError
        If the value has another type, or a key is missing or not known.
    """
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _dataclass(kind, value, where)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is UnionType:
        return None if value is None else from_json(_without_none(arguments), value, where)
    if origin is collections.abc.Mapping:
        entries = _expect(dict, value, where)
        return {name: from_json(arguments[1], v, f"{where}.{name}") for name, v in entries.items()}
    if origin is tuple:
        return tuple(from_json(arguments[0], v, where) for v in _expect(list, value, where))
    if kind is float and type(value) is int:
        return float(value)
    return _expect(kind, value, where)


def _dataclass(kind: Any, value: Any, where: str) -> Any:
    known = {attribute_name(f.name): f for f in fields(kind)}
    entries = _expect(dict, value, where)
    if strange := next((name for name in entries if name not in known), None):
        raise ValueError(f"the key '{where}{strange}' is not known")
    for name, f in known.items():
        if name not in entries and f.default is MISSING and f.default_factory is MISSING:
            raise ValueError(f"the key '{where}{name}' is missing")
    types = _types(kind)
    return kind(
        **{
            known[name].name: from_json(types[known[name].name], entry, f"{where}{name}.")
            for name, entry in entries.items()
        }
    )


_types = cache(get_type_hints)


def _without_none(arguments: tuple[Any, ...]) -> Any:
    [kind] = [a for a in arguments if a is not NoneType]
    return kind


def _expect(kind: type, value: Any, where: str) -> Any:
    if type(value) is not kind:  # a Boolean is no number
        raise ValueError(
            f"'{where.rstrip('.')}' is a {type(value).__name__}, not a {kind.__name__}"
        )
    return value


def _cards_folder() -> Path:
    """The folder of kept cards: ``fmimaster/cards`` in ``$XDG_CACHE_HOME``, or in the system's folder for caches.

    Source: XDG Base Directory Specification; a relative path in the variable is ignored.
    """
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if given.is_absolute():
        base = given
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path.home() / ".cache"
    return base / "fmimaster" / "cards"


def cached_card(sha256: str, interface: Interface | None) -> FmuCard | None:
    """The card of an FMU that was measured before on this platform by this version; None if there is none.

    Parameters
    ----------
    interface
        None for the default one of the FMU.
    """
    found = _known(_path(sha256, interface), sha256)
    if found is None and interface is not None:
        found = _known(_path(sha256, None), sha256)  # it may be the default one
        return found if found is not None and found.interface == interface.value else None
    return found


def any_is_kept() -> bool:
    """Whether there is any kept card."""
    return next(_cards_folder().glob("*.json"), None) is not None


def keep_card(card: FmuCard, interface: Interface | None) -> None:
    """Keep a card; nothing happens if the folder cannot be written."""
    path = _path(card.sha256, interface)
    with suppress(OSError, FileError):
        path.parent.mkdir(parents=True, exist_ok=True)
        card.write(path)


def _known(path: Path, sha256: str) -> FmuCard | None:
    if not path.is_file():
        return None
    try:
        card = FmuCard.read(path)
    except FileError:  # damaged, or of another form: it is made again
        return None
    is_present = card.fmimaster == installed_version() and card.platform == FMI3
    return card if is_present and card.sha256 == sha256 else None


def _path(sha256: str, interface: Interface | None) -> Path:
    return _cards_folder() / f"{sha256}-{'default' if interface is None else interface.value}.json"
