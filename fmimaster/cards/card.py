"""FMU cards: what was measured on an FMU, as data and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fmimaster.cards.plain_data import from_json, to_json
from fmimaster.errors import FileError

FORM: Final = 1
"""Version of the form of the JSON file."""

DEADLINE: Final = 30.0
"""Wall time in s after which a measurement is ended, if no other one is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The way to the first step. Times in s of wall time."""

    load_seconds: float
    """To unpack the FMU, read its model description, load its library, and make the first instance."""
    initialize_seconds: float
    changes: tuple[str, ...] = ()
    """Settings of the process that the FMU has changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """A run from the start time. Times in s; the costs are the median of wall times for one call."""

    steps: int
    step_size: float
    moved: int
    """Number of observed variables that have changed. If it is 0, the other measurements prove little."""
    observed: int
    """Number of observed variables: the outputs, or local variables if the FMU has no outputs."""
    step_seconds: float | None
    """None if the steps of the run did not succeed."""
    get_seconds: float | None
    """To read all observed variables of floating point type; None if there are none."""
    set_seconds: float | None
    """To set all inputs of floating point type; None if there are none."""
    varied: bool = True
    """Whether the inputs were varied. They are held at their start values if the FMU fails otherwise."""
    ended: str = ""
    """Why there are fewer steps than planned."""
    terminated: bool = False
    """Whether the FMU has ended the simulation, which it may do."""
    changes: tuple[str, ...] = ()
    """Settings of the process that the FMU has changed."""
    logged: int = 0
    """Number of its log messages, with debug logging off."""
    first_logged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """Equal steps, done twice: in two processes, after a reset, or beside another instance."""

    steps: int
    moved: int
    """Number of observed variables that have changed in these steps."""
    differences: Mapping[str, float] = field(default_factory=dict)
    """Observed variable → largest difference, relative to the magnitude of its value or its nominal value; only those
    that differ."""

    @property
    def largest(self) -> float:
        """Largest relative difference; 0 for none."""
        return max(self.differences.values(), default=0.0)

    @property
    def worst(self) -> str:
        """Variable with the largest difference; empty for none."""
        return max(self.differences, key=self.differences.__getitem__, default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedthrough:
    """Which outputs change when one input changes, and nothing else. One point cannot prove that there is no effect."""

    at_start: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """In Initialization Mode: output → inputs."""
    in_step_mode: Mapping[str, tuple[str, ...]] | None = None
    """Set and read between two steps: output → inputs; None if it was not possible. FMI 2.0 does not allow it."""
    outputs: tuple[str, ...] = ()
    """The outputs that were read."""
    inputs: tuple[str, ...] = ()
    """The inputs that were changed."""
    refused: tuple[str, ...] = ()
    """Inputs whose change the FMU has refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Save the state, step, restore it, and step again. Costs in s of wall time, median of some calls."""

    again: Repetition
    save_seconds: float
    restore_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Serialization:
    """The state as bytes."""

    size: int
    """Number of bytes."""
    equal: bool
    """Whether a state that was restored from bytes has the same bytes."""
    again: Repetition
    """Steps of another instance that starts from the bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Something that was tried."""

    refused: str
    """What happened; empty if the FMU did it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySteps:
    """Very short steps."""

    refused: Mapping[str, str]
    """Size relative to the usual one, as text → what happened; empty if the FMU did it."""

    @property
    def smallest(self) -> float | None:
        """Smallest size that was done, relative to the usual one; None for none."""
        return min((float(size) for size, text in self.refused.items() if not text), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoInstances:
    """A second instance in the same process; an empty text if it can be made."""

    refused: str
    beside: Repetition | None = None
    """Steps of two instances in turn, beside those of one alone; None if there is no second one."""
    instantiate_seconds: float | None = None
    """Wall time to make and initialize a further instance."""
    memory_per_instance: int | None = None
    """Bytes of physical memory that a further instance takes; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyReturn:
    """Steps that end before their end."""

    allowed: int
    """Number of early returns in a run that allows them."""
    forbidden: int
    """Number of early returns in a run that does not allow them."""
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """What remains after an instance was made, stepped and freed; an average over many times."""

    cycles: int
    bytes_per_cycle: float | None
    """Growth of the physical memory; None if there is no such number."""
    descriptors_per_cycle: float | None


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
    """``"CoSimulation"`` or ``"ModelExchange"``."""
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
    loading: Loading | None = None
    stepping: Stepping | None = None
    two_processes: Repetition | None = None
    """The same run in two processes."""
    feedthrough: Feedthrough | None = None
    replay: Replay | None = None
    serialization: Serialization | None = None
    reset: Repetition | None = None
    """The steps after a reset, beside those of a new instance."""
    varying_steps: Attempt | None = None
    """Sizes that change from step to step, between a third and twice the usual one."""
    tiny_steps: TinySteps | None = None
    beyond_stop: Attempt | None = None
    """A step that ends after the stop time."""
    two_instances: TwoInstances | None = None
    read_at_end: Repetition | None = None
    """Outputs read only at the end, beside outputs read after each step."""
    read_before: Repetition | None = None
    """Outputs also read between inputs and step, beside outputs read only after each step."""
    early_return: EarlyReturn | None = None
    leak: Leak | None = None
    not_measured: Mapping[str, str] = field(default_factory=dict)
    """Name of a measurement → why it is None: ``"not declared"``, or how it has ended."""
    printed: Mapping[str, str] = field(default_factory=dict)
    """Name of a measurement → what the FMU has printed in it, at most a few lines."""

    @property
    def failures(self) -> Mapping[str, str]:
        """Measurements that did not end as they should → how they have ended."""
        return {k: text for k, text in self.not_measured.items() if text not in NOT_NEEDED}

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
            part.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise FileError(f"'{path}' cannot be written: {error.strerror or error}.") from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> FmuCard:
        """Read a card from a file.

        Raises
        ------
        FileError
            If the file is missing or is no card.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(
                f"The FMU card '{path}' cannot be read: {error.strerror or error}."
            ) from error
        except ValueError:
            content = None  # JSON that is damaged, or none at all
        return cls.from_json(content, str(path))


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
NOT_NEEDED = (NOT_DECLARED, NOTHING_THERE, NO_RUN)
