"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from fmimaster.algorithms import (
    Algorithm,
    Aligned,
    AutomaticSequence,
    GaussSeidel,
    Jacobi,
    Sequential,
    Waveform,
)
from fmimaster.control.event_clock import (
    Check,
    EarlyReturn,
    EventClock,
    Locate,
    LookAhead,
    Predictive,
)
from fmimaster.control.step_size import FixedStep, Ramp, free_step
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
    ZenoError,
)
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.program.polynomial import FIRST_ORDER, HOLD, Polynomial
from fmimaster.reference_files import reference_path
from fmimaster.results.explained import Event, Steps
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend
from fmimaster.simulation import Simulation, simulate
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.ssp import read_system
from fmimaster.validation import Finding, Severity, validate

__all__ = [
    "FIRST_ORDER",
    "HOLD",
    "Algorithm",
    "Aligned",
    "AutomaticSequence",
    "Backend",
    "CallError",
    "Check",
    "ConvergenceError",
    "DescriptionError",
    "EarlyReturn",
    "Emitter",
    "Event",
    "EventClock",
    "FileError",
    "Finding",
    "FixedStep",
    "FmimasterError",
    "GaussSeidel",
    "InputError",
    "Interrupted",
    "Jacobi",
    "Locate",
    "LookAhead",
    "ModelError",
    "NotANumberError",
    "OptionError",
    "Plan",
    "Polynomial",
    "Predictive",
    "ProgramError",
    "Ramp",
    "Results",
    "Sequential",
    "Severity",
    "Simulation",
    "SimulationError",
    "Steps",
    "SystemBuilder",
    "Waveform",
    "ZenoError",
    "free_step",
    "read_system",
    "reference_path",
    "simulate",
    "validate",
]
