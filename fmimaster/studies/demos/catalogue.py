"""Demos: systems that are ready to be simulated, with their tables and figures."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

from fmimaster.base.data import dataclass
from fmimaster.base.errors import FileError, OptionError, did_you_mean
from fmimaster.base.installation import check_matplotlib, reference_path
from fmimaster.base.public_names import at_place
from fmimaster.studies.demos.stage import Stage, write_files


@dataclass(frozen=True)
class Demo:
    """A demo: it runs simulations, and writes tables and figures."""

    name: str
    """Its name on the command line."""
    title: str
    """One line."""
    text: str
    """What it shows, in some sentences."""
    place: str
    """Where its function is, which takes a :class:`Stage`; the module is imported when the demo is shown."""
    versions: tuple[str, ...] = ()
    """Names of its versions, if it has several; the first one is the default."""
    draws: bool = True

    def show(self, stage: Stage) -> None:
        """Run it, and write its files."""
        if self.draws:
            check_matplotlib("This demo")
        at_place(self.place)(stage)


DEMOS = (
    Demo(
        "two-mass",
        "Two colliding blocks on springs: co-simulation algorithms for events, side by side",
        "Two blocks hang below each other on springs. Each block is an FMU. They collide with each other (a shared "
        "event), and the upper one collides with the ceiling (a private event). System B1: 7 s; B2: 7 s, ceiling and floor "
        "move; B3: 20 s. RMS and max: of the sum of both position errors. Paper: the values of Tischer et al. for "
        "LookAhead, or the figure of Dejaco and Benedikt (2017): Fig. 4 has the trends of the exact solution, Fig. 5 is "
        '"totally wrong", in Fig. 6 the sequence changes at 2.4, 3.55 and 4.75 s. Earlier: our own earlier prototype, '
        "which had no FMUs.",
        "studies.demos.methods:show",
        ("mixed", "fmi2", "fmi3"),
    ),
    Demo(
        "four-units",
        "Four coupled units: which trigger sequence is best, by three objectives and by simulation",
        "Three rotating masses and a controller are stepped one after the other in all 24 sequences. Each of them is an "
        "FMU. An input is stale if its component steps before the one that feeds it. Objectives, smaller is better: the "
        "number of stale inputs (count); the number of stale inputs with feed-through; the total weight in the paper "
        "(advanced). Error: RMS relative to the monolithic solution.",
        "studies.demos.four_units:show",
        ("fmi3", "fmi2"),
    ),
    Demo(
        "quarter-car",
        "A quarter car with a power bond: step sizes by the energy that the coupling creates, and better schemes",
        "A chassis and a wheel exchange power through a suspension. Both are FMUs. The suspension belongs to the wheel (A) "
        "or to the chassis (B). Its damper is linear (lin) or nonlinear (nl). Error: mean absolute error of the power. "
        "Energy: residual energy, which the coupling has created. Needs: D inputs that change over a step, F outputs that "
        "follow inputs in Event Mode, R states that can be restored. Each FMU has the same number of steps in all schemes, "
        "that of a constant step of 1 ms.",
        "studies.demos.quarter_car_figures:show",
        ("mixed", "fmi2", "fmi3"),
    ),
    Demo(
        "hybrid",
        "Events: a traffic light and a police officer, a thermostat, tests of superdense time",
        "A police officer switches a traffic light off when he begins to work. Both are FMUs with countdown clocks. If "
        "both are to act at one time, the priorities of the components decide who is first. The thermostat switches at "
        "exact events, or at points of a grid, where it switches later and less often. The tests of superdense time have "
        "several values at one time t. A signal at (t, n) is that of row n at t; row 0 is the left limit. An event at "
        "(t, n) occurs in event iteration n, which is shown in row n + 1.",
        "studies.demos.hybrid:show",
    ),
    Demo(
        "faults",
        "An FMU that crashes or hangs: started again, ended by a deadline, or left out",
        "A motor and a pump feed each other. Both are FMUs in processes of their own. At t = 3 s the pump crashes once "
        "and is started again in a new process; or it does not return any more, and is ended after 0.5 s. Then the run "
        "stops with its results, or continues without the pump. The lines below are the log of these runs.",
        "studies.demos.faults:show",
        ("fmi3", "fmi2"),
        draws=False,
    ),
    Demo(
        "dahlquist",
        "Dahlquist's test equation x' = -k x + u, one FMI 3.0 FMU",
        "A single FMU, the smallest one: x' = -k x + u with k = 1/s, u = 0 and x = 1 at the start.",
        "studies.demos.catalogue:show_dahlquist",
    ),
    Demo(
        "files",
        "The FMUs and systems of the examples in the documentation, written to files",
        "The examples in the documentation use these files.",
        "studies.demos.catalogue:show_files",
        draws=False,
    ),
)


def demo(name: str) -> Demo:
    """The demo of that name.

    Raises
    ------
    OptionError
        If there is none.
    """
    for one in DEMOS:
        if one.name == name:
            return one
    names = [one.name for one in DEMOS]
    raise OptionError(
        f"There is no demo '{name}'.{did_you_mean(name, names)} There are {', '.join(names)}."
    )


def show_dahlquist(stage: Stage) -> None:
    """One simulation, its table and its figure."""
    from fmimaster.front.simulation import Simulation  # a list of demos does not need it

    simulation = Simulation(reference_path("fmi3/Dahlquist.fmu"), step_size="1/10", stop_time=10)
    name, title = "dahlquist", demo("dahlquist").title
    stage.simulate(
        simulation,
        lambda results: write_files(
            stage,
            name,
            results,
            "",
            {name: results.plot(("x", "dx"), title=title)} if results.rows else {},
        ),
    )


# The files of the examples --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExampleFile:
    """A copy of a reference file."""

    name: str
    """Its name on the pages of the documentation."""
    reference: str
    """For :func:`fmimaster.reference_path`."""
    text: str
    """Its description in one line."""


EXAMPLE_FILES = (
    ExampleFile("Dahlquist.fmu", "fmi3/Dahlquist.fmu", "x' = -k x + u, with input u and output x"),
    ExampleFile(
        "Feedthrough.fmu", "fmi3/Feedthrough.fmu", "inputs of all types, each copied to an output"
    ),
    ExampleFile("BouncingBall.fmu", "fmi2/BouncingBall.fmu", "a ball that bounces on the floor"),
    ExampleFile("Faulty.fmu", "fmi3/Faulty.fmu", "an FMU with faults that its parameters select"),
    ExampleFile(
        "two-mass.ssp",
        "systems/two-mass-b3-mixed.ssp",
        "two blocks on springs that collide, 20 s, FMI 2.0 and 3.0",
    ),
    ExampleFile(
        "thermostat.ssp", "systems/thermostat-fmi2.ssp", "a room and the controller of its heater"
    ),
    ExampleFile("four-units.ssp", "systems/four-units-fmi3.ssp", "four units in a closed loop"),
    ExampleFile(
        "quarter-car-a.ssp",
        "systems/quarter-car-a-fmi3.ssp",
        "chassis and wheel with a power bond; the wheel has the suspension",
    ),
    ExampleFile(
        "quarter-car-b.ssp",
        "systems/quarter-car-b-fmi2.ssp",
        "the same; the chassis has the suspension",
    ),
)


def show_files(stage: Stage) -> None:
    """Write all example files that do not exist yet.

    Raises
    ------
    FileError
        If a file of that name with other content exists, or a file cannot be written.
    """
    sources = {file: reference_path(file.reference) for file in EXAMPLE_FILES}
    for file, source in sources.items():
        target = stage.folder / file.name
        if target.exists() and not filecmp.cmp(source, target, shallow=False):
            raise FileError(
                f"File '{target}' exists and is not the example file, so nothing was written. Remove it, or "
                "choose another folder with --output-directory."
            )
    for file, source in sources.items():
        _copy(source, stage.folder / file.name)
    stage.print([(file.name, file.text) for file in EXAMPLE_FILES])


def _copy(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise FileError(
            f"File '{target}' cannot be written: {error.strerror}. Choose another folder with --output-directory."
        ) from error
