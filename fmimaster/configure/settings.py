"""The settings of a simulation as one value, checked when it is created."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, MISSING, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from fmimaster.base.data import dataclass
from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.public_names import at_place
from fmimaster.base.text import clipped, in_short
from fmimaster.configure.setting_rows import ROWS, refuse_pairs

# a help page shows the texts of settings, and must be fast: their objects are imported when they are made
if TYPE_CHECKING:
    from fmimaster.algorithms.algorithm import Algorithm
    from fmimaster.cards.measured import MeasuredAtStart
    from fmimaster.cards.use import Cards
    from fmimaster.configure.input_signals import Input
    from fmimaster.events.event_clock import EventClock
    from fmimaster.fmu.fault_policy import FaultPolicy
    from fmimaster.fmu.model_exchange.integrator import Integrator
    from fmimaster.inputs.polynomial import Polynomial
    from fmimaster.loops.solver import LoopSolver
    from fmimaster.plan.step_groups import Loops
    from fmimaster.run.executor import Backend
    from fmimaster.sequences.methods import SequenceSetting
    from fmimaster.steps.step_rule import StepRule, Time
    from fmimaster.system.builder import SystemBuilder
    from fmimaster.system.declarations import Interface
    from fmimaster.system.description import PowerBond, SystemDescription

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

AT_ONCE: Mapping[str, Any] = {"real_time_factor": None, "lateness_limit": None}
"""Settings of further runs: they do not wait for a clock."""

_MOST_LETTERS = 60
"""Largest number of characters of the value of a setting in a repr."""

AnySettings = TypeVar("AnySettings", bound="Settings")


def _loop_solver() -> LoopSolver:
    solver: LoopSolver = at_place("loops.solver:LoopSolver")()
    return solver


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
        Co-simulation algorithm. Default: chosen for the system. Connected components are stepped by Gauss-Seidel, with
        inputs on lines; if an event clock fires events, by Jacobi with extrapolated inputs (``ADAPTIVE``).
    inputs : names of inputs → Polynomial, or text such as ``"linear"``
        Inputs over a step. Polynomials of single inputs; a name is ``"component.input"`` or a glob. The algorithm decides
        for all other inputs.
    sequence : method, its name, or names of all components
        Order of stepping. It is that of the components, if the algorithm steps them one after the other. Default: the
        sequence of the system description, if it has one; otherwise the sequence whose stale inputs have the smallest
        weight. Methods by name: ``"automatic"``, ``"count"``, ``"nearest-neighbour"``, ``"upstream"``; as objects:
        LeastStale, NearestNeighbour, Upstream.
    power_bonds : PowerBond
        Bonds in addition to those of the system description.
    bond_tolerance : float
        Relative tolerance of the energy of all power bonds that have an energy scale. It replaces their own tolerances.
    accuracy : float
        Permitted error of each output, relative to its largest value; step-size rule and inputs are chosen, and steps are
        shortened until it is met. The error is the root mean square over time, relative to the largest absolute value of
        a recorded output; it is estimated by runs in which each step is halved. A step-size rule and inputs that are given
        stay. If step_size is a number, it is the largest step.
    error_estimate : bool
        Estimate the error of the coupling by a second run with half the steps. It is in ``statistics.coupling_error`` and
        at the end of the messages of a run; above 5 % there is a warning. The results stay those of the first run. Default:
        of a run that took more than 2 s of CPU time only the beginning, and nothing if a component in Python acts outside
        of the run (``can_go_back``). Without connected continuous signals there is no such error.
    start_time : number or text, in s
        Start time in s. Default: the value of the system's default experiment, otherwise that of the FMUs.
    stop_time : number or text, in s
        Stop time in s. Default: the value of the system's default experiment, otherwise that of the FMUs.
    step_size : StepRule, number in s, or text
        Communication step size in s. Or a rule: FixedStep, Ramp, FreeStep, Locate, PID. A text is a number or fraction in
        s, as ``"1/60"``, or names a rule, as ``"ecco:size=0.01,smallest=1e-4"``. With a number or fraction the rule is
        FixedStep; with the event clocks LookAhead and EarlyReturn it is FreeStep, and with Predictive it is Ramp.
        Default: that of the system; otherwise chosen, so that the error of the coupling is at most 0.3 %, or 1 % with the
        steps that an FMU suggests.
    event_clock : EventClock, or text such as ``"predictive:near=1e-4"``
        How events are found. An event clock predicts or detects state events: LookAhead, Predictive, EarlyReturn, Check.
        Default: chosen for the FMUs. With ``"none"``, FMUs handle their events themselves.
    event_mode : bool
        Use Event Mode of FMI 3.0, or not. Default: True if an event clock fires events, or if the structure of the system
        changes. FMUs with clocks always use it.
    event_merge_tolerance : float, int, str or Fraction, in s
        Make a tick and an event that are at most so far apart one instant. The event is a time event of an FMU. An event
        that is found within a step takes a tick with it that comes at most so much later. With 0 only what coincides
        exactly is one instant.
    loops : Loops, or ``"real"``, ``"all"``, ``"none"``
        Algebraic loops that are solved in Step Mode. They are solved by restoring the FMUs and repeating the step.
        ``Loops.REAL``: loops whose dependencies are declared. ``ALL``: also loops that are assumed because an FMU declares
        no dependencies. ``NONE``: no loop. Default: those that are found real by a measurement at the start; ``REAL`` if
        both ``algorithm`` and ``event_clock`` are given.
    loop_solver : LoopSolver
        Tolerances and limits for algebraic loops.
    strict : bool
        Treat a loss of accuracy as an error, not as a warning.
    start_values : name → value
        Start value of a variable. Names are ``"component.variable"``; for a single FMU the name of the variable is enough.
    steady_states : names of states, ``"component.state"``
        State COMPONENT.STATE whose time derivative is 0 at the start; its start value is computed. The search for it
        begins at the start values. The FMU must have the derivatives, and the start values must be settable (initial is
        exact).
    input : path, Results, mapping, structured array or DataFrame
        Table whose columns are the values of open inputs. They are signals of the same names: columns of a CSV file, of
        results, of a structured array or of a DataFrame, or ``{"time": [...], "motor.u": [...]}``; the times are in s.
        A mapping may also have functions of time: ``{"motor.u": lambda t: sin(t)}``. A function is called at
        communication points. Its values are treated like outputs of a component that publishes no derivatives.
    ignore_further_columns : bool
        Ignore columns of the input file that are not open inputs. Otherwise such signals are an error, also of other
        forms of input.
    output_variables : globs of names
        Variables to record. Default: the outputs of all components.
    output_interval : float, in s
        Record only one row every S seconds. Only the first row at or after each multiple of this interval and the last
        row are recorded.
    record_intermediate_values : bool
        Also record outputs inside of steps, in a file for each FMU (FMI 3.0, intermediateUpdate). They are recorded at
        the intermediate points of FMUs with providesIntermediateUpdate: see ``Results.intermediate``.
    tolerance : float or ``"none"``
        Relative tolerance passed to the FMUs. Default: that of the system's default experiment, otherwise that of each
        FMU. With ``"none"`` no tolerance is passed.
    solver : Integrator, text such as ``"cvode:relative=1e-8"``, or names of components → Integrator or text
        Solver of Model Exchange FMUs. As objects: DormandPrince, Cvode, Euler. A mapping is for single components; its
        names may be globs. Default: DormandPrince, with the tolerance that a Co-Simulation FMU would be passed.
    initial_fmu_state : path
        File of FMU states that are set after the initialization. The FMUs must be able to serialize their state. For
        a single FMU the file has its bytes, as FMPy reads and writes them. The memory of an algorithm is not in the file.
    final_fmu_state : path
        File for the FMU states at the end. As for ``initial_fmu_state``. Some FMUs keep the stop time of the run in their
        state: then end the first run early, by :meth:`Simulation.start`.
    allow_lossy_conversions : bool
        Let connections convert between types even if a value can be lost.
    allow_nan : bool
        Let outputs be NaN or infinite.
    extrapolation_errors : bool
        Whether the error of each input over each step is recorded, as ``"component.input.extrapolation_error"``.
    debug_logging : bool
        Switch on the debug messages of the FMUs. They are written to the log ``logging.getLogger("fmimaster")``.
    log_fmi_calls : bool
        Log each FMI call with its arguments and status. Also with its time and the returned values. The FMUs are then
        called in Python, one after the other; the results are the same.
    fmi_log_file : path
        Write the log of FMI calls to a file, with the messages of the FMUs. They are in order of time. Without a file,
        the calls are messages of level INFO in the log of fmimaster. With a file, ``log_fmi_calls`` is not needed.
    checkpoint : path
        File for the state of the run, from which 'fmimaster resume FILE' continues a run that was ended. In Python it
        continues by :func:`fmimaster.resume`, for example after a crash of the computer. The rows so far are in a file
        beside it.
    checkpoint_interval : float in s, or text such as ``"wall=60"``, ``"time=0.5,wall=60"``
        S of the run between two checkpoints; wall=S for wall time; or both: time=S,wall=S (default: wall=60).
    cards : FmuCard, path, ``"cached"``, or several of them
        FMU card that 'fmimaster probe' has written, or cached for those that it keeps. In Python :func:`fmimaster.probe`
        measures them. What a card refutes is not relied on, with a warning. The accuracy of loops, the dependencies of
        outputs that declare none, and the FMUs that have processes of their own follow from the cards.
    on_fault : Stop, Restart, Drop, or ``"stop"``, ``"restart:tries=3"``, ``"drop"``
        What the run does when the process of an FMU ends. It ends by a crash, or is ended because a call does not return.
        Stop: the run ends, and the error has the results until then. Restart: the FMU is started again. Drop: the run
        continues without it, and its outputs keep their values. With Restart and Drop all FMUs run in processes of their
        own, unless ``isolate`` names some.
    real_time_factor : float
        Run at this multiple of real time: each step waits until a wall clock shows its end. The results are the same. With
        2, a second of wall time has two seconds of the run. A run that is late catches up; ``statistics.real_time`` has
        how late its steps were. Default: as fast as possible.
    lateness_limit : float, in s
        End a run in real time with an error if a step ends so many seconds of wall time after its time. The error has the
        results until then. Default: the run goes on.
    backend : Backend, or ``"fastest"``, ``"native"``, ``"reference"``
        Executor of the programs. It is the kernel in C or the interpreter in Python; they give the same bits.
    threads : int
        Threads that step instances at the same time. They do if the algorithm allows it and the executor is native. With
        0, fmimaster measures during the run whether threads make it faster. The results are the same.
    isolate : bool, names of components, or name → where
        FMUs in processes of their own. All, none, or those that are named; names may be globs. A crash of such an FMU
        ends the run with :class:`FmuLostError`, and this process goes on. The results are the same. A mapping says where:
        True for this machine, or the address of a host on another one, such as ``"tcp://127.0.0.1:7000"``. Of several
        addresses, the first that can be reached is used. Default: FMUs that allow one instance per process, if they are
        used more than once, and all FMUs if ``call_timeout``, ``memory_limit`` or ``on_fault`` is given.
    call_timeout : float, in s
        Wall time in s after which a call of an FMU that has not returned is ended, with its process. Default: no limit,
        but 30 s for loading and instantiation in a process of its own. The time in which that waits for a processor does
        not count there, nor anywhere if more of them than processors run.
    memory_limit : int, in bytes
        Memory that each FMU can allocate in its process; allocations beyond it fail. With ``process``, what the process of
        the run can take; if it takes more, it is ended.
    process : bool
        Whether the whole run has one process of its own, so that nothing an FMU does can end this one: a crash is a
        :class:`FmuLostError` with the rows until then. ``call_timeout`` and ``memory_limit`` are then limits of this
        process, and no FMU has another one unless ``isolate`` or ``on_fault`` says so. It costs some milliseconds at the
        start, and nothing per step. The command does this by default, on every system. In Python it is off: components
        written in Python would run in the other process, and ``progress`` is not called. In Python it needs Linux, and has
        no effect elsewhere.
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
    error_estimate: bool | None = None
    extrapolation_errors: bool = False
    start_time: Time | None = None
    stop_time: Time | None = None
    step_size: StepRule[Any] | Time | None = None
    event_clock: EventClock | str | None = None
    event_mode: bool | None = None
    event_merge_tolerance: Time = 0
    loops: Loops | MeasuredAtStart | str | None = None
    loop_solver: LoopSolver = field(default_factory=_loop_solver)
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
    on_fault: FaultPolicy | str = "stop"
    real_time_factor: float | None = None
    lateness_limit: float | None = None
    backend: Backend | str = "fastest"
    threads: int = 1
    isolate: bool | str | Sequence[str] | Mapping[str, bool | str | Sequence[str]] | None = None
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
        system = str(self.system) if isinstance(self.system, os.PathLike) else self.system
        given = [repr(system)]
        for name, value in self.changed().items():
            given.append(f"{name}={clipped(in_short(value), _MOST_LETTERS)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def changed(self) -> dict[str, Any]:
        """The settings that differ from their defaults.

        Returns
        -------
        dict
            Name → value, without the system.
        """
        defaults = {
            f.name: f.default if f.default_factory is MISSING else f.default_factory()
            for f in fields(self)
            if f.name != "system"
        }
        values = {name: getattr(self, name) for name in defaults}
        return {n: v for n, v in values.items() if v != ROWS[n].value(defaults[n])}

    def __post_init__(self) -> None:
        for name, row in ROWS.items():
            object.__setattr__(self, name, row.value(getattr(self, name)))
        refuse_pairs(vars(self))
        if self.lateness_limit is not None and self.real_time_factor is None:
            raise OptionError(
                "lateness_limit (--lateness-limit) is for runs in real time. Give real_time_factor (--real-time-factor), "
                "too."
            )
        if self.isolate is False and self.needs_isolation:
            raise OptionError(
                "isolate is False, but call_timeout (--call-timeout), memory_limit (--memory-limit) and on_fault "
                "(--on-fault) need FMUs in processes of their own. Leave isolate out."
            )

    @property
    def logs_calls(self) -> bool:
        """Whether FMI calls are logged, to a file or not."""
        return self.log_fmi_calls or self.fmi_log_file is not None

    @property
    def isolate_used(self) -> bool | Sequence[str] | Mapping[str, Any] | None:
        """Which FMUs have processes of their own; None to decide automatically."""
        return self.isolate

    @property
    def needs_isolation(self) -> bool:
        """Whether FMUs must have processes of their own for other settings."""
        limits = self.call_timeout is not None or self.memory_limit is not None
        return (limits and not self.process) or self.used.on_fault.isolates

    @property
    def algorithm_used(self) -> Algorithm:
        """The algorithm. Settings that give none get one when the run is prepared: see ``Prepared.settings``."""
        assert self.algorithm is not None, "an algorithm is chosen when a run is prepared"
        return cast("Algorithm", self.algorithm)

    @property
    def clock_used(self) -> EventClock | None:
        """The event clock; None without one, also if that is requested by ``"none"``."""
        clock = self.used.event_clock
        return None if clock is None or clock.is_none else clock

    @property
    def loops_used(self) -> Loops:
        """The loops of Step Mode that are solved: without a choice, those that exist by the dependencies of the run."""
        kind: type[Loops] = at_place("plan.step_groups:Loops")
        given = self.used.loops
        if given is None or isinstance(given, kind):
            return given or kind.REAL
        return kind.REAL if cast("MeasuredAtStart", given).solves else kind.NONE

    @property
    def used(self) -> ReadSettings:
        """The settings that may be given as text, with the types that they have when they are read."""
        return cast("ReadSettings", self)


class ReadSettings(Protocol):
    """Settings that may be given as text, when they are read: the objects that the texts name."""

    inputs: Mapping[str, Polynomial]
    event_clock: EventClock | None
    loops: Loops | MeasuredAtStart | None
    solver: Integrator | Mapping[str, Integrator] | None
    on_fault: FaultPolicy
    backend: Backend
