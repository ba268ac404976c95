"""When a connection or a component exists: in an interval of time, or from one event to another (dynamic structure).

Source: Gomes et al. (2017), Co-simulation: state of the art, section 5.4.4 (dynamic structure); the example is that of
hybrid.md 10.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from fmimaster.base.errors import DescriptionError, OptionError
from fmimaster.base.typed_arguments import TypedArguments
from fmimaster.system.clocks import exact


@dataclass(frozen=True, slots=True)
class Lifetime(TypedArguments):
    """When a connection or a component exists.

    Parameters
    ----------
    from_time, until_time : number or text, in s, optional
        It exists from the first time on, and no longer at the second one. A text may be a fraction: ``"1/3"``.
    from_event, until_event : str, optional
        Likewise by the first occurrence of an event: its name in the results, ``"component.event"`` for a private one.

    Raises
    ------
    DescriptionError
        If the times leave no interval, or if a time and an event are given for the same end.
    """

    from_time: Fraction | float | str | None = None
    until_time: Fraction | float | str | None = None
    from_event: str | None = None
    until_event: str | None = None

    def __post_init__(self) -> None:
        for name in ("from_time", "until_time"):
            value: Any = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _time(name, value))
        for end in ("from", "until"):
            if getattr(self, f"{end}_time") is not None and getattr(self, f"{end}_event"):
                raise DescriptionError(
                    f"A lifetime has {end}_time and {end}_event. Give one of them."
                )
        first, last = self.begin, self.end
        if first is not None and last is not None and first >= last:
            raise DescriptionError(
                f"A lifetime from {self.from_time} s until {self.until_time} s is empty. The second time must be later."
            )

    @property
    def begin(self) -> Fraction | None:
        """``from_time`` as an exact number."""
        return cast("Fraction | None", self.from_time)

    @property
    def end(self) -> Fraction | None:
        """``until_time`` as an exact number."""
        return cast("Fraction | None", self.until_time)

    def exists(self, time: Fraction, happened: Collection[str]) -> bool:
        """Whether it exists at a time in s, after the events that have happened; at the time itself, after its change."""
        has_begun = self.begin is None or time >= self.begin
        has_ended = self.end is not None and time >= self.end
        has_begun = has_begun and (self.from_event is None or self.from_event in happened)
        has_ended = has_ended or (self.until_event is not None and self.until_event in happened)
        return has_begun and not has_ended

    @property
    def times(self) -> tuple[Fraction, ...]:
        """Times in s at which it may begin or end."""
        return tuple(t for t in (self.begin, self.end) if t is not None)

    @property
    def events(self) -> tuple[str, ...]:
        """Events at which it may begin or end."""
        return tuple(e for e in (self.from_event, self.until_event) if e is not None)

    def __str__(self) -> str:
        begin = f"from {self.from_time} s" if self.from_time is not None else ""
        begin = f"from '{self.from_event}' on" if self.from_event else begin
        end = f"until {self.until_time} s" if self.until_time is not None else ""
        end = f"until '{self.until_event}'" if self.until_event else end
        return " ".join(part for part in (begin, end) if part) or "always"


ALWAYS = Lifetime()


def _time(name: str, value: Any) -> Fraction:
    try:
        return exact(value)
    except OptionError as error:
        raise DescriptionError(f"{name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Structure:
    """The parts of a system that exist at one time, of those that do not always exist."""

    parts: frozenset[int]
    """Their numbers; connections that are equal but for their lifetimes have the same number."""
