"""Co-simulation algorithms, one file each."""

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.aligned import Aligned
from fmimaster.algorithms.assemble import assemble
from fmimaster.algorithms.automatic_sequence import AutomaticSequence
from fmimaster.algorithms.gauss_seidel import MODES, GaussSeidel
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.modes import END, HELD, LINEAR, MID, Held, Linear, Mode
from fmimaster.algorithms.refreshed import Refreshed
from fmimaster.algorithms.richardson import Richardson
from fmimaster.algorithms.sequential import Sequential
from fmimaster.algorithms.sub_steps import SubSteps
from fmimaster.algorithms.subsequence import SUBSEQUENCE, Subsequence
from fmimaster.algorithms.waveform import Waveform

ALGORITHMS: tuple[type[Algorithm], ...] = (Jacobi, GaussSeidel)
"""Algorithms that the command line offers by name."""

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
