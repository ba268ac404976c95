"""The settings of a simulation as one value, checked when it is created."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, dataclass, field, fields
from functools import partial
from math import inf
from numbers import Integral, Real
from typing import Any, Literal, TypeVar, cast

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.text import clipped, in_short
from fmimaster.cards.use import Cards, check_cards
from fmimaster.configure.checkpoint_interval import interval_of
from fmimaster.configure.input_signals import Input, InputSignals
from fmimaster.configure.named import (
    algorithm,
    event_clock,
    fault_policy,
    is_rule,
    polynomial,
    sequence,
    solvers,
    step_rule,
)
from fmimaster.configure.text import choice
from fmimaster.events.event_clock import EventClock
from fmimaster.fmu.faults.policy import FaultPolicy, Stop
from fmimaster.fmu.model_exchange.choice import check_solver
from fmimaster.fmu.model_exchange.integrator import Integrator
from fmimaster.inputs.given_inputs import check_given_inputs
from fmimaster.inputs.polynomial import ADAPTIVE, Polynomial
from fmimaster.loops.solver import LoopSolver
from fmimaster.plan.step_groups import Loops
from fmimaster.plan.tolerance import NO_TOLERANCE
from fmimaster.run.choice import Backend
from fmimaster.sequences.choice import SequenceSetting, check_sequence
from fmimaster.steps.step_rule import StepRule, Time
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import PowerBond, SystemDescription
from fmimaster.system.exact import exact
from fmimaster.system.model import Interface

RENAMED = {"input_file": "input", "fmi_logging": "debug_logging"}
"""Former name of a setting → its present name."""

HINTS = {
    "early_return_allowed": "Event clocks use early return: event_clock='early-return'.",
    "fmi_call_logger": "Did you mean 'log_fmi_calls'?",
    "fmi_type": "Did you mean 'interface'?",
    "fmu_state": "States are kept in files: see 'initial_fmu_state' and 'final_fmu_state'.",
    "output": "Did you mean 'output_variables'?",
    "relative_tolerance": "Did you mean 'tolerance'?",
    "set_input_derivatives": "Write algorithm='Jacobi:inputs=linear'.",
    "step_finished": "Pass progress to Simulation.run().",
    "timeout": "A progress function that returns False ends a run: Simulation.run(progress).",
    "use_event_mode": "Did you mean 'event_mode'?",
    "validate": "fmimaster.validate(path) is a function.",
    "visible": "FMUs are always instantiated without a window.",
}
"""Arguments of ``fmpy.simulate_fmu`` that are not settings here → what to write instead."""

_MOST_LETTERS = 60
"""Largest number of characters of the value of a setting in a repr."""

_PATHS = ("initial_fmu_state", "final_fmu_state", "fmi_log_file", "checkpoint")

AnySettings = TypeVar("AnySettings", bound="Settings")


@dataclass(frozen=True, repr=False)
class Settings:
    """The settings of a simulation: a system, and how to simulate it.

    It is a value: it can be printed, compared, pickled, and run again and again.

    Parameters
    ----------
    system : SystemDescription, SystemBuilder or path
        A path to an FMU, an SSP archive, an SSD file, an OspSystemStructure.xml, or a folder with one of them unpacked.
    interface : ``"CoSimulation"``, ``"ModelExchange"`` or ``"ScheduledExecution"``
        Interface by which a single FMU is used. Default: the first of these that the FMU has. In a system each component
        has its own, see ``SystemBuilder.add``.
    algorithm : Algorithm, or text such as ``"GaussSeidel:mode=lin"``
        The co-simulation algorithm. Default: Jacobi with held inputs; if an event clock fires events, Jacobi with
        extrapolated inputs (``ADAPTIVE``), because held inputs delay events.
    inputs : names of inputs → Polynomial, or text such as ``"linear"``
        Polynomials of single inputs over a step; a name is ``"component.input"`` or a glob. The algorithm decides for
        all other inputs.
    sequence : method, its name, or names of all components
        The order in which the components step, if the algorithm steps them one after the other. Default: the sequence
        of the system description, if it has one; otherwise the sequence whose stale inputs have the smallest weight.
        Methods by name: ``"automatic"``, ``"count"``, ``"nearest-neighbour"``, ``"upstream"``; as objects: LeastStale,
        NearestNeighbour, Upstream.
    power_bonds : PowerBond
        Bonds in addition to those of the system description.
    bond_tolerance : float
        Relative tolerance of the energy of all power bonds that have an energy scale. It replaces their own tolerances.
    accuracy : float
        The largest error of each recorded output: root mean square over time, relative to the largest absolute value of
        the output. The step-size rule and the inputs over a step are chosen automatically, unless they are given. The
        steps are shortened until the accuracy is reached. The error is estimated by runs in which each step is halved.
        If step_size is a number, it is the largest step.
    start_time, stop_time : number or text, in s
        Default: the values of the system's default experiment, otherwise those of the FMUs.
    step_size : StepRule, number in s, or text
        FixedStep, Ramp, FreeStep, Locate, PID. A text is a number or fraction in s, as ``"1/60"``, or names a rule, as
        ``"ecco:size=0.01,smallest=1e-4"``. With a number or fraction the rule is FixedStep; with the event clocks
        LookAhead and EarlyReturn it is FreeStep, and with Predictive it is Ramp.
    event_clock : EventClock, or text such as ``"predictive:near=1e-4"``
        Predicts or detects state events: LookAhead, Predictive, EarlyReturn, Check. Without an event clock, FMUs handle
        their events themselves.
    event_mode : bool
        Whether Event Mode of FMI 3.0 is used. Default: True if an event clock fires events, or if the structure of the
        system changes. FMUs with clocks always use it.
    event_merge_tolerance : float, int, str or Fraction, in s
        A time event of an FMU and the tick of a clock that are at most so far apart become one instant; and an event that
        is found within a step takes a tick with it that comes at most so much later. With 0 only what coincides exactly
        is one instant.
    loops : Loops, or ``"real"``, ``"all"``, ``"none"``
        The algebraic loops that are solved in Step Mode by restoring the FMUs and repeating the step. ``Loops.REAL``:
        loops whose dependencies are declared. ``ALL``: also loops that are assumed because an FMU declares no
        dependencies. ``NONE``: no loop.
    loop_solver : LoopSolver
        Tolerances and limits for algebraic loops.
    strict : bool
        Whether it is an error, instead of a warning, if results are less accurate than they should be.
    start_values : name → value
        Names are ``"component.variable"``; for a single FMU the name of the variable is enough.
    steady_states : names of states, ``"component.state"``
        The run starts with values of these states at which their time derivatives are 0. The search for them begins at
        the start values. The FMU must have the derivatives, and the start values must be settable (initial is exact).
    input : path, Results, mapping, structured array or DataFrame
        Signals for open inputs of the same names: columns of a CSV file, of results, of a structured array or of
        a DataFrame, or ``{"time": [...], "motor.u": [...]}``; the times are in s. A mapping may also have functions of
        time: ``{"motor.u": lambda t: sin(t)}``. A function is called at communication points. Its values are treated
        like outputs of a component that publishes no derivatives.
    ignore_further_columns : bool
        Whether signals of the input that match no open input are ignored. Otherwise they are an error.
    output_variables : globs of names
        Variables to record. Default: the outputs of all components.
    output_interval : float, in s
        Only the first row at or after each multiple of this interval and the last row are recorded.
    record_intermediate_values : bool
        Whether outputs are also recorded inside of the steps, at the intermediate points of the FMUs: see
        ``Results.intermediate``. FMI 3.0, FMUs with providesIntermediateUpdate, outputs with intermediateUpdate.
    tolerance : float or ``"none"``
        Relative tolerance passed to the FMUs. Default: that of the system's default experiment, otherwise that of each
        FMU. With ``"none"`` no tolerance is passed.
    solver : Integrator, text such as ``"cvode:relative=1e-8"``, or names of components → Integrator or text
        Solvers of Model Exchange FMUs: DormandPrince, Cvode, Euler. A mapping is for single components; its names may be
        globs. Default: DormandPrince, with the tolerance that a Co-Simulation FMU would be passed.
    initial_fmu_state, final_fmu_state : path
        A file of FMU states that are set after the initialization, and a file for the states at the end of the run. The
        FMUs must be able to serialize their state. For a single FMU the file has its bytes, as FMPy reads and writes
        them. The memory of an algorithm is not in the file. Some FMUs keep the stop time of the run in their state: then
        end the first run early, by :meth:`Simulation.start`.
    allow_lossy_conversions : bool
        Whether a connection may convert between types if the conversion can change a value.
    allow_nan : bool
        Whether outputs may be NaN or infinite.
    extrapolation_errors : bool
        Whether the error of each input over each step is recorded, as ``"component.input.extrapolation_error"``.
    debug_logging : bool
        Whether the debug messages of the FMUs are switched on. They are written to the log
        ``logging.getLogger("fmimaster")``.
    log_fmi_calls : bool
        Whether each FMI call is logged, with time, arguments, status and returned values. The FMUs are then called in
        Python, one after the other; the results are the same.
    fmi_log_file : path
        The file for the FMI calls and the messages of the FMUs, in order of time. Without a file, the calls are
        messages of level INFO in the log of fmimaster. With a file, ``log_fmi_calls`` is not needed.
    checkpoint : path
        A file to which the state of the run is written during the run: a run that was ended, for example by a crash of the
        computer, continues from it by :func:`fmimaster.resume`. The rows so far are in a file beside it.
    checkpoint_interval : float in s, or text such as ``"wall=60"``, ``"time=0.5,wall=60"``
        Time between checkpoints. A number is time of the run; ``wall`` is wall time. Default: ``"wall=60"``.
    cards : FmuCard, path, ``"cached"``, or several of them
        Cards of the FMUs, as :func:`fmimaster.probe` measures them; ``"cached"`` stands for those that it has kept. What a
        card refutes is not relied on, with a warning. The accuracy of loops, the dependencies of outputs that declare none,
        and the FMUs that have processes of their own follow from the cards.
    on_fault : Stop, Restart, Drop, or ``"stop"``, ``"restart:tries=3"``, ``"drop"``
        What happens when the process of an FMU ends by a crash, or is ended because a call does not return. Stop: the run
        ends, and the error has the results until then. Restart: the FMU is started again. Drop: the run continues without
        it, and its outputs keep their values. With Restart and Drop all FMUs run in processes of their own, unless
        ``isolate`` names some.
    backend : Backend, or ``"fastest"``, ``"native"``, ``"reference"``
        The executor: the kernel in C or the interpreter in Python. They give the same bits.
    threads : int
        Number of threads that step instances at the same time, if the algorithm allows it and the executor is native.
        With 0, fmimaster measures during the run whether threads make it faster. The results are the same.
    isolate : bool, or names of components
        FMUs that have processes of their own: all, none, or those that are named; names may be globs. A crash of such
        an FMU ends the run with :class:`FmuLostError`, and this process goes on. The results are the same. Default:
        FMUs that allow one instance per process, if they are used more than once, and all FMUs if ``call_timeout``,
        ``memory_limit`` or ``on_fault`` is given. Linux only.
    call_timeout : float, in s
        Wall time after which the process of an FMU that has not returned from a call is ended. Default: no limit, but
        30 s for loading and instantiation in a process of its own, without the time in which it waits for a processor.
    memory_limit : int, in bytes
        Memory that each FMU can allocate in its process; allocations beyond it fail. With ``process``, what the process of
        the run can take; if it takes more, it is ended.
    process : bool
        Whether the whole run has one process of its own, so that nothing an FMU does can end this one: a crash is a
        :class:`FmuLostError` with the rows until then. ``call_timeout`` and ``memory_limit`` are then limits of this
        process, and no FMU has another one unless ``isolate`` or ``on_fault`` says so. It costs some milliseconds at the
        start, and nothing per step. The command does this by default. In Python it is off: components written in Python
        would run in the other process, and ``progress`` is not called. Linux only; elsewhere it has no effect.
    """

    system: SystemDescription | SystemBuilder | str | os.PathLike[str]
    _: KW_ONLY
    interface: Interface | str | None = None
    algorithm: Algorithm | str | None = None
    inputs: Mapping[str, Polynomial | str] = field(default_factory=dict)
    sequence: SequenceSetting | None = None
    power_bonds: Sequence[PowerBond] = ()
    bond_tolerance: float | None = None
    accuracy: float | None = None
    extrapolation_errors: bool = False
    start_time: Time | None = None
    stop_time: Time | None = None
    step_size: StepRule[Any] | Time | None = None
    event_clock: EventClock | str | None = None
    event_mode: bool | None = None
    event_merge_tolerance: Time = 0
    loops: Loops | str = Loops.REAL
    loop_solver: LoopSolver = LoopSolver()
    strict: bool = False
    start_values: Mapping[str, Any] = field(default_factory=dict)
    steady_states: Sequence[str] = ()
    input: Input | None = None
    ignore_further_columns: bool = False
    output_variables: Sequence[str] = ()
    output_interval: float | None = None
    record_intermediate_values: bool = False
    tolerance: float | Literal["none"] | None = None
    solver: Integrator | str | Mapping[str, Integrator | str] | None = None
    initial_fmu_state: str | os.PathLike[str] | None = None
    final_fmu_state: str | os.PathLike[str] | None = None
    allow_lossy_conversions: bool = False
    allow_nan: bool = False
    debug_logging: bool = False
    log_fmi_calls: bool = False
    fmi_log_file: str | os.PathLike[str] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_interval: float | str | None = None
    cards: Cards | None = None
    on_fault: FaultPolicy | str = Stop()
    backend: Backend | str = Backend.FASTEST
    threads: int = 1
    isolate: bool | str | Sequence[str] | None = None
    call_timeout: float | None = None
    memory_limit: int | None = None
    process: bool = False

    def __new__(cls: type[AnySettings], *arguments: Any, **settings: Any) -> AnySettings:
        """Refuse settings that do not exist, and suggest the right name; ``__init__`` handles all others."""
        del arguments
        known = [f.name for f in fields(cls)]
        for name in settings.keys() - known:
            if name in RENAMED:
                raise OptionError(
                    f"There is no setting '{name}'. Its name is '{RENAMED[name]}' now."
                )
            hint = f" {HINTS[name]}" if name in HINTS else did_you_mean(name, known)
            raise OptionError(
                f"There is no setting '{name}'.{hint} help({cls.__name__}) lists all."
            )
        return object.__new__(cls)

    def __repr__(self) -> str:
        system = self.system if isinstance(self.system, SystemDescription) else str(self.system)
        given = [repr(system)]
        for f in fields(self)[1:]:
            value = getattr(self, f.name)
            usual = f.default if f.default_factory is MISSING else f.default_factory()
            if value != usual:
                given.append(f"{f.name}={clipped(in_short(value), _MOST_LETTERS)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def __post_init__(self) -> None:
        self._read_texts()
        for f in fields(self):
            if isinstance(f.default, bool):
                _expect_truth_value(getattr(self, f.name), f.name)
        if self.event_mode is not None:
            _expect_truth_value(self.event_mode, "event_mode")
        for name in _PATHS:
            if not isinstance(path := getattr(self, name), str | os.PathLike | None):
                raise OptionError(f"{name}: {path!r}, expected a path.")
        if isinstance(self.system, SystemBuilder):
            object.__setattr__(self, "system", self.system.build())
        if not isinstance(self.system, SystemDescription | str | os.PathLike):
            raise OptionError(
                f"system: {self.system!r} is neither a path nor a system description. Give the path of an FMU or SSP, "
                "or what SystemBuilder.build() returns."
            )
        if self.interface is not None:
            object.__setattr__(self, "interface", Interface.named(self.interface))
        if self.algorithm is not None:
            _expect(self.algorithm, Algorithm, "algorithm", "an algorithm", "Jacobi(), or its name")
        if self.event_clock is not None:
            _expect(
                self.event_clock,
                EventClock,
                "event_clock",
                "an event clock",
                "LookAhead(), or its name",
            )
        if not isinstance(self.loops, Loops):
            raise OptionError(f"loops: {self.loops!r}, expected one of {[*Loops]}.")
        _expect(self.loop_solver, LoopSolver, "loop_solver", "a solver of loops", "LoopSolver()")
        if self.input is not None and not isinstance(self.input, str | os.PathLike):
            object.__setattr__(self, "input", InputSignals.of(self.input))
        check_given_inputs(self.inputs)
        check_cards(self.cards)
        check_sequence(self.sequence)
        check_solver(self.solver)
        if not isinstance(self.power_bonds, Sequence):
            raise OptionError(
                f"power_bonds: {self.power_bonds!r}, expected a sequence of power bonds."
            )
        for bond in self.power_bonds:
            _expect(bond, PowerBond, "power_bonds", "a power bond", "PowerBond('coupling', ports)")
        _expect_positive(self.bond_tolerance, "bond_tolerance", "a positive number, such as 1e-6")
        if self.accuracy is not None and self.final_fmu_state is not None:
            raise OptionError(
                "final_fmu_state (--final-fmu-state-file) is the end of one run, but accuracy (--accuracy) does several. "
                "Leave one of them out."
            )
        if self.accuracy is not None and self.checkpoint is not None:
            raise OptionError(
                "checkpoint (--checkpoint) is for one run, but accuracy (--accuracy) does several. Leave one of them out."
            )
        if self.checkpoint_interval is not None:
            interval_of(self.checkpoint_interval)
        _expect_positive(self.accuracy, "accuracy", "a positive number, such as 1e-4")
        _expect(self.on_fault, FaultPolicy, "on_fault", "a way to handle a fault", "Restart()")
        if not isinstance(self.backend, Backend):
            raise OptionError(f"backend: {self.backend!r}, expected one of {[*Backend]}.")
        self._check_isolation()
        if not isinstance(self.threads, Integral) or self.threads < 0:
            raise OptionError(f"threads: {self.threads!r}, expected 0 (automatic), 1 or more.")
        if exact(self.event_merge_tolerance) < 0:
            raise OptionError(
                f"event_merge_tolerance: {self.event_merge_tolerance!r}, expected 0 or a positive number of seconds."
            )
        _expect_positive(self.output_interval, "output_interval", "a positive number")
        if self.tolerance != NO_TOLERANCE:
            _expect_positive(self.tolerance, "tolerance", f"a positive number or {NO_TOLERANCE!r}")
        if not isinstance(self.start_values, Mapping) or not all(
            isinstance(name, str) for name in self.start_values
        ):
            raise OptionError(
                f"start_values: {self.start_values!r}, expected a mapping of names to values."
            )
        _expect_names(self.output_variables, "output_variables", "names or globs")
        _expect_names(self.steady_states, "steady_states", "names of states: component.state")

    def _check_isolation(self) -> None:
        if isinstance(self.isolate, str):
            object.__setattr__(self, "isolate", (self.isolate,))
        if self.isolate is not None and not isinstance(self.isolate, bool):
            _expect_names(self.isolate, "isolate", "names or globs, or True or False")
        _expect_positive(self.call_timeout, "call_timeout", "a positive number of seconds")
        if self.memory_limit is not None and not (
            isinstance(self.memory_limit, Integral) and self.memory_limit > 0
        ):
            raise OptionError(
                f"memory_limit: {self.memory_limit!r}, expected a positive number of bytes, such as 2 * 1024**3."
            )
        if self.isolate is False and self.needs_isolation:
            raise OptionError(
                "isolate is False, but call_timeout (--call-timeout), memory_limit (--memory-limit) and on_fault "
                "(--on-fault) need FMUs in processes of their own. Leave isolate out."
            )

    def _read_texts(self) -> None:
        """Replace texts by the objects that they name, and a single name by a sequence."""
        for name, read in _READERS.items():
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, read(text))
        for name in ("output_variables", "steady_states"):
            if isinstance(one := getattr(self, name), str):
                object.__setattr__(self, name, (one,))
        if isinstance(self.step_size, str) and is_rule(self.step_size):
            object.__setattr__(self, "step_size", step_rule(self.step_size))
        if isinstance(self.inputs, Mapping) and any(
            isinstance(v, str) for v in self.inputs.values()
        ):
            read_inputs = {
                k: polynomial(v) if isinstance(v, str) else v for k, v in self.inputs.items()
            }
            object.__setattr__(self, "inputs", read_inputs)
        object.__setattr__(self, "solver", solvers(self.solver))

    @property
    def logs_calls(self) -> bool:
        """Whether FMI calls are logged, to a file or not."""
        return self.log_fmi_calls or self.fmi_log_file is not None

    @property
    def isolate_used(self) -> bool | Sequence[str] | None:
        """Which FMUs have processes of their own; None to decide automatically."""
        return self.isolate

    @property
    def needs_isolation(self) -> bool:
        """Whether FMUs must have processes of their own for other settings."""
        limits = self.call_timeout is not None or self.memory_limit is not None
        return (limits and not self.process) or self.on_fault_used.isolates

    @property
    def algorithm_used(self) -> Algorithm:
        """The algorithm, or the default algorithm if none is given."""
        if self.algorithm is not None:
            return cast(Algorithm, self.algorithm)
        clock = self.event_clock_used
        return Jacobi(ADAPTIVE) if clock is not None and clock.fires else Jacobi()

    @property
    def event_clock_used(self) -> EventClock | None:
        """The event clock as an object, also if it was given as text."""
        return cast(EventClock | None, self.event_clock)

    @property
    def inputs_used(self) -> Mapping[str, Polynomial]:
        """The polynomials of single inputs."""
        return cast(Mapping[str, Polynomial], self.inputs)

    @property
    def loops_used(self) -> Loops:
        """Which algebraic loops are solved."""
        return cast(Loops, self.loops)

    @property
    def solver_used(self) -> Integrator | Mapping[str, Integrator] | None:
        """The solvers of Model Exchange FMUs as objects."""
        return cast(Integrator | Mapping[str, Integrator] | None, self.solver)

    @property
    def on_fault_used(self) -> FaultPolicy:
        """What happens when an FMU is lost."""
        return cast(FaultPolicy, self.on_fault)

    @property
    def backend_used(self) -> Backend:
        """The executor."""
        return cast(Backend, self.backend)


_READERS: Mapping[str, Callable[[str], Any]] = {
    "algorithm": algorithm,
    "event_clock": event_clock,
    "sequence": sequence,
    "loops": partial(choice, Loops, "choice of loops"),
    "on_fault": fault_policy,
    "backend": partial(choice, Backend, "backend"),
}
"""Setting → the function that reads its value from a text."""


def _expect_names(value: object, name: str, what: str) -> None:
    is_sequence = isinstance(value, Sequence) and not isinstance(value, str)
    if not is_sequence or not all(isinstance(entry, str) for entry in value):  # type: ignore[attr-defined]
        raise OptionError(f"{name}: {value!r}, expected a sequence of {what}.")


def _expect_truth_value(value: object, name: str) -> None:
    if not isinstance(value, bool):  # "no" would be true
        raise OptionError(f"{name}: {value!r}, expected True or False.")


def _expect_positive(value: object, name: str, what: str) -> None:
    if value is not None and not (isinstance(value, Real) and 0 < float(value) < inf):
        raise OptionError(f"{name}: {value!r}, expected {what}.")


def _expect(value: object, kind: type, name: str, what: str, examples: str) -> None:
    if isinstance(value, type) and issubclass(value, kind):
        raise OptionError(
            f"{name}: {value.__name__} is a class. Give an object: {value.__name__}()."
        )
    if not isinstance(value, kind):
        raise OptionError(f"{name}: {value!r} is not {what}. Give an object such as {examples}.")
