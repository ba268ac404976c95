"""Co-simulation algorithms, one file each. Rarely used ones are imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.gauss_seidel import MODES, GaussSeidel
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.modes import END, HELD, LINEAR, MID, Held, Linear, Mode
from fmimaster.algorithms.subsequence import SUBSEQUENCE, Subsequence

if TYPE_CHECKING:
    from fmimaster.algorithms.aligned import Aligned
    from fmimaster.algorithms.automatic_sequence import AutomaticSequence
    from fmimaster.algorithms.refreshed import Refreshed
    from fmimaster.algorithms.richardson import Richardson
    from fmimaster.algorithms.sequential import Sequential
    from fmimaster.algorithms.sub_steps import SubSteps
    from fmimaster.algorithms.waveform import Waveform

_MODULES = {
    "Aligned": "aligned",
    "AutomaticSequence": "automatic_sequence",
    "Refreshed": "refreshed",
    "Richardson": "richardson",
    "Sequential": "sequential",
    "SubSteps": "sub_steps",
    "Waveform": "waveform",
}
"""Name → its module in this package, imported on first use, because imports take most of the time of a short run."""

ALGORITHMS: tuple[type[Algorithm], ...] = (Jacobi, GaussSeidel)
"""Algorithms that the command line offers by name."""


def __getattr__(name: str) -> Any:
    """A rarely used algorithm."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "ALGORITHMS",
    "END",
    "HELD",
    "LINEAR",
    "MID",
    "MODES",
    "SUBSEQUENCE",
    "Algorithm",
    "Aligned",
    "AutomaticSequence",
    "GaussSeidel",
    "Held",
    "Initialization",
    "Jacobi",
    "Linear",
    "Mode",
    "Refreshed",
    "Richardson",
    "Sequential",
    "SubSteps",
    "Subsequence",
    "Waveform",
    "assemble",
]
