"""Demos: systems that are ready to be simulated, with their tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fmimaster.base.errors import OptionError, did_you_mean
from fmimaster.base.installation import drawing, reference_path
from fmimaster.front.simulation import Simulation
from fmimaster.results.files import write_table
from fmimaster.results.results import Results
from fmimaster.studies.demos.example_files import FilesDemo
from fmimaster.studies.demos.stage import Stage


class Demo(Protocol):
    """A demo: it runs simulations, and writes tables and figures."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    @property
    def title(self) -> str:
        """One line."""
        ...

    @property
    def text(self) -> str:
        """What it shows, in some sentences."""
        ...

    @property
    def versions(self) -> tuple[str, ...]:
        """Names of its versions, if it has several."""
        ...

    def show(self, stage: Stage) -> None:
        """Run it, and write its files."""


@dataclass(frozen=True)
class SystemDemo:
    """One simulation, its table and its figure."""

    name: str
    title: str
    text: str
    system: str
    """Name of a reference file."""
    settings: Mapping[str, Any]
    """For :class:`fmimaster.Simulation`."""
    columns: tuple[str, ...]
    """Variables to plot, in this order."""
    versions: tuple[str, ...] = ()

    def show(self, stage: Stage) -> None:
        """Run it."""
        drawing("This demo")
        simulation = Simulation(reference_path(self.system), **self.settings)
        stage.simulate(simulation, lambda results: self._keep(results, stage.folder))

    def _keep(self, results: Results, folder: Path) -> list[str]:
        from fmimaster.results.plot import save_figure  # matplotlib is slow to import

        table, picture = folder / f"{self.name}.csv", folder / f"{self.name}.png"
        write_table(results, table)
        told = [f"{results.rows} rows written to {table}"]
        if results.rows:
            save_figure(results.plot(self.columns, title=self.title), picture)
            told.append(f"figure written to {picture}")
        return told


@dataclass(frozen=True)
class TwoMassDemo:
    """Algorithms for events, side by side on the two masses."""

    name: str = "two-mass"
    title: str = (
        "Two colliding blocks on springs: co-simulation algorithms for events, side by side"
    )
    text: str = (
        "Two blocks hang below each other on springs. Each block is an FMU. They collide with each other (a shared "
        "event), and the upper one collides with the ceiling (a private event). System B1: 7 s; B2: 7 s, ceiling and floor "
        "move; B3: 20 s. RMS and max: of the sum of both position errors. Paper: the values of Tischer et al. for "
        "LookAhead, or the figure of Dejaco and Benedikt (2017): Fig. 4 has the trends of the exact solution, Fig. 5 is "
        '"totally wrong", in Fig. 6 the sequence changes at 2.4, 3.55 and 4.75 s. Earlier: our own earlier prototype, '
        "which had no FMUs."
    )
    versions: tuple[str, ...] = ("mixed", "fmi2", "fmi3")

    def show(self, stage: Stage) -> None:
        """Run all methods."""
        drawing("This demo")
        # matplotlib is slow to import, and so is SciPy, which a predictive method needs
        from fmimaster.studies.demos import methods
        from fmimaster.studies.demos.figures import write_figures

        version = stage.version or self.versions[0]
        runs = [methods.run_method(method, version) for method in methods.METHODS]
        stage.print(methods.errors_table(runs))
        stage.print(methods.costs_table(runs))
        best = next(run for run in runs if run.method is methods.SHOWN)
        file = stage.folder / f"{self.name}.csv"
        write_table(best.results, file)
        stage.tell(
            [
                *(
                    f"warning of '{run.method.name}', H = {run.method.size:g} s: {warning}"
                    for run in runs
                    for warning in run.results.statistics.warnings
                ),
                f"{best.results.rows} rows of '{best.method.name}' written to {file}",
                *(f"figure written to {path}" for path in write_figures(runs, best, stage.folder)),
                f"Next: fmimaster steps {file}",
            ]
        )


@dataclass(frozen=True)
class FourUnitsDemo:
    """All sequences of the four units, with their cost and their error."""

    name: str = "four-units"
    title: str = (
        "Four coupled units: which trigger sequence is best, by three objectives and by simulation"
    )
    text: str = (
        "Three rotating masses and a controller are stepped one after the other in all 24 sequences. Each of them is an "
        "FMU. An input is stale if its component steps before the one that feeds it. Objectives, smaller is better: the "
        "number of stale inputs (count); the number of stale inputs with feed-through; the total weight in the paper "
        "(advanced). Error: RMS relative to the monolithic solution."
    )
    versions: tuple[str, ...] = ("fmi3", "fmi2")

    def show(self, stage: Stage) -> None:
        """Run all sequences."""
        drawing("This demo")
        # matplotlib is slow to import
        from fmimaster.studies.demos import four_units
        from fmimaster.studies.demos.four_units_figures import write_figures

        runs = four_units.run_all(stage.version or self.versions[0])
        stage.print(four_units.table(runs))
        best = four_units.winner(runs)
        file = stage.folder / f"{self.name}.csv"
        write_table(best.results, file)
        published = best.order == four_units.PUBLISHED
        stage.tell(
            [
                f"The sequence {' '.join(best.order)} has the smallest error, {best.error:.5f}"
                f"{', as published' if published else ''}.",
                f"Set it by --algorithm GaussSeidel --mode lin --sequence {','.join(best.order)}",
                f"{best.results.rows} rows of its results written to {file}",
                *(
                    f"figure written to {path}"
                    for path in write_figures(runs, self.name, stage.folder)
                ),
            ]
        )


