"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.control.step_size import FixedStep
from fmimaster.errors import (
    DescriptionError,
    FmimasterError,
    InputError,
    SimulationError,
)
from fmimaster.program.polynomial import FirstOrder, Hold, Polynomial
from fmimaster.reference_files import reference_path
from fmimaster.results.results import Results
from fmimaster.simulation import Simulation, simulate
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.ssp import read_system

__all__ = [
    "DescriptionError",
    "FirstOrder",
    "FixedStep",
    "FmimasterError",
    "GaussSeidel",
    "Hold",
    "InputError",
    "Jacobi",
    "Polynomial",
    "Results",
    "Simulation",
    "SimulationError",
    "SystemBuilder",
    "read_system",
    "reference_path",
    "simulate",
]
