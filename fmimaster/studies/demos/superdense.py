"""The tests SD1 to SD10 of superdense time, as systems of reference FMUs, and their traces.

Row 0 of an instant is its left limit, row n + 1 follows event iteration n. A held signal has the index of its row at its
time; an event, which is absent in all other rows, has the index of its event iteration.

In the figure, instants with several rows are wide, so that each row has a place.

The topics are those of Broman et al. (2015), Requirements for Hybrid Cosimulation Standards, HSCC.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from fmimaster.base.data import dataclass
from fmimaster.base.installation import reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.results import Results
from fmimaster.studies.demos.stage import TEXT
from fmimaster.system.builder import SystemBuilder
from fmimaster.system.description import SystemDescription

Point = tuple[float, int, str, float]
"""Time in s, superdense index, signal, value."""


def demo_fmu(model: str) -> Path:
    """A reference FMU of FMI 3.0."""
    return reference_path(f"fmi3/{model}.fmu")


@dataclass(frozen=True)
class SuperdenseCase:
    """A test: a system, and the signals of its trace."""

    name: str
    title: str
    system: SystemDescription
    held: Mapping[str, str] = field(default_factory=dict)
    """Signal of the trace → column."""
    events: Mapping[str, str] = field(default_factory=dict)
    """Signal of the trace → column of a clocked variable."""
    stop_time: float = 4.0
    """In s."""
    step_size: str = "1/10"
    """In s; events do not depend on it."""
    shown: tuple[float, ...] = ()
    """The times in s that the trace of held signals has."""
    names: tuple[str, ...] = ()
    """Of the values 1, 2, ..., if they have names."""

    def run(self, **settings: Any) -> Results:
        """Simulate it; further settings are those of :class:`fmimaster.Simulation`."""
        times = {"stop_time": self.stop_time, "step_size": self.step_size}
        return Simulation(self.system, **{**times, **settings}).run()

    def trace(self, results: Results) -> list[Point]:
        """What is present at which superdense time; held signals at the times that are shown."""
        found = []
        for k, (t, n) in enumerate(zip(results.time, results.index, strict=True)):
            time, row = float(t), int(n)
            if time in self.shown:
                found += [(time, row, s, float(results[c][k])) for s, c in self.held.items()]
            for signal, column in self.events.items():
                value = np.ma.asarray(results[column])[k]
                if value is not np.ma.masked:
                    found.append((time, row - 1, signal, float(value)))
        return found


def cases() -> tuple[SuperdenseCase, ...]:
    """All tests that have a trace."""
    return (
        SuperdenseCase(
            "SD1_step", "step", _one(1), held={"y": "superdense.y"}, shown=(1.0,), stop_time=2.0
        ),
        SuperdenseCase(
            "SD2_microdelay", "three delays of an event iteration", _delays(), events=_DELAYED
        ),
        SuperdenseCase(
            "SD3_counter", "counter in zero time", _one(3), held={"c": "superdense.c"}, shown=(2.0,)
        ),
        SuperdenseCase(
            *("SD4_sawtooth", "sawtooth", _one(4)),
            held={"x": "superdense.x"},
            shown=(1.0, 2.0, 3.0),
            stop_time=3.5,
        ),
        SuperdenseCase(
            *("SD5_transient", "transient modes", _one(5)),
            held={"mode": "superdense.mode"},
            shown=(3.0,),
            names=("A", "B", "C", "D"),
        ),
        SuperdenseCase(
            "SD6_adder", "adder of the events that are present", _adder(), events={"s": "adder.s"}
        ),
        SuperdenseCase(
            *("SD7_sampler", "sampler of a ramp, every 1/4 s", _sampler()),
            events={"y": "sampler.y"},
            stop_time=2.0,
        ),
        *(
            SuperdenseCase(name, what, system, events={"sampled_step": "sampler.y"}, stop_time=1.5)
            for name, what, system in (
                ("SD8_sync_sample", "sampler at a step", _sampled_step(delays=0)),
                ("SD8_micro_sample", "the same behind a delay", _sampled_step(delays=1)),
            )
        ),
        *(
            SuperdenseCase(name, what, system, events={"fire": "countdown.fired"}, stop_time=2.0)
            for name, what, system in (
                ("SD9_countdown_restart", "countdown that restarts", _countdown(RESTART)),
                ("SD9_countdown_queue", "countdown that queues", _countdown(QUEUE)),
            )
        ),
        SuperdenseCase(
            *("SD10_zero_countdown", "countdown of 0 s", _zero_countdown()),
            events={"trigger": "source.value", "fire": "countdown.fired"},
            stop_time=2.0,
        ),
    )


_POINTS_IN_A_LINE = 6


def table(suite: Sequence[tuple[SuperdenseCase, Results]]) -> list[tuple[str, ...]]:
    """The traces, a line for each signal and for a few points, with the header."""
    rows: list[tuple[str, ...]] = [("test", "", "signal", "(t in s, n) value")]
    for case, results in suite:
        test, title = case.name.partition("_")[0], case.title
        trace = case.trace(results)
        for signal in [*case.held, *case.events]:
            points = [
                f"({t:g}, {n}) {case.names[int(value) - 1] if case.names else format(value, 'g')}"
                for t, n, s, value in trace
                if s == signal
            ]
            for k in range(0, len(points), _POINTS_IN_A_LINE):
                rows.append((test, title, signal, "  ".join(points[k : k + _POINTS_IN_A_LINE])))
                test = title = signal = ""
    return rows


def _one(test: int) -> SystemDescription:
    builder = SystemBuilder("superdense")
    builder.add("superdense", demo_fmu("Superdense"), {"test": test})
    return builder.build()


def _add_source(
    builder: SystemBuilder, name: str, times: Mapping[int, float], resolution: int = 1
) -> None:
    """A source of events: counter of the time → value."""
    rest = [0] * (8 - len(times))
    parameters = {
        "count": len(times),
        "times": [*times, *rest],
        "values": [*times.values(), *rest],
        "resolution": resolution,
    }
    builder.add(name, demo_fmu("EventSource"), parameters)


_DELAYED = {"d0": "source.value", "d1": "delay1.out", "d2": "delay2.out", "d3": "delay3.out"}


def _connect_event(builder: SystemBuilder, clock: str, value: str, target: str) -> None:
    """An event is a clock and the value that comes with it."""
    builder.connect(clock, f"{target}.tick")
    builder.connect(value, target)


def _delays() -> SystemDescription:
    builder = SystemBuilder("delays")
    _add_source(builder, "source", {1: 7.0})
    clock, value = "source.event", "source.value"
    for name in ("delay1", "delay2", "delay3"):
        builder.add(name, demo_fmu("EventDelay"))
        _connect_event(builder, clock, value, f"{name}.in")
        clock, value = f"{name}.out.tick", f"{name}.out"
    return builder.build()


def _adder() -> SystemDescription:
    builder = SystemBuilder("adder")
    builder.add("adder", demo_fmu("EventAdder"))
    for name, times in (("e1", {1: 1.0, 2: 1.0, 3: 1.0}), ("e2", {2: 10.0, 4: 10.0})):
        _add_source(builder, name, times)
        _connect_event(builder, f"{name}.event", f"{name}.value", f"adder.{name}")
    return builder.build()


def _sampler() -> SystemDescription:
    builder = SystemBuilder("sampler")
    _add_source(builder, "source", {})
    builder.add("sampler", demo_fmu("Sampler"), {"interval.counter": 1, "interval.resolution": 4})
    builder.connect("source.ramp", "sampler.u")
    return builder.build()


def _sampled_step(delays: int) -> SystemDescription:
    """A source and a sampler that tick at 1 s, each with a clock of its own."""
    builder = SystemBuilder("sampled step")
    _add_source(builder, "source", {1: 1.0})
    at_one = {"interval.counter": 1, "shift.counter": 1, "interval.resolution": 1}
    builder.add("sampler", demo_fmu("Sampler"), at_one)
    clock, value = "source.event", "source.value"
    if delays:
        builder.add("delay", demo_fmu("EventDelay"))
        _connect_event(builder, clock, value, "delay.in")
        clock, value = "delay.out.tick", "delay.out"
    _connect_event(builder, clock, value, "sampler.e")
    return builder.build()


RESTART, QUEUE = 1, 2
"""Values of the parameter ``policy`` of the FMU ``Countdown``."""


def _countdown(policy: int) -> SystemDescription:
    """Triggered at 1 s and at 11/10 s, with an interval of 1/4 s."""
    builder = SystemBuilder("countdown")
    _add_source(builder, "source", {10: 1.0, 11: 1.0}, resolution=10)
    quarter = {"interval.counter": 5, "interval.resolution": 20}
    builder.add("countdown", demo_fmu("Countdown"), {**quarter, "policy": policy})
    builder.connect("source.event", "countdown.start")
    return builder.build()


def _zero_countdown() -> SystemDescription:
    builder = SystemBuilder("zero countdown")
    _add_source(builder, "source", {1: 1.0})
    builder.add("countdown", demo_fmu("Countdown"), {"interval.counter": 0})
    builder.connect("source.event", "countdown.start")
    return builder.build()


# The figure -----------------------------------------------------------------------------------------------------------

_BAND, _NUMBER = "0.93", "0.4"
"""Greys of an instant that is made wide, and of the numbers of its rows."""
_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


@dataclass(frozen=True)
class SuperdenseAxis:
    """Where each row of a table is on the axis."""

    time: NDArray[np.float64]
    """In s."""
    index: NDArray[np.int32]
    begin: NDArray[np.float64]
    """Where the place of each row begins."""
    end: NDArray[np.float64]
    """Where it ends; equal to ``begin`` for a row that is alone at its time."""

    @classmethod
    def of(cls, results: Results, rows: NDArray[np.bool_], width: float) -> SuperdenseAxis:
        """Chosen rows; each of several at one time is ``width`` wide, as a part of the time that is shown."""
        time, index = results.time[rows], results.index[rows]
        follows = np.append(np.diff(time) == 0, False)
        is_wide = follows | np.insert(follows[:-1], 0, False)
        widths = np.where(is_wide, width * max(float(time[-1] - time[0]), 1e-9), 0.0)
        if time[-1] == time[0]:
            widths = np.ones(len(time))
        before = np.cumsum(widths) - widths
        return cls(time, index, time + before, time + before + widths)

    @property
    def middle(self) -> NDArray[np.float64]:
        """The middles of all places."""
        return (self.begin + self.end) / 2

    def prepare(self, axes: Axes) -> None:
        """Shade the wide instants, number their rows, and write the times below."""
        is_wide = self.end > self.begin
        for time in np.unique(self.time[is_wide]):
            rows = (self.time == time) & is_wide
            axes.axvspan(
                self.begin[rows][0], self.end[rows][-1], color=_BAND, linewidth=0, zorder=0
            )
            for x, n in zip(self.middle[rows], self.index[rows], strict=True):
                axes.text(
                    *(x, 1.01, str(n)),
                    transform=axes.get_xaxis_transform(),
                    ha="center",
                    fontsize=TEXT - 2,
                    color=_NUMBER,
                )
        times = np.unique(np.concatenate([self.time[[0, -1]], self.time[is_wide]]))
        places = [float(np.mean(self.middle[self.time == time])) for time in times]
        axes.set_xticks(places, [f"{time:g}" for time in times], fontsize=TEXT - 1)
        axes.set_xlim(self.begin[0], self.end[-1])

    def held(self, axes: Axes, values: NDArray[np.float64], **style: object) -> None:
        """A signal that has a value at all times: level over each place, and a line to the next one."""
        x = np.column_stack([self.begin, self.end]).ravel()
        axes.plot(x, np.repeat(values, 2), **style)  # type: ignore[arg-type]

    def events(self, axes: Axes, values: NDArray[np.float64], colour: str, **style: object) -> None:
        """A signal that is absent in most rows: a marker where it is present."""
        present = ~np.ma.getmaskarray(values)
        x, y = self.middle[present], np.ma.getdata(values)[present]
        axes.vlines(x, 0.0, y, color=colour, linewidth=1.0)
        axes.plot(x, y, color=colour, linestyle="", **style)  # type: ignore[arg-type]


def superdense_figure(suite: Sequence[tuple[SuperdenseCase, Results]]) -> Figure:
    """A panel for each test: signals over superdense time, in which instants with several rows are wide."""
    columns = 3
    rows = -(-len(suite) // columns)
    figure = Figure(figsize=(9.6, 0.5 + 1.75 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (case, results) in zip(panels, suite, strict=False):
        at = SuperdenseAxis.of(results, np.ones(results.rows, bool), width=0.07)
        at.prepare(axes)
        for colour, (signal, column) in zip(_LINES, case.held.items(), strict=False):
            at.held(axes, results[column].astype(float), color=colour, linewidth=1.3, label=signal)
        for colour, (signal, column) in zip(_LINES, case.events.items(), strict=False):
            at.events(axes, results[column], colour, marker="o", markersize=4.0, label=signal)
        axes.set_title(
            f"{case.name.partition('_')[0]}  {case.title}", fontsize=TEXT, loc="left", pad=11
        )
        axes.margins(y=0.15)
        if case.names:
            axes.set_yticks(range(1, len(case.names) + 1), case.names)
        else:
            axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.tick_params(labelsize=TEXT - 1)
        axes.spines[["top", "right"]].set_visible(False)
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom, max(top, 1.0))  # a single 0 would get a range of its own
        axes.legend(fontsize=TEXT - 1, frameon=False, loc="upper left", handlelength=1.2)
    for axes in panels[len(suite) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "time in s; a grey instant is wide: one place for each of its rows 0, 1, 2, ... (row 0: left limit)",
        fontsize=TEXT,
    )
    return figure
