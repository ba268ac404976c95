"""The settings of a simulation on the command line, for all commands that take them."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from fmimaster.base.errors import OptionError
from fmimaster.commands.parser import add_pairs, group
from fmimaster.configure import named

# imports that a help page does not need are made where they are used: they take 0.4 s
if TYPE_CHECKING:
    from fmimaster.events.event_clock import EventClock
    from fmimaster.fmu.faults.policy import FaultPolicy
    from fmimaster.fmu.model_exchange.integrator import Integrator
    from fmimaster.front.simulation import Simulation
    from fmimaster.loops.solver import LoopSolver
    from fmimaster.steps.step_rule import StepRule, Time


def add_arguments(parser: ArgumentParser) -> None:
    """The system, and all that :class:`fmimaster.Simulation` takes, in the groups of a help page."""
    system = (
        "an FMU (.fmu), an SSP (.ssp), an SSD (.ssd), an OspSystemStructure.xml, or a folder that holds one of them "
        "unpacked"
    )
    parser.add_argument("system", metavar="SYSTEM", help=system)
    _add_times(parser)
    _add_algorithm(parser)
    _add_events(parser)
    _add_loops(parser)
    _add_solvers(parser)
    _add_starts(parser)
    _add_results(parser)
    _add_accuracy(parser)
    _add_execution(parser)


def _add_times(parser: ArgumentParser) -> None:
    times = group(parser, "Times and steps")
    add = times.add_argument
    add("--start-time", metavar="T", help="start time in s")
    add("--stop-time", metavar="T", help="stop time in s")
    add("--step-size", metavar="H", help="communication step size in s: 0.01 or 1/60")
    rules = f"rule that chooses the step sizes: {', '.join(named.STEP_RULES)}; with settings: ecco:smallest=1e-4"
    add("--step-rule", metavar="RULE", help=rules)
    own = "own step size of a component in s; can be repeated"
    add_pairs(times, "--component-step-size", ("NAME", "H"), own)
    parts = "make N steps of a component in each communication step; can be repeated"
    add_pairs(times, "--sub-steps", ("NAME", "N"), parts)


def _add_algorithm(parser: ArgumentParser) -> None:
    add = group(parser, "Algorithm").add_argument
    algorithms = f"co-simulation algorithm: {', '.join(named.ALGORITHMS)}"
    add("--algorithm", metavar="NAME", help=algorithms)
    inputs = (
        f"inputs over a step: {', '.join(named.KINDS)}, or POINTS,DERIVATIVES; with settings as KIND:KEY=VALUE; for some "
        "inputs only as INPUT=KIND, where INPUT is COMPONENT.NAME or a glob; can be repeated"
    )
    add("--inputs", action="append", default=[], metavar="KIND", help=inputs)
    mode = (
        f"inputs that GaussSeidel sets after their source has stepped: {', '.join(named.MODES)}; with settings as "
        "NAME:KEY=VALUE"
    )
    add("--mode", metavar="NAME", help=mode)
    order = f"order of stepping: a method ({', '.join(named.METHODS)}), or the names of all components: a,b,c"
    add("--sequence", metavar="ORDER", help=order)
    levels = "with GaussSeidel, step independent components at the same time"
    add("--levels", action="store_true", help=levels)
    most = "the same, with at most N levels"
    add("--most-levels", type=int, metavar="N", help=most)
    refresh = (
        "after each step, read outputs that depend directly on inputs again, for the new inputs"
    )
    add("--refresh", action="store_true", help=refresh)
    linearized = (
        "the same; outputs that cannot be read again are linearized by directional derivatives"
    )
    add("--refresh-linearized", action="store_true", help=linearized)
    sweeps = (
        "do each step at least K times, with inputs interpolated over the completed step, or as often as a solver needs "
        "(solver); with settings as in K:tolerance=1e-6,corrections=3 or solver:relative=1e-6,bounded=3"
    )
    add("--sweeps", metavar="K", help=sweeps)


def _add_events(parser: ArgumentParser) -> None:
    add = group(parser, "Events").add_argument
    clocks = f"how events are found: {', '.join(named.EVENT_CLOCKS)}; with settings: predictive:near=1e-4"
    add("--event-clock", metavar="NAME", help=clocks)
    mode = "use Event Mode of FMI 3.0, or not (default: if the system or the event clock needs it)"
    add("--event-mode", action=BooleanOptionalAction, help=mode)
    merged = "make a tick and an event that are at most so far apart one instant (default: 0)"
    add("--event-merge-tolerance", default="0", metavar="S", help=merged)
    spelled = "--event-mode-used"  # as the standard does
    add(spelled, dest="event_mode", action=BooleanOptionalAction, default=None, help=SUPPRESS)


def _add_loops(parser: ArgumentParser) -> None:
    add = group(parser, "Algebraic loops").add_argument
    loops = "algebraic loops that are solved in Step Mode: real (the default), all (assumed ones too), none"
    add("--loops", default="real", metavar="WHICH", help=loops)
    relative = "relative tolerance of algebraic loops (default: 1e-8)"
    add("--loop-tolerance", type=float, metavar="TOL", help=relative)


def _add_solvers(parser: ArgumentParser) -> None:
    add = group(parser, "Model Exchange").add_argument
    solvers = (
        f"solver of Model Exchange FMUs: {', '.join(named.SOLVERS)}; with settings as in cvode:relative=1e-8; for some "
        "components only as COMPONENT=NAME, where COMPONENT may be a glob; can be repeated"
    )
    interface = (
        "interface by which a single FMU is used: CoSimulation, ModelExchange, ScheduledExecution (default: the first of "
        "these that the FMU has)"
    )
    add("--interface", metavar="NAME", help=interface)
    add("--solver", action="append", default=[], metavar="NAME", help=solvers)


def _add_starts(parser: ArgumentParser) -> None:
    starts = group(parser, "Start values and inputs")
    add = starts.add_argument
    value = "start value of a variable; can be repeated; NAME VALUE is the same"
    add_pairs(starts, "--start-value", ("NAME", "VALUE"), value)
    steady = "state COMPONENT.STATE whose time derivative is 0 at the start; its start value is computed; can be repeated"
    add("--steady-state", action="append", default=[], metavar="NAME", help=steady)
    add("--input-file", metavar="CSV", help="table whose columns are the values of open inputs")
    add(
        "--ignore-further-columns",
        action="store_true",
        help="ignore columns of the input file that are not open inputs",
    )


def _add_results(parser: ArgumentParser) -> None:
    add = group(parser, "Results").add_argument
    variable = "variables to record; can be repeated (default: all outputs)"
    add("--output-variable", action="append", default=[], metavar="GLOB", help=variable)
    interval = "record only one row every S seconds"
    add("--output-interval", type=float, metavar="S", help=interval)
    inside = (
        "also record outputs inside of steps, in a file for each FMU (FMI 3.0, intermediateUpdate)"
    )
    add("--record-intermediate-values", action="store_true", help=inside)


def _add_accuracy(parser: ArgumentParser) -> None:
    add = group(parser, "Accuracy").add_argument
    accuracy = (
        "permitted error of each output, relative to its largest value; step-size rule and inputs are chosen, and "
        "steps are shortened until it is met"
    )
    add("--accuracy", type=float, metavar="A", help=accuracy)
    bonds = "relative tolerance of the energy of all power bonds that have an energy scale"
    add("--bond-tolerance", type=float, metavar="TOL", help=bonds)
    tolerance = f"relative tolerance passed to the FMUs; {named.NO_TOLERANCE} passes none"
    add("--tolerance", metavar="TOL", help=tolerance)
    strict = "treat a loss of accuracy as an error, not as a warning"
    add("--strict", action="store_true", help=strict)


def _add_execution(parser: ArgumentParser) -> None:
    add = group(parser, "Execution").add_argument
    backend = f"executor of the programs: {', '.join(named.BACKENDS)}; all give the same bits"
    add("--backend", default=named.BACKENDS[0], metavar="NAME", help=backend)
    threads = (
        "threads that step instances at the same time (default: 1; 0: chosen by a measurement)"
    )
    add("--threads", type=int, default=1, metavar="N", help=threads)
    isolate = (
        "FMUs in processes of their own: all, none, or a COMPONENT or glob; can be repeated (default: FMUs "
        "that allow one instance per process and are used more than once; all if another option needs it)"
    )
    add("--isolate", action="append", metavar="WHICH", help=isolate)
    timeout = "wall time in s after which a call of an FMU that has not returned is ended, with its process"
    add("--call-timeout", type=float, metavar="S", help=timeout)
    memory = "bytes that the process of the run may take, or each FMU with --isolate, such as 2e9"
    add("--memory-limit", type=float, metavar="BYTES", help=memory)
    faults = (
        f"what the run does when the process of an FMU ends: {', '.join(named.FAULT_POLICIES)}; with settings: "
        "restart:tries=3 (default: stop)"
    )
    add("--on-fault", default="stop", metavar="POLICY", help=faults)
    card = "FMU card that 'fmimaster probe' has written, or cached for those that it keeps; can be repeated"
    add("--card", action="append", metavar="FILE", help=card)
    lossy = "let connections convert between types even if a value can be lost"
    add("--allow-lossy-conversions", action="store_true", help=lossy)
    add("--allow-nan", action="store_true", help="let outputs be NaN or infinite")
    logging = "switch on the debug messages of the FMUs, and show them"
    add = group(parser, "Messages and logs").add_argument
    add("--debug-logging", action="store_true", help=logging)
    calls = "log each FMI call with its arguments and status, and show it"
    add("--log-fmi-calls", action="store_true", help=calls)
    file = "write the log of FMI calls to a file, with the messages of the FMUs"
    add("--fmi-log-file", metavar="FILE", help=file)


def simulation(arguments: Namespace) -> Simulation:
    """The settings from the arguments.

    Raises
    ------
    OptionError
        If one of them has no valid meaning.
    """
    from fmimaster.commands.algorithm_options import chosen_algorithm
    from fmimaster.front.simulation import Simulation

    return Simulation(
        arguments.system,
        algorithm=chosen_algorithm(arguments),
        inputs=named.single_inputs(arguments.inputs),
        sequence=arguments.sequence,
        bond_tolerance=arguments.bond_tolerance,
        accuracy=arguments.accuracy,
        interface=arguments.interface,
        start_time=arguments.start_time,
        stop_time=arguments.stop_time,
        step_size=_step_size(arguments),
        event_clock=_event_clock(arguments.event_clock),
        event_mode=arguments.event_mode,
        event_merge_tolerance=arguments.event_merge_tolerance,
        loops=arguments.loops,
        loop_solver=_loop_solver(arguments.loop_tolerance),
        solver=_solver(arguments.solver),
        strict=arguments.strict,
        start_values=dict(arguments.start_value),
        steady_states=arguments.steady_state,
        input=arguments.input_file,
        ignore_further_columns=arguments.ignore_further_columns,
        output_variables=arguments.output_variable,
        output_interval=arguments.output_interval,
        record_intermediate_values=arguments.record_intermediate_values,
        tolerance=_tolerance(arguments.tolerance),
        allow_lossy_conversions=arguments.allow_lossy_conversions,
        allow_nan=arguments.allow_nan,
        debug_logging=arguments.debug_logging,
        log_fmi_calls=arguments.log_fmi_calls,
        fmi_log_file=arguments.fmi_log_file,
        cards=arguments.card,
        on_fault=_on_fault(arguments.on_fault),
        backend=arguments.backend,
        threads=arguments.threads,
        isolate=_isolate(arguments.isolate),
        call_timeout=arguments.call_timeout,
        memory_limit=memory_in_bytes(arguments.memory_limit),
    )


def _step_size(arguments: Namespace) -> StepRule[Any] | Time | None:
    """The step size, with the requested rule."""
    size: str | None = arguments.step_size
    if arguments.component_step_size:
        if arguments.step_rule is not None:
            raise OptionError(
                f"--component-step-size and --step-rule {arguments.step_rule} exclude each other: components with "
                "their own step sizes have fixed steps. Leave one of them out."
            )
        from fmimaster.steps.multi_rate import MultiRate  # few runs need it

        return MultiRate(size, dict(arguments.component_step_size))
    if arguments.step_rule is None:
        return size
    from fmimaster.configure.named import step_rule

    return step_rule(arguments.step_rule, "--step-rule", size=size)


def _event_clock(text: str | None) -> EventClock | None:
    if text is None:
        return None
    from fmimaster.configure.named import event_clock

    return event_clock(text, "--event-clock")


def _solver(texts: list[str]) -> Integrator | dict[str, Integrator] | None:
    if not texts:
        return None
    from fmimaster.configure.named import solver_by_component

    return solver_by_component(texts)


def _isolate(texts: list[str] | None) -> bool | list[str] | None:
    if texts is None:
        return None
    for word, meaning in (("all", True), ("none", False)):
        if word in texts:
            if len(set(texts)) > 1:
                raise OptionError(f"--isolate {word} excludes other values of --isolate.")
            return meaning
    return texts


def memory_in_bytes(size: float | None) -> int | None:
    if size is not None and not 1.0 <= size < inf:
        raise OptionError(f"--memory-limit {size:g}: expected a positive number of bytes.")
    return None if size is None else int(size)


def _on_fault(text: str) -> FaultPolicy:
    from fmimaster.configure.named import fault_policy

    return fault_policy(text, "--on-fault")


def _loop_solver(tolerance: float | None) -> LoopSolver:
    from fmimaster.loops.solver import LoopSolver

    if tolerance is None:
        return LoopSolver()
    if not 0.0 < tolerance < inf:
        raise OptionError(f"--loop-tolerance {tolerance:g}: expected a number greater than 0.")
    return LoopSolver(relative=tolerance)


def _tolerance(text: str | None) -> float | Literal["none"] | None:
    if text is None:
        return None
    if text == named.NO_TOLERANCE:
        return "none"
    try:
        return float(text)
    except ValueError:
        raise OptionError(
            f"--tolerance {text}: expected a positive number, or {named.NO_TOLERANCE}."
        ) from None
