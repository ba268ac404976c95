"""Co-simulation algorithms, one file each. Those that few runs use are imported when they are named."""

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
"""Name → the module of this package that has it and is imported then: importing is most of the time of a short run."""

ALGORITHMS: tuple[type[Algorithm], ...] = (Jacobi, GaussSeidel)
"""Algorithms that the command line offers by name."""


def __getattr__(name: str) -> Any:
    """An algorithm that few runs use."""
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
