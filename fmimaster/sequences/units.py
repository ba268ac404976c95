"""The units of a system and the connections between them: the input of all methods that choose a sequence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fmimaster.system.model import Model, Variability, Variable
from fmimaster.system.resolved import Link


@dataclass(frozen=True, slots=True)
class UnitConnection:
    """A connection between two units; in Gauss-Seidel one that leads back in the sequence is stale."""

    source: str
    """Name of the unit of the output."""
    output: str
    target: str
    """Name of the unit of the input."""
    input: str
    direct: bool = False
    """Whether an output of the target that feeds another unit depends directly on the input (feed-through)."""
    switches: bool = False
    """Whether all outputs of the target that feed another unit are discrete: a stale input makes their changes late."""

    @property
    def target_input(self) -> str:
        """``"unit.input"``, which names the connection: an input has one source."""
        return f"{self.target}.{self.input}"

    def __str__(self) -> str:
        return f"{self.source}.{self.output} -> {self.target_input}"


@dataclass(frozen=True, slots=True)
class Units:
    """The units of a system and their connections, to be put in order."""

    names: tuple[str, ...]
    """In the order of the system description."""
    connections: tuple[UnitConnection, ...]
    together: tuple[tuple[str, ...], ...] = ()
    """Groups of units that must follow each other directly, because they are solved together. They do not overlap."""


def units_of(
    names: Sequence[str],
    models: Sequence[Model],
    links: Iterable[Link],
    together: Iterable[Iterable[int]] = (),
) -> Units:
    """The units of a resolved system.

    Parameters
    ----------
    together
        Groups of indices of units that must follow each other directly.
    """
    links = list(links)
    feeding: list[dict[str, Variable]] = [{} for _ in models]
    for link in links:
        feeding[link.source][link.output.name] = link.output
    direct = [
        frozenset[str]().union(*(m.dependencies.get(output, ()) for output in feeding[i]))
        for i, m in enumerate(models)
    ]
    switches = [
        bool(outputs) and all(v.variability is not Variability.CONTINUOUS for v in outputs.values())
        for outputs in feeding
    ]
    return Units(
        tuple(names),
        tuple(
            UnitConnection(
                names[k.source],
                k.output.name,
                names[k.target],
                k.input.name,
                k.input.name in direct[k.target],
                switches[k.target],
            )
            for k in links
        ),
        tuple(tuple(names[i] for i in group) for group in together),
    )
