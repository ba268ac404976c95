"""Draw power_bonds.svg: what the residual of a power bond shows, and what it does not.

    python docs/figures/power_bonds.py [FOLDER]

The linear quarter car of Sadjina et al. (2017): in split A the suspension is in the wheel, in split B in the chassis.
"""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from fmimaster import Results, reference_path, simulate
from fmimaster.studies.demos.quarter_car import LINEAR_CAR, measures

HERE = Path(__file__).parent
STEPS = (0.2e-3, 0.5e-3, 1e-3, 2e-3, 5e-3)
"""In s."""
SPLITS = {"a": "#0072B2", "b": "#D55E00"}
GREY = "0.35"
SHOWN = 0.6
"""So many seconds of the run."""


def run(split: str, step: float) -> Results:
    system = reference_path(f"systems/quarter-car-{split}-fmi3.ssp")
    return simulate(system, step_size=step, algorithm="Jacobi", error_estimate=False)


def main(folder: Path) -> None:
    """Run, draw, and print the figures of the table in docs/power-bonds.md."""
    figure = Figure(figsize=(7.4, 3.3), layout="constrained")
    over_time, over_step = figure.subplots(1, 2)
    for split, colour in SPLITS.items():
        runs = {step: run(split, step) for step in STEPS}
        r = runs[1e-3]
        shown = r.time <= SHOWN
        over_time.plot(r.time[shown], r["suspension.residual_energy"][shown], color=colour, lw=1.1)
        over_time.annotate(
            f"split {split.upper()}",
            (SHOWN, r["suspension.residual_energy"][shown][-1]),
            (-4, 5),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color=colour,
        )
        errors = [measures(r, LINEAR_CAR.power(split)).power_error for r in runs.values()]
        residuals = [r.power_bonds[0].mean_error for r in runs.values()]
        for values, marker, style in ((errors, "o", "-"), (residuals, "^", (0, (4, 1.5)))):
            over_step.loglog(
                STEPS, values, marker=marker, markersize=4, color=colour, ls=style, lw=1.1
            )
        for step, error, residual in zip(STEPS, errors, residuals, strict=True):
            print(
                f"{split} H = {step * 1e3:.1f} ms: error {error:.4g} W, mean |residual|/2 {residual:.4g} W"
            )
    for k, (label, style) in enumerate(
        (("error of the power", "-"), ("mean |residual|/2", (0, (4, 1.5))))
    ):
        over_step.plot([], [], color=GREY, ls=style, marker="o^"[k], markersize=4, label=label)
    over_step.set_xticks(STEPS, [f"{step * 1e3:g}" for step in STEPS], minor=False)
    over_step.set_xticks([], minor=True)
    over_step.legend(fontsize=8, frameon=False)
    over_time.set_xlabel("t in s", fontsize=8)
    over_time.set_ylabel("residual energy in J, H = 1 ms", fontsize=8)
    over_step.set_xlabel("communication step size H in ms", fontsize=8)
    over_step.set_ylabel("W, mean over 4 s", fontsize=8)
    for axes in (over_time, over_step):
        axes.tick_params(labelsize=8, color=GREY, width=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(linewidth=0.4, color="0.88")
    with rc_context({"svg.hashsalt": "fmimaster", "svg.fonttype": "path"}):
        figure.savefig(folder / "power_bonds.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
