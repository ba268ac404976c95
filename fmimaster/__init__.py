"""Co-simulation of FMI 2.0 and 3.0 FMUs."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster import algorithms as algorithms
    from fmimaster import cards as cards
    from fmimaster import conformance as conformance
    from fmimaster import events as events
    from fmimaster import fmu as fmu
    from fmimaster import front as front
    from fmimaster import inputs as inputs
    from fmimaster import loops as loops
    from fmimaster import results as results
    from fmimaster import run as run
    from fmimaster import sequences as sequences
    from fmimaster import steps as steps
    from fmimaster import studies as studies
    from fmimaster import system as system
    from fmimaster.base.errors import AccuracyError as AccuracyError
    from fmimaster.base.errors import AccuracyWarning as AccuracyWarning
    from fmimaster.base.errors import CallError as CallError
    from fmimaster.base.errors import ColumnError as ColumnError
    from fmimaster.base.errors import ConstraintError as ConstraintError
    from fmimaster.base.errors import ConvergenceError as ConvergenceError
    from fmimaster.base.errors import DescriptionError as DescriptionError
    from fmimaster.base.errors import FileError as FileError
    from fmimaster.base.errors import FmimasterError as FmimasterError
    from fmimaster.base.errors import FmuLostError as FmuLostError
    from fmimaster.base.errors import InputError as InputError
    from fmimaster.base.errors import Interrupted as Interrupted
    from fmimaster.base.errors import LoopError as LoopError
    from fmimaster.base.errors import ModelError as ModelError
    from fmimaster.base.errors import NotANumberError as NotANumberError
    from fmimaster.base.errors import OptionError as OptionError
    from fmimaster.base.errors import ProgramError as ProgramError
    from fmimaster.base.errors import SimulationError as SimulationError
    from fmimaster.base.errors import ZenoError as ZenoError
    from fmimaster.base.installation import __version__ as __version__
    from fmimaster.base.installation import reference_path as reference_path
    from fmimaster.front.simulate import resume as resume
    from fmimaster.front.simulate import simulate as simulate
    from fmimaster.front.simulation import Simulation as Simulation
    from fmimaster.front.validation import validate as validate
    from fmimaster.results.results import Results as Results
    from fmimaster.session.stepwise import Run as Run
    from fmimaster.session.work_thread import Progress as Progress
    from fmimaster.studies.probing.probe import probe as probe
    from fmimaster.studies.sweeps.sweep import sweep as sweep
    from fmimaster.system.builder import SystemBuilder as SystemBuilder
    from fmimaster.system.python_component import PythonComponent as PythonComponent
    from fmimaster.system.read import read_system as read_system
else:
    __getattr__, __dir__ = public_names(__name__)
