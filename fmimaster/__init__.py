"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from fmimaster.algorithms import Algorithm, GaussSeidel, Jacobi
from fmimaster.control.step_size import FixedStep
from fmimaster.errors import (
    CallError,
    ConvergenceError,
    DescriptionError,
    FileError,
    FmimasterError,
    InputError,
    Interrupted,
    ModelError,
    NotANumberError,
    OptionError,
    ProgramError,
    SimulationError,
)
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import FirstOrder, Hold, Polynomial
from fmimaster.reference_files import reference_path
from fmimaster.results.results import Results
from fmimaster.run.choice import Execution
from fmimaster.simulation import Simulation, simulate
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.ssp import read_system
from fmimaster.validation import Finding, Severity, validate

__all__ = [
    "Algorithm",
    "CallError",
    "ConvergenceError",
    "DescriptionError",
    "Emitter",
    "Execution",
    "FileError",
    "Finding",
    "FirstOrder",
    "FixedStep",
    "FmimasterError",
    "GaussSeidel",
    "Hold",
    "InputError",
    "Interrupted",
    "Jacobi",
    "ModelError",
    "NotANumberError",
    "OptionError",
    "Plan",
    "Polynomial",
    "ProgramError",
    "Results",
    "Severity",
    "Simulation",
    "SimulationError",
    "SystemBuilder",
    "read_system",
    "reference_path",
    "simulate",
    "validate",
]
