"""The speed of fmimaster as ratios that were measured in one run, as Markdown.

    python benchmarks/run.py [--quick] [--quarter-truck DIR] [--no-peers]

See README.md in this folder. The exit status is 0, whatever the verdicts.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TextIO

import limit
import numpy as np
import ours
from bonds import bond_recorded
from costs import Cost, all_costs
from loops import anderson_in_c
from numpy.typing import NDArray
from peers import PEERS, NotPossibleError, Tool
from rates import three_rates
from start import starts
from systems import Measured, System, deviation, variants
from threads import all_threads

from fmimaster.run.choice import native_executor

SLOW_SECONDS = 0.3
"""About so long may one run of a slow tool take; its number of steps follows."""


@dataclass
class Series:
    """All runs of one tool on one system."""

    steps: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    rows: NDArray[np.float64] | None = None

    def add(self, m: Measured) -> None:
        """One more run."""
        self.wall.append(m.wall / self.steps)
        self.cpu.append(m.cpu / self.steps)
        self.rows = m.rows

    @property
    def microseconds(self) -> float:
        """Median wall time of a macro step."""
        return statistics.median(self.wall) * 1e6

    @property
    def cpu_microseconds(self) -> float:
        """Median CPU time of a macro step."""
        return statistics.median(self.cpu) * 1e6


@dataclass
class Fast:
    """The runs at full length: the C limit and the kernel."""

    bare: Series
    native: Series


@dataclass
class Line:
    """All that was measured on one system."""

    system: System
    fast: Fast
    series: dict[str, Series]
    words: dict[str, str]
    """Why a tool has no series."""


TO_CSV = "kernel, to CSV"

OURS = (
    Tool(TO_CSV, "fmimaster", ours.to_csv),
    Tool("reference interpreter", "fmimaster", ours.reference),
)


def steps_for(tool: Tool, system: System) -> int:
    """Steps that this tool does in about :data:`SLOW_SECONDS`, from a first short run."""
    short = system.of(50)
    tool.run(short)
    per_step = max(tool.run(short).wall / short.steps, 1e-7)
    return int(min(max(SLOW_SECONDS / per_step, 50), system.steps))


FAST = (limit.run, ours.native)
"""What is compared at full length, in this order."""


def fast_tools(system: System, repetitions: int) -> Fast:
    """The C limit and the kernel, in turns; each is run once before."""
    series = [Series(system.steps) for _ in FAST]
    for run in FAST:
        run(system.of(100))
    for _ in range(repetitions):
        for run, taken in zip(FAST, series, strict=True):
            taken.add(run(system))
    return Fast(*series)


def slow_tools(
    system: System, tools: tuple[Tool, ...], repetitions: int
) -> tuple[dict[str, Series], dict[str, str]]:
    """The other tools, in turns; and a word about each that could not take part."""
    series: dict[str, Series] = {}
    words: dict[str, str] = {}
    for tool in tools:
        if not tool.is_installed:
            words[tool.name] = "not installed"
            continue
        try:
            series[tool.name] = Series(steps_for(tool, system))
        except NotPossibleError as reason:
            words[tool.name] = str(reason)
        except Exception as error:  # a peer's fault must not end the benchmark
            words[tool.name] = f"failed: {type(error).__name__}: {error}"
    for _ in range(repetitions):
        for tool in tools:
            if tool.name in series:
                series[tool.name].add(tool.run(system.of(series[tool.name].steps)))
    return series, words


def agreement(rows: NDArray[np.float64], truth: NDArray[np.float64], tool: Tool | None) -> str:
    """In a word, how well a tool agrees with the C limit."""
    shift, settled = (tool.shift, tool.settled) if tool else (0, 0)
    truth = truth[shift:]
    n = min(len(rows), len(truth))
    rows, truth = rows[settled:n], truth[settled:n]
    if np.array_equal(rows, truth):
        return "same bits"
    return f"to {deviation(rows, truth):.0e}{', ' + tool.remark if tool and tool.remark else ''}"


@contextmanager
def silent() -> Iterator[TextIO]:
    """FMUs and peers write to the standard output of the process: it goes nowhere, the table to the stream given."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    with os.fdopen(os.dup(kept), "w", encoding="utf-8") as stream:
        try:
            yield stream
        finally:
            os.dup2(kept, 1)


def verdict(is_good: bool) -> str:
    """A word."""
    return "reached" if is_good else "**missed**"


