"""Co-simulation algorithms, one file each."""

from fmimaster.algorithms.assemble import Algorithm, Programs, assemble
from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.initialization import Initialization
from fmimaster.algorithms.jacobi import Jacobi

ALGORITHMS: tuple[type[Algorithm], ...] = (Jacobi, GaussSeidel)
"""Algorithms that the command line offers by name."""

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "GaussSeidel",
    "Initialization",
    "Jacobi",
    "Programs",
    "assemble",
]
