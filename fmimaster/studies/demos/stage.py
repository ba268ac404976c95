"""Where a demo is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results


class Stage(Protocol):
    """Where a demo is shown: the command line, or a test."""

    @property
    def folder(self) -> Path:
        """For the files."""
        ...

    @property
    def version(self) -> str:
        """The version of the FMUs, if a demo has several; empty for the first one."""
        ...

    def simulate(self, simulation: Simulation, keep: Callable[[Results], list[str]]) -> None:
        """Simulate, with progress; ``keep`` writes the rows and returns a text about them."""

    def print(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Show a table."""

    def tell(self, lines: Sequence[str]) -> None:
        """Print lines, for example the paths of files."""
