"""Draw error_versus_step.svg: the error of each algorithm against the communication step size.

    python docs/figures/error_versus_step.py [FOLDER]

Each point is a run of two reference FMUs (docs/examples/strang.py has the system and its exact solution).
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from fmimaster.algorithms import GaussSeidel, Jacobi
from fmimaster.inputs import FIRST_ORDER

HERE = Path(__file__).parent
STEPS = (10, 20, 40, 80, 160, 320)
GREY = "0.35"


def example() -> ModuleType:
    """The example, which is a file and not a module of a package."""
    spec = spec_from_file_location("strang", HERE.parent / "examples" / "strang.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["strang"] = module
    spec.loader.exec_module(module)
    return module


def main(folder: Path) -> None:
    """Run, draw, and print the figures of the table in docs/algorithms.md."""
    strang = example()
    lines = (  # label, algorithm, colour, marker, points by which the label is raised
        ("Jacobi, held", Jacobi(), "#0072B2", "o", -6),
        ("Gauss-Seidel, held", GaussSeidel(), "#D55E00", "s", 6),
        ("Strang, held", strang.Strang(), "#009E73", "D", 0),
        ("Jacobi, first order", Jacobi(FIRST_ORDER), "#0072B2", "^", -6),
        ("Gauss-Seidel, first order", GaussSeidel(FIRST_ORDER), "#D55E00", "v", 6),
    )
    sizes = 1.0 / np.array(STEPS)
    figure = Figure(figsize=(6.4, 3.9), layout="constrained")
    axes = figure.subplots()
    for k, (label, algorithm, colour, marker, above) in enumerate(lines):
        errors = np.array([strang.error(algorithm, n) for n in STEPS])
        order = np.log2(errors[-2] / errors[-1])
        print(
            f"{label:26} H = 0.1: {errors[0]:.2e}   H = 0.0125: {errors[3]:.2e}   order {order:.2f}"
        )
        style = "-" if "held" in label else (0, (4, 1.5))
        axes.loglog(
            sizes,
            errors,
            marker=marker,
            markersize=4,
            color=colour,
            lw=1.1,
            ls=style,
            zorder=5 - k / 9,
        )
        axes.annotate(
            label,
            (sizes[0], errors[0]),
            (6, above),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colour,
        )
    for order, at in ((1, 3.8e-4), (2, 2.6e-6)):
        slope = at * (sizes / sizes[-1]) ** order
        axes.loglog(sizes[-3:], slope[-3:], color=GREY, lw=0.7)
        axes.annotate(
            f"order {order}",
            (sizes[-1], slope[-1]),
            (-4, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8,
            color=GREY,
        )
    axes.set_xlim(sizes[-1] / 1.6, sizes[0] * 2.9)
    axes.set_xticks(sizes, [f"1/{n}" for n in STEPS], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("communication step size H in s", fontsize=8)
    axes.set_ylabel("error at t = 1 s", fontsize=8)
    axes.tick_params(labelsize=8, color=GREY, width=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(linewidth=0.4, color="0.88")
    with rc_context({"svg.hashsalt": "fmimaster", "svg.fonttype": "path"}):
        figure.savefig(folder / "error_versus_step.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
