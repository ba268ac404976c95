"""The table of settings. A setting is its field and its text in ``Settings``, and its row here.

From the rows come the checks of :class:`fmimaster.configure.settings.Settings`, the options of all commands that simulate,
with their groups and their help, and what checkpoints and studies do with a setting. Rows have the order of the help pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fmimaster.base.errors import OptionError
from fmimaster.configure import setting_kinds as kinds
from fmimaster.configure.named import (
    ALGORITHMS,
    BACKENDS,
    EVENT_CLOCKS,
    FAULT_POLICIES,
    KINDS,
    METHODS,
    MODES,
    NO_TOLERANCE,
    SOLVERS,
    STEP_RULES,
)
from fmimaster.configure.setting_kinds import (
    Option,
    Row,
    flag,
    member,
    names,
    part,
    path,
    positive,
    refused_by,
    whole,
)

_TIMES, _ALGORITHM, _EVENTS, _LOOPS = "Times and steps", "Algorithm", "Events", "Algebraic loops"
_EXCHANGE, _STARTS, _RESULTS = "Model Exchange", "Start values and inputs", "Results"
_ACCURACY, _EXECUTION, _LOGS = "Accuracy", "Execution", "Messages and logs"


_REPEATED = "; can be repeated"


def _names(known: Iterable[str]) -> str:
    return ", ".join(known)


TABLE = (
    Row("system", convert=kinds.system, needed=True, is_file=True),
    Row("start_time", Option(_TIMES, "T")),
    Row("stop_time", Option(_TIMES, "T")),
    Row("step_size", Option(_TIMES, "H", ": 0.01 or 1/60"), convert="configure.reading:step_size"),
    part(
        "step_rule",
        Option(_TIMES, "RULE"),
        f"rule that chooses the step sizes: {_names(STEP_RULES)}; with settings: ecco:smallest=1e-4",
    ),
    part(
        "component_step_size",
        Option(_TIMES, ("NAME", "H")),
        f"own step size of a component in s{_REPEATED}",
    ),
    part(
        "sub_steps",
        Option(_TIMES, ("NAME", "N")),
        f"make N steps of a component in each communication step{_REPEATED}",
    ),
    Row(
        "algorithm",
        Option(_ALGORITHM, "NAME", f": {_names(ALGORITHMS)}"),
        read="configure.reading:algorithm",
        instance=("algorithms.algorithm:Algorithm", "an algorithm", "Jacobi(), or its name"),
    ),
    Row(
        "inputs",
        Option(
            _ALGORITHM,
            "KIND",
            f": {_names(KINDS)}, or POINTS,DERIVATIVES; with settings as KIND:KEY=VALUE; for some inputs only as "
            f"INPUT=KIND, where INPUT is COMPONENT.NAME or a glob{_REPEATED}",
            is_repeated=True,
        ),
        convert="configure.reading:inputs",
        needed=True,
    ),
    part(
        "mode",
        Option(_ALGORITHM, "NAME"),
        f"inputs that GaussSeidel sets after their source has stepped: {_names(MODES)}; with settings as NAME:KEY=VALUE",
    ),
    Row(
        "sequence",
        Option(
            _ALGORITHM,
            "ORDER",
            f": a method ({_names(METHODS)}), or the names of all components: a,b,c",
        ),
        read="configure.reading:sequence",
        convert=refused_by("sequences.methods:check_sequence"),
    ),
    part(
        "levels",
        Option(_ALGORITHM),
        "with GaussSeidel, step independent components at the same time",
    ),
    part("most_levels", Option(_ALGORITHM, "N", kind=int), "the same, with at most N levels"),
    part(
        "refresh",
        Option(_ALGORITHM),
        "after each step, read outputs that depend directly on inputs again, for the new inputs",
    ),
    part(
        "refresh_linearized",
        Option(_ALGORITHM),
        "the same; outputs that cannot be read again are linearized by directional derivatives",
    ),
    part(
        "sweeps",
        Option(_ALGORITHM, "K"),
        "do each step at least K times, with inputs interpolated over the completed step, or as often as a solver needs "
        "(solver); with settings as in K:tolerance=1e-6,corrections=3 or solver:relative=1e-6,bounded=3",
    ),
    Row(
        "event_clock",
        Option(_EVENTS, "NAME", f": {_names(EVENT_CLOCKS)}; with settings: predictive:near=1e-4"),
        read="configure.reading:event_clock",
        instance=("events.event_clock:EventClock", "an event clock", "LookAhead(), or its name"),
    ),
    Row(
        "event_mode",
        Option(
            _EVENTS,
            also=" (default: if the system or the event clock needs it)",
            is_or_not=True,
            hidden="--event-mode-used",  # as the standard spells it
        ),
        "True or False",
        kinds.is_truth_value,
    ),
    Row(
        "event_merge_tolerance",
        Option(_EVENTS, "S", " (default: 0)"),
        "0 or a positive number of seconds",
        kinds.is_not_negative,
        needed=True,
    ),
    Row(
        "loops",
        Option(_LOOPS, "WHICH", ": real, all (assumed ones too), none"),
        convert="configure.reading:loops",
    ),
    part(
        "loop_tolerance",
        Option(_LOOPS, "TOL", kind=float),
        "relative tolerance of algebraic loops (default: 1e-8)",
    ),
    Row(
        "loop_solver",
        instance=("loops.solver:LoopSolver", "a solver of loops", "LoopSolver()"),
        needed=True,
    ),
    Row(
        "interface",
        Option(
            _EXCHANGE,
            "NAME",
            ": CoSimulation, ModelExchange, ScheduledExecution (default: the first of these that the FMU has)",
        ),
        convert="system.declarations:Interface.named",
    ),
    Row(
        "solver",
        Option(
            _EXCHANGE,
            "NAME",
            f": {_names(SOLVERS)}; with settings as in cvode:relative=1e-8; for some components only as COMPONENT=NAME, "
            f"where COMPONENT may be a glob{_REPEATED}",
            is_repeated=True,
        ),
        convert=kinds.solver,
    ),
    Row(
        "start_values",
        Option(
            _STARTS, ("NAME", "VALUE"), f"{_REPEATED}; NAME VALUE is the same", name="--start-value"
        ),
        "a mapping of names to values",
        kinds.is_mapping_of_names,
        needed=True,
    ),
    names(
        "steady_states",
        Option(_STARTS, "NAME", f"{_REPEATED}", name="--steady-state", is_repeated=True),
        "names of states: component.state",
    ),
    Row(
        "input",
        Option(_STARTS, "CSV", name="--input-file"),
        convert=kinds.open_inputs,
        is_file=True,
    ),
    flag("ignore_further_columns", _STARTS),
    path(
        "initial_fmu_state",
        Option(_STARTS, "FILE", name="--initial-fmu-state-file", one_run=True),
    ),
    names(
        "output_variables",
        Option(
            _RESULTS,
            "GLOB",
            f"{_REPEATED} (default: all outputs)",
            name="--output-variable",
            is_repeated=True,
        ),
        "names or globs",
    ),
    positive("output_interval", Option(_RESULTS, "S", kind=float), changes_rows=False),
    flag("record_intermediate_values", _RESULTS),
    path(
        "final_fmu_state",
        Option(_RESULTS, "FILE", name="--final-fmu-state-file", one_run=True),
        writes="the final FMU states",
        beside=".states",
        changes_rows=False,
    ),
    path(
        "checkpoint",
        Option(_RESULTS, "FILE", one_run=True),
        writes="the checkpoints",
        changes_rows=False,
    ),
    Row(
        "checkpoint_interval",
        Option(_RESULTS, "S", one_run=True),
        convert=refused_by("configure.checkpoint_interval:interval_of"),
        changes_rows=False,
    ),
    positive(
        "accuracy",
        Option(_ACCURACY, "A", kind=float),
        "a positive number, such as 1e-4",
        not_with={
            "final_fmu_state": "final_fmu_state (--final-fmu-state-file) is the end of one run, but accuracy (--accuracy) "
            "does several.",
            "checkpoint": "checkpoint (--checkpoint) is for one run, but accuracy (--accuracy) does several.",
        },
    ),
    Row(
        "error_estimate",
        Option(
            _ACCURACY,
            also=" (default: of runs of more than 2 s only the beginning)",
            one_run=True,
            is_or_not=True,
        ),
        "True or False",
        kinds.is_truth_value,
        changes_rows=False,
    ),
    positive(
        "bond_tolerance",
        Option(_ACCURACY, "TOL", kind=float),
        "a positive number, such as 1e-6",
    ),
    Row(
        "tolerance",
        Option(_ACCURACY, "TOL", f"; {NO_TOLERANCE} passes none"),
        f"a positive number or {NO_TOLERANCE!r}",
        kinds.is_tolerance,
    ),
    flag("strict", _ACCURACY),
    Row("power_bonds", convert=kinds.bonds, needed=True),
    flag("extrapolation_errors"),
    positive(
        "real_time_factor",
        Option(_EXECUTION, "F", kind=float, one_run=True),
        changes_rows=False,
        not_with={
            "accuracy": "real_time_factor (--real-time-factor) is for one run, but accuracy (--accuracy) does several."
        },
    ),
    positive(
        "lateness_limit",
        Option(_EXECUTION, "S", kind=float, one_run=True),
        "a positive number of seconds",
        changes_rows=False,
    ),
    member(
        "backend",
        Option(_EXECUTION, "NAME", f": {_names(BACKENDS)}; all give the same bits"),
        "run.executor:Backend",
        "backend",
        changes_rows=False,
    ),
    whole(
        "threads",
        Option(_EXECUTION, "N", " (default: 1; 0: chosen by a measurement)", kind=int),
        0,
        "0 (automatic), 1 or more",
        needed=True,
        changes_rows=False,
    ),
    Row(
        "isolate",
        Option(
            _EXECUTION,
            "WHICH",
            f": all, none, or a COMPONENT or glob{_REPEATED}; on another machine COMPONENT=tcp://HOST:PORT (default: FMUs "
            "that allow one instance per process and are used more than once; all if another option needs it)",
            is_repeated=True,
        ),
        "a sequence of names or globs, a mapping of them to addresses, or True or False",
        kinds.is_isolation,
        convert=kinds.isolation,
    ),
    positive("call_timeout", Option(_EXECUTION, "S", kind=float), "a positive number of seconds"),
    whole(
        "memory_limit",
        Option(
            _EXECUTION,
            "BYTES",
            help="bytes that the process of the run may take, or each FMU with --isolate, such as 2e9",
            kind=float,
        ),
        1,
        "a positive number of bytes, such as 2 * 1024**3",
    ),
    Row(
        "on_fault",
        Option(
            _EXECUTION,
            "POLICY",
            f": {_names(FAULT_POLICIES)}; with settings: restart:tries=3 (default: stop)",
        ),
        read="configure.reading:fault_policy",
        instance=("fmu.fault_policy:FaultPolicy", "a way to handle a fault", "Restart()"),
        needed=True,
    ),
    Row(
        "cards",
        Option(_EXECUTION, "FILE", _REPEATED, name="--card", is_repeated=True),
        convert=refused_by("cards.use:check_cards"),
    ),
    flag("allow_lossy_conversions", _EXECUTION),
    flag("allow_nan", _EXECUTION),
    flag("process"),
    flag("debug_logging", _LOGS, ", and show them", changes_rows=False),
    flag("log_fmi_calls", _LOGS, ", and show it", changes_rows=False),
    path(
        "fmi_log_file",
        Option(_LOGS, "FILE"),
        writes="the log of FMI calls",
        beside=".calls.log",
        changes_rows=False,
    ),
)
"""All settings, and options that are parts of settings."""

ROWS = {row.name: row for row in TABLE if not row.is_part}
"""Name of a setting → its row."""


def refuse_pairs(settings: Mapping[str, Any]) -> None:
    """Raise if two settings are given that exclude each other.

    Raises
    ------
    OptionError
    """
    for row in ROWS.values():
        for other, why in row.not_with.items():
            if settings[row.name] is not None and settings[other] is not None:
                raise OptionError(f"{why} Leave one of them out.")
