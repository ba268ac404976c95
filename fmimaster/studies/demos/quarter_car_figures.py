"""The demo of the quarter car: its tables, its figures, and a work-precision diagram of all schemes.

The figures are those of Sadjina et al. (2017), Figs. 4, 7, 8 and 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from fmimaster.studies.demos import quarter_car
from fmimaster.studies.demos import quarter_car_schemes as schemes
from fmimaster.studies.demos.quarter_car import BOND, CASES, CONSTANT, ECCO, CarRun
from fmimaster.studies.demos.quarter_car_schemes import Scheme
from fmimaster.studies.demos.stage import TEXT, Stage, legend, plain, write_files

_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "0.45"
_DASHED: Any = (0, (4, 2))
_INPUTS: Mapping[str, dict[str, Any]] = {
    "held": {"color": _BLUE, "marker": "o"},
    "NEPCE": {"color": "#56B4E9", "marker": "^"},
    "midpoint": {"color": "#E69F00", "marker": "D"},
    "linear": {"color": _ORANGE, "marker": "s"},
    "quadratic": {"color": "#CC79A7", "marker": "v"},
    "Gauss-Seidel": {"color": "#009E73", "marker": "P"},
}
"""Styles by the first word of the name of a scheme."""
_VARIANTS: Mapping[str, dict[str, Any]] = {
    "refreshed": {"linestyle": _DASHED, "markerfacecolor": "white"},
    "predictor/corrector": {"linestyle": "-.", "marker": "x"},
    "one corrector": {"linestyle": "-.", "marker": "x"},
    "step doubling": {"linestyle": ":", "marker": "*"},
    "two runs": {"linestyle": ":", "markerfacecolor": "white"},
}
"""Further styles by other words in the name."""

Precision = Mapping[tuple[Scheme, str], Sequence[CarRun]]
"""Scheme and case → its runs with several tolerances."""


def show(stage: Stage) -> None:
    """Run all rows and schemes."""
    rows = quarter_car.run_rows(stage.version)
    stage.print(quarter_car.paper_table(rows))
    euler = schemes.run_schemes(schemes.SCHEMES, stage.version)
    stage.print(schemes.schemes_table(euler, "Euler"))
    drawn = [scheme for scheme in schemes.SCHEMES if scheme.is_drawn]
    precision = schemes.run_schemes(
        drawn, stage.version, schemes.STEPS_OF_DIAGRAM, schemes.RUNGE_KUTTA
    )
    stage.print(schemes.schemes_table(precision, "Runge-Kutta"))
    by_control = {(row.case, row.control): run for row, run in reversed([*rows.items()])}
    linear = by_control["lin A", CONSTANT], by_control["lin A", ECCO]
    nonlinear = by_control["nl A", CONSTANT], by_control["nl A", ECCO]
    figures = {
        "quarter-car": work_precision(precision),
        "quarter-car-figure-4": errors_over_step(quarter_car.run_over_step(stage.version)),
        "quarter-car-figure-7": energy_transactions(linear[0]),
        "quarter-car-figure-8": residual_energies(*linear),
        "quarter-car-figure-10": energy_transactions(*nonlinear),
    }
    which = f" of '{quarter_car.SHOWN.case}', steps {quarter_car.SHOWN.control},"
    stage.tell(
        [
            *(
                f"warning of '{row.case}', steps {row.control}: {warning}"
                for row, run in rows.items()
                for warning in run.results.statistics.warnings
            ),
            *write_files(stage, "quarter-car", rows[quarter_car.SHOWN].results, which, figures),
        ]
    )


def errors_over_step(over_step: Mapping[str, Sequence[CarRun]]) -> Figure:
    """Power error and its estimate over constant steps, by case, as in figure 4."""
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, (case, of_case) in zip((_BLUE, _ORANGE), over_step.items(), strict=False):
        steps = [1e3 * run.measures.mean_step for run in of_case]
        errors = [run.measures.power_error for run in of_case]
        estimates = [run.measures.half_residual for run in of_case]
        style: dict[str, Any] = {"marker": "o", "markersize": 3, "color": colour}
        axes.loglog(steps, errors, linestyle=_DASHED, label=f"{case}: error", **style)
        axes.loglog(steps, estimates, label=f"{case}: half of the residual", **style)
    axes.set_xlabel("step size in ms", fontsize=TEXT)
    axes.set_ylabel("mean absolute power in W", fontsize=TEXT)
    plain(axes)
    figure.legend(loc="outside upper center", ncols=2, fontsize=TEXT, frameon=False)
    return figure


def energy_transactions(constant: CarRun, controlled: CarRun | None = None) -> Figure:
    """Transmitted power (left) and residual energy (right) over time, as in figures 7 and 10."""
    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    results = constant.results
    left.plot(results.time, results[f"{BOND}.power"], color=_BLUE, linewidth=0.9)
    left.margins(x=0.0)
    left.set_ylabel("power from chassis to wheel in W", fontsize=TEXT)
    left.set_title("Power, with a constant step of 1 ms", fontsize=TEXT + 1, loc="left")
    _residual_energy(right, constant, controlled)
    right.set_title("Energy that the coupling has created", fontsize=TEXT + 1, loc="left")
    for axes in (left, right):
        axes.set_xlabel("time in s", fontsize=TEXT)
        plain(axes)
    return figure


def residual_energies(constant: CarRun, controlled: CarRun) -> Figure:
    """Residual energy over time with constant and with controlled steps, as in figure 8."""
    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.subplots()
    _residual_energy(axes, constant, controlled)
    axes.set_title("Energy that the coupling has created", fontsize=TEXT + 1, loc="left")
    axes.set_xlabel("time in s", fontsize=TEXT)
    plain(axes)
    return figure


def _residual_energy(axes: Axes, constant: CarRun, controlled: CarRun | None) -> None:
    name = f"{BOND}.residual_energy"
    if controlled is None:
        axes.plot(constant.results.time, constant.results[name], color=_BLUE, linewidth=1.1)
    else:
        for run, text, colour, style in (
            (constant, "constant step", _GREY, _DASHED),
            (controlled, "by energy (ECCO)", _BLUE, "-"),
        ):
            label = f"{text}, {run.measures.steps} steps"
            axes.plot(
                run.results.time,
                run.results[name],
                linewidth=1.1,
                color=colour,
                linestyle=style,
                label=label,
            )
        axes.legend(fontsize=TEXT, frameon=False)
    axes.set_ylabel("residual energy in J", fontsize=TEXT)
    axes.margins(x=0.0)


def work_precision(precision: Precision) -> Figure:
    """Power error over the number of steps of each FMU, a panel for each case."""
    figure = Figure(figsize=(8.0, 6.6), layout="constrained")
    figure.suptitle(
        "Error over the number of steps; FMUs with the Runge-Kutta method inside",
        fontsize=TEXT + 1,
    )
    shown = list(dict.fromkeys(scheme for scheme, _ in precision))
    styles = [_style(scheme) for scheme in shown]
    for axes, case in zip(figure.subplots(2, 2).flat, CASES, strict=True):
        for scheme, style in zip(shown, styles, strict=True):
            of_scheme = sorted(precision[scheme, case], key=lambda run: run.do_steps)
            errors = np.array([run.measures.power_error for run in of_scheme])
            work = np.array([run.do_steps for run in of_scheme])
            axes.loglog(work, errors, linewidth=1.0, markersize=3.5, **style)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        limits = axes.get_xlim()
        axes.set_xticks([500 * 2**k for k in range(5)])
        axes.set_xlim(limits)
        axes.set_title(case, fontsize=TEXT + 1, loc="left")
        axes.set_xlabel("steps of each FMU", fontsize=TEXT)
        axes.set_ylabel("mean absolute power error in W", fontsize=TEXT)
        plain(axes)
    key = [
        (scheme.name, Line2D([], [], markersize=4, linewidth=1.0, **style))
        for scheme, style in zip(shown, styles, strict=True)
    ]
    legend(figure, key)
    return figure


def _style(scheme: Scheme) -> dict[str, Any]:
    """Colour and marker by the inputs, black for constant steps; line style by further methods."""
    style = dict(_INPUTS[scheme.name.split()[0].rstrip(",")])
    if not scheme.tolerances:
        style["color"] = "black"
    for word, variant in _VARIANTS.items():
        if word in scheme.name:
            style |= variant
    return style
