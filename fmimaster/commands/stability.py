"""``fmimaster stability``: the largest communication step at which a system is stable."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from fmimaster.algorithms.algorithm import Algorithm
from fmimaster.algorithms.gauss_seidel import GaussSeidel
from fmimaster.algorithms.jacobi import Jacobi
from fmimaster.algorithms.refreshed import Refreshed
from fmimaster.algorithms.waveform import Waveform
from fmimaster.base.data import dataclass
from fmimaster.base.errors import FmimasterError
from fmimaster.base.files import given_path
from fmimaster.base.installation import check_matplotlib
from fmimaster.base.text import aligned, count, section
from fmimaster.commands import settings
from fmimaster.commands.running import check_outputs
from fmimaster.commands.text import note, write
from fmimaster.configure.named import setting_text
from fmimaster.fmu.process_state import fmu_output_to_log
from fmimaster.front.simulation import Simulation
from fmimaster.inputs.polynomial import LINEAR, MIDPOINT
from fmimaster.studies.stability.advisor import Advisor, FmuStability, Limit
from fmimaster.studies.stability.step_map import Spectrum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AROUND = (0.5, 0.9, 1.1, 1.5)
"""Step sizes on the page, relative to the largest stable one."""

_OTHERS: Mapping[str, Algorithm] = {
    "--algorithm jacobi": Jacobi(),
    "--algorithm jacobi --inputs midpoint": Jacobi(MIDPOINT),
    "--algorithm jacobi --inputs linear": Jacobi(LINEAR),
    "--algorithm jacobi --refresh-linearized": Refreshed(Jacobi(), linearized=True),
    "--algorithm gauss-seidel": GaussSeidel(),
    "--algorithm gauss-seidel --sweeps 2": Waveform(GaussSeidel(), sweeps=2),
}
"""Options of the algorithms that are compared with that of the run."""

_LINEAR = 1e-6
"""Relative deviation up to which an FMU is treated as linear; adaptive solvers deviate by this much."""


def add_arguments(parser: ArgumentParser) -> None:
    """The settings of the simulation, the time of the linearization, and the step sizes that are tried."""
    settings.add_arguments(parser)
    add = parser.add_argument
    at = "time in s at which the system is linearized (default: the start)"
    add("--at", type=float, metavar="T", help=at)
    longest = "longest step that is tried, in s (default: 100 times the step of the run)"
    add("--longest", type=float, metavar="H", help=longest)
    compare = "also find the largest stable step of some other algorithms"
    add("--compare", action="store_true", help=compare)
    figure = "draw the spectral radius against the step size: .png, .pdf or .svg"
    add("--figure", metavar="FILE", help=figure)


def run(arguments: Namespace) -> int:
    """Find the largest stable step, print it, and draw the figure."""
    figure = None if arguments.figure is None else given_path(arguments.figure)
    if figure is not None:
        check_matplotlib("--figure")
        from fmimaster.results.plot import check_format  # matplotlib is slow to import

        check_format(figure)
        check_outputs({"--figure": arguments.figure}, [arguments.system, arguments.input])
    simulation = settings.simulation(arguments)
    with (
        fmu_output_to_log(""),
        Advisor(simulation, at=arguments.at, longest=arguments.longest) as advisor,
    ):
        limit = advisor.limit()
        lines = [*_head(advisor, setting_text(advisor.algorithm)), *_page(advisor, limit)]
        if figure is not None:
            _draw(advisor, limit, figure)
    if arguments.compare:
        with fmu_output_to_log(""):
            rows = [
                (options, _of(simulation, other, arguments)) for options, other in _OTHERS.items()
            ]
        lines += section("With other algorithms", aligned(rows))
    write(lines)
    if figure is not None:
        note(arguments, [f"figure written to {figure}"])
    return 0


def _of(simulation: Simulation, algorithm: Algorithm, arguments: Namespace) -> str:
    """The limit with another algorithm, in words."""
    other = replace(simulation, algorithm=algorithm, inputs={})
    try:
        with Advisor(other, at=arguments.at, longest=arguments.longest) as advisor:
            limit = advisor.limit()
    except FmimasterError as error:
        return f"not possible: {str(error).splitlines()[0]}"
    if limit.step is not None:
        return f"stable up to {duration(limit.step)}"
    if limit.stable is not None and not limit.is_sure:
        return f"not sure: stable up to {duration(limit.stable)} or more"
    if limit.stable is not None:
        return f"stable up to at least {duration(limit.stable)}"
    return "unstable at each step size"


def _draw(advisor: Advisor, limit: Limit, path: Path) -> None:
    from fmimaster.results.plot import save_figure

    curve = RadiusCurve(advisor.name, advisor.curve(limit), limit)
    save_figure(stability_figure([curve], advisor.size), path)


def _head(advisor: Advisor, algorithm: str) -> Iterator[str]:
    yield f"{advisor.name}, {algorithm}: stability of a step near t = {advisor.start:g} s"


def _page(advisor: Advisor, limit: Limit) -> Iterator[str]:
    yield from section("Largest stable communication step", list(_limit(advisor, limit)))
    sizes = {advisor.size}
    if limit.step is not None:
        sizes |= {part * limit.step for part in _AROUND} | {limit.step}
    rows: list[tuple[str, ...]] = [("step size", "radius", "the largest change", "")]
    rows += [_row(advisor.spectrum(size), advisor.size, limit) for size in sorted(sizes)]
    yield from section("Steps", aligned(rows))
    fmus = advisor.fmus(advisor.size)
    yield from section(
        "FMUs, as they respond to pulses at the step of the run", aligned(map(_fmu, fmus))
    )
    if not advisor.is_reliable(limit.step or advisor.size):
        yield "  Linear models do not fit here, so the numbers are only estimates. Try another time (--at)."


def _limit(advisor: Advisor, limit: Limit) -> Iterator[str]:
    tried = [s.size for s in advisor.spectra()]
    if limit.step is not None:
        yield f"  {duration(limit.step, 5)}"
    elif not limit.is_sure and limit.stable and limit.unstable:
        yield (
            f"  not sure: steps of {duration(limit.stable)} are stable, those of {duration(limit.unstable)} not, but the "
            "radius was not confirmed to be 1 between them. Try another time (--at)"
        )
    elif limit.stable is not None:
        yield f"  none was found: all steps from {duration(tried[0])} to {duration(tried[-1])} are stable"
    else:
        yield (
            f"  none was found: all steps from {duration(tried[0])} to {duration(tried[-1])} are unstable. The system "
            "itself may be unstable"
        )


def _row(spectrum: Spectrum, of_run: float, limit: Limit) -> tuple[str, ...]:
    period = f", period {spectrum.period:.3g} s" if spectrum.period < inf else ""
    verb = "decays to a tenth" if spectrum.radius < 1.0 else "grows tenfold"
    change = f"{verb} in {spectrum.tenfold:.3g} s{period}"
    if spectrum.radius == 0.0:
        change = "none: nothing is coupled"
    elif spectrum.size == limit.step:  # the remaining growth is rounding
        change = f"keeps its size{period}"
    notes = {of_run: "the step of the run", limit.step: "the limit"}
    return (
        duration(spectrum.size),
        f"{spectrum.radius:.6f}",
        change,
        notes.get(spectrum.size, ""),
    )


def _fmu(fmu: FmuStability) -> tuple[str, ...]:
    difference = f"not linear: its responses differ by {100 * fmu.deviation:.2g} %"
    is_linear = fmu.deviation <= _LINEAR
    return fmu.name, count(fmu.states, "state"), "linear" if is_linear else difference


def duration(seconds: float, digits: int = 4) -> str:
    """A step size in ms, or in s from 1 s on."""
    return f"{seconds:.{digits}g} s" if seconds >= 1.0 else f"{1e3 * seconds:.{digits}g} ms"


# The figure -----------------------------------------------------------------------------------------------------------

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of Okabe and Ito (2008), which colour-blind readers can distinguish."""
_STYLES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_TEXT = 8.0
"""[pt]"""
_HIGHEST = 1.3
"""Largest radius that is shown."""