@dataclass(frozen=True)
class QuarterCarDemo:
    """The tables of the paper on power bonds, and other schemes at the same cost."""

    name: str = "quarter-car"
    title: str = "A quarter car with a power bond: step sizes by the energy that the coupling creates, and better schemes"
    text: str = (
        "A chassis and a wheel exchange power through a suspension. Both are FMUs. The suspension belongs to the wheel (A) "
        "or to the chassis (B). Its damper is linear (lin) or nonlinear (nl). Error: mean absolute error of the power. "
        "Energy: residual energy, which the coupling has created. Needs: D inputs that change over a step, F outputs that "
        "follow inputs in Event Mode, R states that can be restored. Each FMU has the same number of steps in all schemes, "
        "that of a constant step of 1 ms."
    )
    versions: tuple[str, ...] = ("mixed", "fmi2", "fmi3")

    def show(self, stage: Stage) -> None:
        """Run all rows and schemes."""
        drawing("This demo")
        # matplotlib is slow to import
        from fmimaster.studies.demos import quarter_car_runs as runs
        from fmimaster.studies.demos import quarter_car_schemes as schemes
        from fmimaster.studies.demos.quarter_car_figures import write_figures

        version = stage.version or self.versions[0]
        rows = runs.run_rows(version)
        stage.print(runs.paper_table(rows))
        euler = schemes.run_schemes(schemes.SCHEMES, version)
        stage.print(schemes.schemes_table(euler, "Euler"))
        drawn = [scheme for scheme in schemes.SCHEMES if scheme.is_drawn]
        precision = schemes.run_schemes(
            drawn, version, schemes.STEPS_OF_DIAGRAM, schemes.RUNGE_KUTTA
        )
        stage.print(schemes.schemes_table(precision, "Runge-Kutta"))
        shown = rows[runs.SHOWN].results
        file = stage.folder / f"{self.name}.csv"
        write_table(shown, file)
        figures = write_figures(
            rows, runs.run_over_step(version), precision, self.name, stage.folder
        )
        stage.tell(
            [
                *(
                    f"warning of '{row.case}', steps {row.control}: {warning}"
                    for row, run in rows.items()
                    for warning in run.results.statistics.warnings
                ),
                f"{shown.rows} rows of '{runs.SHOWN.case}', steps {runs.SHOWN.control}, written to {file}",
                *(f"figure written to {path}" for path in figures),
            ]
        )


@dataclass(frozen=True)
class FaultsDemo:
    """A pump that crashes or hangs, by each policy."""

    name: str = "faults"
    title: str = "An FMU that crashes or hangs: started again, ended by a deadline, or left out"
    text: str = (
        "A motor and a pump feed each other. Both are FMUs in processes of their own. At t = 3 s the pump crashes once "
        "and is started again in a new process; or it does not return any more, and is ended after 0.5 s. Then the run "
        "stops with its results, or continues without the pump. The lines below are the log of these runs."
    )
    versions: tuple[str, ...] = ("fmi3", "fmi2")

    def show(self, stage: Stage) -> None:
        """Run all cases."""
        from fmimaster.studies.demos import faults  # NumPy is slow to import

        runs = []
        for case in faults.CASES:
            stage.tell([f"{case.title}, on_fault={case.policy}:"])
            runs.append(faults.run_case(case, stage.version or self.versions[0]))
            stage.tell([f"  {runs[-1].error or 'completed'}"])
        stage.print(faults.table(runs))
        file = stage.folder / f"{self.name}.csv"
        write_table(runs[-1].results, file)
        stage.tell([f"{runs[-1].results.rows} rows of the last run written to {file}"])


@dataclass(frozen=True)
class HybridDemo:
    """Traces of discrete-event units, of the thermostat, and of the tests of superdense time."""

    name: str = "hybrid"
    title: str = (
        "Events: a traffic light and a police officer, a thermostat, tests of superdense time"
    )
    text: str = (
        "A police officer switches a traffic light off when he begins to work. Both are FMUs with countdown clocks. If "
        "both are to act at one time, the priorities of the components decide who is first. The thermostat switches at "
        "exact events, or at points of a grid, where it switches later and less often. The tests of superdense time have "
        "several values at one time t. A signal at (t, n) is that of row n at t; row 0 is the left limit. An event at "
        "(t, n) occurs in event iteration n, which is shown in row n + 1."
    )
    versions: tuple[str, ...] = ()

    def show(self, stage: Stage) -> None:
        """Run all systems."""
        drawing("This demo")
        # matplotlib is slow to import
        from fmimaster.studies.demos import hybrid, superdense, thermostat
        from fmimaster.studies.demos.hybrid_figures import write_figures

        traffic = hybrid.run_traffic()
        for title, results in traffic:
            stage.tell([f"{title}:"])
            stage.print(hybrid.table(results))
        variants = thermostat.run_variants()
        stage.print(thermostat.table(variants))
        suite = [(case, case.run()) for case in superdense.cases()]
        stage.print(superdense.table(suite))
        title, shown = traffic[0]
        file = stage.folder / f"{self.name}.csv"
        write_table(shown, file)
        figures = write_figures(traffic, variants, suite, self.name, stage.folder)
        stage.tell(
            [
                f"{shown.rows} rows of '{title}' written to {file}",
                *(f"figure written to {path}" for path in figures),
            ]
        )


DEMOS: tuple[Demo, ...] = (
    TwoMassDemo(),
    FourUnitsDemo(),
    QuarterCarDemo(),
    HybridDemo(),
    FaultsDemo(),
    SystemDemo(
        name="dahlquist",
        title="Dahlquist's test equation x' = -k x + u, one FMI 3.0 FMU",
        text="A single FMU, the smallest one: x' = -k x + u with k = 1/s, u = 0 and x = 1 at the start.",
        system="fmi3/Dahlquist.fmu",
        settings={"step_size": "1/10", "stop_time": 10},
        columns=("x", "dx"),
    ),
    FilesDemo(),
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
