"""The public names of the package; ``import fmimaster`` offers them all, and imports them when one is used."""

from fmimaster.algorithms import (
    END,
    HELD,
    LINEAR,
    MID,
    SUBSEQUENCE,
    Algorithm,
    Aligned,
    AutomaticSequence,
    GaussSeidel,
    Held,
    Jacobi,
    Linear,
    Refreshed,
    Richardson,
    Sequential,
    Subsequence,
    SubSteps,
    Waveform,
)
from fmimaster.base.errors import (
    AccuracyError,
    AccuracyWarning,
    CallError,
    ColumnError,
    ConstraintError,
    ConvergenceError,
    DescriptionError,
    FileError,
    FmimasterError,
    FmuLostError,
    InputError,
    Interrupted,
    LoopError,
    ModelError,
    NotANumberError,
    OptionError,
    ProgramError,
    SimulationError,
    ZenoError,
)
from fmimaster.base.reference_files import reference_path
from fmimaster.cards.card import FmuCard
from fmimaster.conformance.measures import ConformanceLimits, Measure
from fmimaster.conformance.run import check_conformance
from fmimaster.conformance.verdict import ConformanceRun, Outcome, Verdict, VerdictCause
from fmimaster.conformance.workers import ConformanceProgress
from fmimaster.events.event_clock import Check, EarlyReturn, EventClock
from fmimaster.events.intermediate import Intermediate
from fmimaster.events.look_ahead import LookAhead
from fmimaster.events.predictive import Predictive
from fmimaster.fmu.add_manifest import add_manifest
from fmimaster.fmu.faults.policy import Drop, FaultPolicy, Restart, Stop
from fmimaster.fmu.model_exchange.cvode import Cvode, Jacobian
from fmimaster.fmu.model_exchange.one_step import DormandPrince, Euler
from fmimaster.front.accuracy_pair import Pair
from fmimaster.front.resumption import resume
from fmimaster.front.simulation import Simulation, simulate
from fmimaster.front.validation import Finding, Severity, validate
from fmimaster.inputs.polynomial import (
    ADAPTIVE,
    FIRST_ORDER,
    HERMITE,
    HOLD,
    INTERPOLATED,
    LINE,
    MIDPOINT,
    NEPCE,
    QUADRATIC,
    Polynomial,
)
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.plan import Plan
from fmimaster.plan.step_groups import Loops
from fmimaster.program.emitter import Emitter
from fmimaster.record.causes import Activations, Cause, Event, Kind, Steps
from fmimaster.results.comparison import Comparison, Deviation
from fmimaster.results.jumps import JumpTimes, PhaseError
from fmimaster.results.results import Results
from fmimaster.run.choice import Backend
from fmimaster.sequences import (
    Count,
    FeedThrough,
    GivenWeights,
    LeastStale,
    NearestNeighbour,
    Upstream,
)
from fmimaster.session import Progress, Run
from fmimaster.steps.estimators import (
    EmbeddedOrders,
    EnergyDoubling,
    PowerResidual,
    PredictorCorrector,
    StepDoubling,
)
from fmimaster.steps.halved import Halved
from fmimaster.steps.locate import Locate
from fmimaster.steps.multi_rate import MultiRate
from fmimaster.steps.pid import PID
from fmimaster.steps.ramp import FreeStep, Ramp
from fmimaster.steps.step_rule import FixedStep, StepRule
from fmimaster.studies.optimization.fuzzy import Fuzzy
from fmimaster.studies.optimization.propagated import Propagated
from fmimaster.studies.optimization.sequence_search import SequenceSearch
from fmimaster.studies.optimization.signature import Signature
from fmimaster.studies.probing.probe import probe
from fmimaster.system.adaptation import (
    Direction,
    EventCounter,
    LevelCrossing,
    Quantizer,
    SampleAndHold,
    UnitDelay,
)
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.clocks import ClockInterval
from fmimaster.system.description import ConstraintEnd, Level, Port, PowerBond
from fmimaster.system.lifetime import Lifetime
from fmimaster.system.model import Unit
from fmimaster.system.python_component import PythonComponent
from fmimaster.system.ssp import read_system

__all__ = [
    "ADAPTIVE",
    "END",
    "FIRST_ORDER",
    "HELD",
    "HERMITE",
    "HOLD",
    "INTERPOLATED",
    "LINE",
    "LINEAR",
    "MID",
    "MIDPOINT",
    "NEPCE",
    "PID",
    "QUADRATIC",
    "SUBSEQUENCE",
    "AccuracyError",
    "AccuracyWarning",
    "Activations",
    "Algorithm",
    "Aligned",
    "AutomaticSequence",
    "Backend",
    "CallError",
    "Cause",
    "Check",
    "ClockInterval",
    "ColumnError",
    "Comparison",
    "ConformanceLimits",
    "ConformanceProgress",
    "ConformanceRun",
    "ConstraintEnd",
    "ConstraintError",
    "ConvergenceError",
    "Count",
    "Cvode",
    "DescriptionError",
    "Deviation",
    "Direction",
    "DormandPrince",
    "Drop",
    "EarlyReturn",
    "EmbeddedOrders",
    "Emitter",
    "EnergyDoubling",
    "Euler",
    "Event",
    "EventClock",
    "EventCounter",
    "FaultPolicy",
    "FeedThrough",
    "FileError",
    "Finding",
    "FixedStep",
    "FmimasterError",
    "FmuCard",
    "FmuLostError",
    "FreeStep",
    "Fuzzy",
    "GaussSeidel",
    "GivenWeights",
    "Halved",
    "Held",
    "InputError",
    "Intermediate",
    "Interrupted",
    "Jacobi",
    "Jacobian",
    "JumpTimes",
    "Kind",
    "LeastStale",
    "Level",
    "LevelCrossing",
    "Lifetime",
    "Linear",
    "Locate",
    "LookAhead",
    "LoopError",
    "LoopSolver",
    "Loops",
    "Measure",
    "ModelError",
    "MultiRate",
    "NearestNeighbour",
    "NotANumberError",
    "OptionError",
    "Outcome",
    "Pair",
    "PhaseError",
    "Plan",
    "Polynomial",
    "Port",
    "PowerBond",
    "PowerResidual",
    "Predictive",
    "PredictorCorrector",
    "ProgramError",
    "Progress",
    "Propagated",
    "PythonComponent",
    "Quantizer",
    "Ramp",
    "Refreshed",
    "Restart",
    "Results",
    "Richardson",
    "Run",
    "SampleAndHold",
    "SequenceSearch",
    "Sequential",
    "Severity",
    "Signature",
    "Simulation",
    "SimulationError",
    "StepDoubling",
    "StepRule",
    "Steps",
    "Stop",
    "SubSteps",
    "Subsequence",
    "SystemBuilder",
    "Unit",
    "UnitDelay",
    "Upstream",
    "Verdict",
    "VerdictCause",
    "Waveform",
    "ZenoError",
    "add_manifest",
    "check_conformance",
    "probe",
    "read_system",
    "reference_path",
    "resume",
    "simulate",
    "validate",
]
