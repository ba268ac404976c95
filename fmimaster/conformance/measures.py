"""Stand-in until the measures of deviations are here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Measure:
    """The deviation of one column."""

    name: str

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Measure:
        """From JSON."""
        return cls(**given)


@dataclass(frozen=True)
class Curve:
    """One column with few points."""

    name: str

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Curve:
        """From JSON."""
        return cls(**given)
