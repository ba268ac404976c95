"""Run FMUs that do each fault in each call by the command ``fmimaster simulate``, and tell what becomes of the command.

    python conformance/misbehaving.py [--table TABLE] [--only TEXT] [--jobs 2] [--patience 25] [-- OPTIONS OF simulate]

The FMUs are compiled from ``tests/misbehaving/misbehaving.c``: Co-Simulation with all faults, Model Exchange with
some. Each run is a command of its own with default options, and has ten steps. What must hold of each:

* the command itself decides how it ends: no signal ends it, it is no defect of fmimaster, and status 0 means all rows;
* rows that were accepted before the fault are in the output file;
* the message names the FMU and the call;
* a call that does not return is named meanwhile, and one Ctrl-C ends the command within seconds;
* nothing that the FMU has started is left after a failed run; after a good one it may stay, as after any program.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from tables import write_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from misbehaving_fmu import CALLS, VERSIONS, Act, misbehaving

ROWS = 11
"""Of a run that ends: 10 steps."""
FAULT_TIME = 0.5
DATA = 3 << 29
"""Bytes that a command may allocate: the FMU that takes all memory shall not take that of this machine."""
OTHERS_WITHIN = 60.0
"""Time in s in which commands end whose FMU does return."""
ENDS_WITHIN = 20.0
"""Time in s in which the command must end after a Ctrl-C; some need 5 s to give an FMU up."""
NAME = "pump"


@dataclass(frozen=True)
class Fault:
    """One thing that an FMU does."""

    name: str
    action: str
    argument: object = ""
    is_end: bool = True
    """Whether the run cannot go on because of the call, which the message must name."""
    spares_rows: bool = True
    """Whether the FMU cannot reach the output file of the command."""


FAULTS = [
    Fault("crash", "crash"),
    Fault("abort", "abort"),
    Fault("stack overflow", "overflow"),
    Fault("division by zero", "divide"),
    Fault("longjmp", "longjmp"),
    Fault("SIGKILL", "kill"),
    Fault("SIGTERM", "raise", 15, is_end=False),
    Fault("SIGINT", "raise", 2, is_end=False),
    Fault("SIGPIPE", "raise", 13, is_end=False),
    Fault("exit(0)", "exit", 0),
    Fault("exit(3)", "exit", 3),
    Fault("_exit(0)", "leave", 0),
    Fault("_exit(3)", "leave", 3),
    Fault("end of thread", "end_thread"),
    Fault("all memory", "memory"),
    Fault("sleeps for ever", "hang"),
    Fault("spins", "spin"),
    Fault("logs for ever", "flood_for_ever"),
    Fault("returns Error", "return", 3),
    Fault("returns Fatal", "return", 4),
    Fault("returns 99", "return", 99),
    Fault("NaN", "nan", is_end=False),
    Fault("prints", "print", "a line of the FMU", is_end=False),
    Fault(
        "writes into descriptors", "write_everywhere", "noise\n", is_end=False, spares_rows=False
    ),
    Fault("closes descriptors", "close_everywhere", is_end=False, spares_rows=False),
    Fault("replaces descriptors", "replace_everywhere", is_end=False, spares_rows=False),
    Fault("closes its output", "close", 1, is_end=False),
    Fault("starts a process", "fork", is_end=False),
    Fault("starts a daemon", "daemon", is_end=False),
]
NO_STATUS = ("Load", "Unload", "FreeInstance", "FreeState")
"""Calls that return no status, or whose status changes nothing."""
HANGS = ("hang", "spin", "flood_for_ever", "end_thread")

DURING_STEPS = {
    "DoStep": 6,
    "Get": 5,
    "GetState": 6,
    "FreeState": 6,
    "SetState": 5,
    # of Model Exchange
    "SetTime": 5,
    "SetContinuousStates": 5,
    "CompletedIntegratorStep": 5,
    "GetDerivatives": 5,
    "GetContinuousStateDerivatives": 5,
}
"""Calls that misbehave from the fault time on → rows that are accepted before."""
EXCHANGE = {
    "fmi2": (
        *("Instantiate", "NewDiscreteStates", "SetTime", "SetContinuousStates", "GetDerivatives"),
        *("CompletedIntegratorStep", "Get", "Terminate", "FreeInstance"),
    ),
    "fmi3": (
        *("Instantiate", "UpdateDiscreteStates", "SetTime", "SetContinuousStates"),
        *("GetContinuousStateDerivatives", "Get", "Terminate", "FreeInstance"),
    ),
}
"""Calls of Model Exchange that are tried."""
EXCHANGE_FAULTS = (
    "crash",
    "stack overflow",
    "exit(0)",
    "_exit(0)",
    "sleeps for ever",
    "returns Error",
)
AFTER_STEPS = ("Terminate", "FreeInstance", "Unload")
OF_STATES = ("GetState", "SetState", "FreeState")
"""Calls that only runs with repeated steps make."""

WORDS = {
    "Load": "load|dlopen|nstantiat",
    "Unload": "unload|FreeInstance|end of",
    "Instantiate": "nstantiat",
    "SetupExperiment": "SetupExperiment|EnterInitializationMode",
    "Set": "Set(Real|Float64| function)|set",
    "Get": "Get(Real|Float64|Integer|Int32| function)|read",
    "GetState": "GetFMU[sS]tate",
    "SetState": "SetFMU[sS]tate",
    "FreeState": "(Free|Get)FMU[sS]tate",
}
"""Call → how a message may name it."""


@dataclass
class Run:
    """A command, and what became of it."""

    fault: Fault
    version: str
    interface: str
    call: str
    status: int | None = None
    seconds: float = 0.0
    rows: int = 0
    was_interrupted: bool = False
    was_named_meanwhile: bool = False
    problems: list[str] = field(default_factory=list)
    message: str = ""

    @property
    def expected_rows(self) -> int:
        """Rows that were accepted before the fault."""
        if self.call in AFTER_STEPS:
            return ROWS
        return DURING_STEPS.get(self.call, 0)

    @property
    def outcome(self) -> str:
        """In one word for the table."""
        if self.problems:
            return "**" + ", ".join(self.problems) + "**"
        if self.was_interrupted:
            return "Ctrl-C"
        return {0: "warning" if self.names_call else "runs", 2: "error", 130: "interrupted"}.get(
            self.status or 0, str(self.status)
        )

    @property
    def title(self) -> str:
        """Version, interface, call and fault."""
        return f"{self.version} {self.interface} {self.call} {self.fault.name}"

    @property
    def names_fmu(self) -> bool:
        """Whether the message has the name of the FMU."""
        return NAME in self.message

    @property
    def names_call(self) -> bool:
        """Whether the message has the name of the call."""
        words = WORDS.get(self.call, self.call)
        return re.search(words, self.message) is not None


def every() -> Iterator[Run]:
    """Each fault in each call."""
    for version in VERSIONS:
        for call in ("Load", *CALLS[version], "Unload"):
            for fault in FAULTS:
                if call in NO_STATUS and fault.action in ("return", "nan"):
                    continue
                if call in ("Load", "Unload") and fault.action == "flood_for_ever":
                    continue  # there is nobody to log to
                yield Run(fault, version, "CoSimulation", call)
    for version in VERSIONS:
        for call in EXCHANGE[version]:
            for fault in FAULTS:
                is_told = call not in NO_STATUS or fault.action != "return"
                if fault.name in EXCHANGE_FAULTS and is_told:
                    yield Run(fault, version, "ModelExchange", call)


def perform(run: Run, patience: float, options: Sequence[str]) -> Run:
    """Run the command, and judge."""
    with tempfile.TemporaryDirectory(prefix="misbehaving-") as name:
        folder = Path(name)
        pids = folder / "pids"
        argument = pids if run.fault.action in ("fork", "daemon") else run.fault.argument
        since = FAULT_TIME if run.call in DURING_STEPS else -inf
        act = Act(run.call, run.fault.action, argument, since)
        states = "canGetAndSetFMUstate" if run.version == "fmi2" else "canGetAndSetFMUState"
        fmu = misbehaving(
            folder, run.version, act, name=NAME, interface=run.interface, **{states: "true"}
        )
        command = [sys.executable, "-m", "fmimaster", "simulate", fmu.name]
        command += ["--stop-time", "1", "--step-size", "0.1", "--start-value", "k=2"]
        command += ["--output-file", "out.csv", *options]
        command += ["--sweeps", "2"] if run.call in OF_STATES else []
        _watch(run, command, folder, patience)
        run.rows = _rows(folder / "out.csv")
        left = _left(pids)
    _judge(run, left)
    return run


def _watch(run: Run, command: Sequence[str], folder: Path, patience: float) -> None:
    """Start the command; press Ctrl-C when a call that does not return is named, or after the patience."""
    begun = time.monotonic()
    told = folder / "stderr"
    with told.open("wb") as stderr, (folder / "stdout").open("wb") as stdout:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            preexec_fn=_limit,
        )
    until = begun + (patience if run.fault.action in HANGS else OTHERS_WITHIN)
    while process.poll() is None:
        time.sleep(0.05)
        if not run.was_interrupted and run.fault.action in HANGS:
            run.message = told.read_text("utf-8", "replace")
            run.was_named_meanwhile = run.names_fmu and run.names_call
        if not run.was_interrupted and (run.was_named_meanwhile or time.monotonic() >= until):
            run.was_interrupted = True
            until = time.monotonic() + ENDS_WITHIN
            os.killpg(process.pid, signal.SIGINT)
        elif run.was_interrupted and time.monotonic() >= until:
            run.problems.append("hang")
            break
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    run.status = process.returncode
    run.seconds = time.monotonic() - begun
    run.message = told.read_text("utf-8", "replace")


def _limit() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    resource.setrlimit(resource.RLIMIT_DATA, (DATA, DATA))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _rows(path: Path) -> int:
    """Whole rows of an output file."""
    if not path.exists():
        return 0
    header, *lines = path.read_bytes().split(b"\n")
    number = rb"[-+0-9.e]+"
    row = re.compile(rb",".join([number] * len(header.split(b","))))
    return sum(row.fullmatch(line.rstrip(b"\r")) is not None for line in lines)


def _left(pids: Path) -> int:
    """End the processes that the FMU has started; returns how many there were."""
    started = (
        [int(line) for line in pids.read_text(encoding="utf-8").split()] if pids.exists() else []
    )
    left = 0
    for pid in started:
        with suppress(OSError):
            state = (
                Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            )
            if state != "Z":
                left += 1
                os.kill(pid, signal.SIGKILL)
    return left


def _judge(run: Run, left: int) -> None:
    is_hang = "hang" in run.problems
    problems = run.problems
    if not is_hang and (run.status or 0) < 0:
        problems.append("death")
    elif not is_hang and run.status == 0 and run.rows < ROWS:
        problems.append("silent end")
    if run.status == 3 or "Traceback" in run.message or "defect" in run.message:
        problems.append("defect")
    elif run.status not in (0, 2, 130) and (run.status or 0) > 0:
        problems.append(f"status {run.status}")
    if run.fault.spares_rows and run.rows < run.expected_rows:
        problems.append(f"{run.rows} of {run.expected_rows} rows")
    if run.fault.is_end and not problems:
        if not run.names_fmu:
            problems.append("FMU not named")
        if not run.names_call:
            problems.append("call not named")
    if run.was_interrupted and not run.was_named_meanwhile and not is_hang:
        problems.append("not named meanwhile")
    if left and run.status != 0:
        problems.append("process left")


def main() -> None:
    """Run all, print what is wrong, write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--table", help="write TABLE.md and TABLE.csv")
    parser.add_argument(
        "--only", default="", help="runs whose 'version interface call fault' contains this text"
    )
    parser.add_argument("--jobs", type=int, default=2, help="commands at the same time (2)")
    patience = "time in s after which a command that names no call is interrupted (25)"
    parser.add_argument("--patience", type=float, default=25.0, help=patience)
    parser.add_argument("options", nargs="*", help="more options of simulate, behind --")
    arguments = parser.parse_args()
    runs = [r for r in every() if re.search(arguments.only, r.title)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for k, run in enumerate(
            pool.map(lambda r: perform(r, arguments.patience, arguments.options), runs), 1
        ):
            if run.problems:
                print(f"{k}/{len(runs)} {run.title}: {run.outcome}")
                print("    " + " | ".join(run.message.strip().splitlines()[-3:])[:400], flush=True)
    _summarize(runs)
    if arguments.table:
        _write(runs, Path(arguments.table))


def _summarize(runs: Sequence[Run]) -> None:
    kinds = Counter(
        re.sub(r"\d+ of \d+ ", "lost ", problem) for r in runs for problem in r.problems
    )
    good = sum(not r.problems for r in runs)
    print(f"{len(runs)} runs, {good} as they should be")
    for kind, n in kinds.most_common():
        print(f"  {kind}: {n}")


def _write(runs: Sequence[Run], target: Path) -> None:
    lines = []
    for version, interface in dict.fromkeys((r.version, r.interface) for r in runs):
        of_table = [r for r in runs if (r.version, r.interface) == (version, interface)]
        calls = list(dict.fromkeys(r.call for r in of_table))
        cells = {(r.fault.name, r.call): r.outcome for r in of_table}
        lines += [f"| {version} {interface} | {' | '.join(calls)} |"]
        lines += [f"|{' --- |' * (len(calls) + 1)}"]
        for fault in dict.fromkeys(r.fault.name for r in of_table):
            row = [cells.get((fault, call), "") for call in calls]
            lines.append(f"| {fault} | {' | '.join(row)} |")
        lines.append("")
    columns = ["version", "interface", "call", "fault", "status", "rows", "accepted", "seconds"]
    rows = [
        [
            *(r.version, r.interface, r.call, r.fault.name, r.status, r.rows, r.expected_rows),
            *(f"{r.seconds:.2f}", "; ".join(r.problems), r.message.strip()[-600:]),
        ]
        for r in runs
    ]
    write_rows([*columns, "problems", "message"], rows, target)
    target.with_suffix(".md").write_text("\n".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