@dataclass(frozen=True, slots=True)
class RadiusCurve:
    """The radius of one kind of steps at several sizes."""

    name: str
    spectra: Sequence[Spectrum]
    limit: Limit


def stability_figure(curves: Sequence[RadiusCurve], of_run: float | None = None) -> Figure:
    """Draw curves of the radius, with the largest stable step of each.

    Parameters
    ----------
    of_run : float, optional
        Step size of the run in s; it is marked.
    """
    from matplotlib.figure import Figure  # slow to import

    figure = Figure(figsize=(5.5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    for k, curve in enumerate(curves):
        colour = _COLOURS[k % len(_COLOURS)]
        sizes = [1e3 * s.size for s in curve.spectra]
        label = curve.name
        if curve.limit.step is not None:
            step = 1e3 * curve.limit.step
            label += f": stable up to {step:.4g} ms"
            axes.plot([step], [1.0], "o", color=colour, markersize=4, zorder=4)
        axes.plot(
            sizes,
            [s.radius for s in curve.spectra],
            color=colour,
            linestyle=_STYLES[k % len(_STYLES)],
            linewidth=1.2,
            label=label,
        )
    axes.axhline(1.0, color="0.35", linewidth=0.8)
    if of_run is not None:
        axes.axvline(1e3 * of_run, color="0.6", linewidth=0.8, linestyle=(0, (2, 2)))
        axes.annotate(
            "step of the run",
            (1e3 * of_run, 0.03),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=_TEXT - 1,
            color="0.35",
        )
    axes.set_xscale("log")
    least = min((s.radius for c in curves for s in c.spectra), default=0.0)
    axes.set_ylim(max(0.0, 1.0 - 1.2 * (1.0 - least)), _HIGHEST)
    axes.set_xlabel("communication step size in ms", fontsize=_TEXT)
    axes.set_ylabel("spectral radius of a step", fontsize=_TEXT)
    axes.tick_params(labelsize=_TEXT - 1)
    axes.legend(fontsize=_TEXT - 1, frameon=False, loc="upper left")
    return figure