def machine() -> str:
    """Date, processor and versions."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        names = [
            line.partition(":")[2].strip()
            for line in info.read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    parts = [
        date.today().isoformat(),
        f"{os.cpu_count()} cores ({model})",
        f"{platform.system()} {platform.release().split('-')[0]}",
        f"Python {platform.python_version()}",
    ]
    packages = ("fmimaster", "numpy", "fmpy", "ecospy", "libcosimpy", "fmu-manipulation-toolbox")
    for package in packages:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(parts) + "."


def fixed_step_table(lines: list[Line]) -> Iterator[str]:
    """The kernel against the C limit; the verdict is on CPU time, which others on the machine disturb less."""
    yield "| system | C limit: wall, CPU | kernel: wall, CPU | wall ratio | CPU ratio | goal | verdict | rows |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for line in lines:
        bare, native, system = line.fast.bare, line.fast.native, line.system
        assert bare.rows is not None
        assert native.rows is not None
        ratio = native.microseconds / bare.microseconds
        cpu = native.cpu_microseconds / bare.cpu_microseconds
        yield (
            f"| {system.name} | {bare.microseconds:.3f}, {bare.cpu_microseconds:.3f} us | "
            f"{native.microseconds:.3f}, {native.cpu_microseconds:.3f} us | {ratio:.2f} x | {cpu:.2f} x | "
            f"<= {system.goal:g} x | {verdict(cpu <= system.goal)} | {agreement(native.rows, bare.rows, None)} |"
        )


def best_peer_table(lines: list[Line]) -> Iterator[str]:
    """The kernel, and the C limit, against the best peer of each system, all by CPU time."""
    yield (
        "| system | best recording peer | its CPU time per step | the kernel is faster by | the C limit is faster by | "
        "rows to CSV, beside ecospy |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for line in lines:
        others = {t.name: line.series[t.name] for t in PEERS if t.name in line.series}
        if not others:
            continue
        name = min(others, key=lambda n: others[n].cpu_microseconds)
        best = others[name].cpu_microseconds
        kernel, bare = line.fast.native.cpu_microseconds, line.fast.bare.cpu_microseconds
        written = "" if "ecospy" not in others else f"{_faster(line, 'ecospy', TO_CSV):.1f} x"
        yield (
            f"| {line.system.name} | {name} | {best:.2f} us | {best / kernel:.1f} x | {best / bare:.1f} x | {written} |"
        )


def _faster(line: Line, slow: str, fast: str) -> float:
    return line.series[slow].cpu_microseconds / line.series[fast].cpu_microseconds


def peers_table(lines: list[Line], tools: tuple[Tool, ...]) -> Iterator[str]:
    """The other tools against the kernel."""
    yield "| system | tool | per macro step | CPU | the kernel is faster by | agrees with the limit |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for line in lines:
        for tool in tools:
            head = f"| {line.system.name} | {tool.name} |"
            if tool.name in line.words:
                yield f"{head} {line.words[tool.name]} | | | |"
                continue
            s, truth = line.series[tool.name], line.fast.bare.rows
            assert s.rows is not None
            assert truth is not None
            yield (
                f"{head} {s.microseconds:.2f} us | {s.cpu_microseconds:.2f} us | "
                f"{s.cpu_microseconds / line.fast.native.cpu_microseconds:.0f} x | {agreement(s.rows, truth, tool)} |"
            )


def costs_table(costs: list[Cost]) -> Iterator[str]:
    """What goes on around the loop."""
    yield "| what | value | goal | verdict | remark |"
    yield "| --- | --- | --- | --- | --- |"
    for c in costs:
        faster = c.unit == "x faster"
        sign = ">=" if faster else "<="
        if c.value is None:
            yield f"| {c.what} | | {sign} {c.goal:g} {c.unit} | skipped | {c.remark} |"
            continue
        good = c.value >= c.goal if faster else c.value <= c.goal
        yield f"| {c.what} | {c.value:.2f} {c.unit} | {sign} {c.goal:g} {c.unit} | {verdict(good)} | {c.remark} |"


def costs(repetitions: int, part: int) -> list[Cost]:
    """All that is measured around the loop."""
    return [
        *all_costs(repetitions, part),
        *(anderson_in_c(repetitions, fmi) for fmi in (2, 3)),
        *(bond_recorded(repetitions, fmi) for fmi in (2, 3)),
        *(three_rates(repetitions, fmi) for fmi in (2, 3)),
        *all_threads(repetitions),
        *starts(repetitions),
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps, fewer runs")
    parser.add_argument("--quarter-truck", type=Path, metavar="DIR", help="Chassis.fmu, Wheel.fmu")
    parser.add_argument("--no-peers", action="store_true", help="leave other tools out")
    parser.add_argument("--system", metavar="TEXT", help="only systems with this, and no costs")
    arguments = parser.parse_args()
    if native_executor() is None:
        parser.exit(2, "There is no kernel: build it first (pip install . with a C compiler).\n")
    part, repetitions, few = (10, 5, 3) if arguments.quick else (1, 15, 5)
    tools = OURS if arguments.no_peers else OURS + PEERS
    with silent() as stream:

        def say(*lines: str) -> None:
            print(*lines, sep="\n", file=stream, flush=True)

        lines = []
        for system in variants(arguments.quick, arguments.quarter_truck):
            if arguments.system and arguments.system not in system.name:
                continue
            print(system.name, file=sys.stderr, flush=True)
            fast = fast_tools(system, repetitions)
            lines.append(Line(system, fast, *slow_tools(system, tools, few)))
        say(machine(), "")
        say("### Fixed step, all outputs recorded", "")
        say(*fixed_step_table(lines), "")
        say("### Other tools", "")
        say(*best_peer_table(lines), "", *peers_table(lines, tools), "")
        if not arguments.system:
            say("### Around the loop", "", *costs_table(costs(repetitions, part)))


if __name__ == "__main__":
    main()
