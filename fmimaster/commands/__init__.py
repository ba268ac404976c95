"""The commands of the command line, one file each: ``add_arguments(parser)``, ``run(arguments) -> status``.

A file is imported when its command is used: each command needs other parts of the package, and most of the time of a short
command is imports. tests/unit/test_start.py looks at the modules, because times are noisy.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "simulate": "Simulate an FMU or a system of FMUs.",
    "resume": "Continue a run that was ended from its last checkpoint.",
    "info": "Show the properties of an FMU, or the parts of a system.",
    "validate": "Find the errors in an FMU or a system. The exit status is 1 if there are any.",
    "probe": "Measure what an FMU really does, beside what it declares. Each measurement has its own process.",
    "plan": "Show how a system is computed: order, delays, loops, events.",
    "optimize": "Search for the best order of stepping. Some orders are simulated.",
    "stability": "Find the largest stable communication step. It is computed from the responses of the FMUs.",
    "budget": "Show which connection costs accuracy. The system is simulated once.",
    "export": "Write a system as an FMU that runs without Python.",
    "sweep": "Run a system many times with other start values, into a data set.",
    "plot": "Plot results from files. Several files are drawn in one figure with different line styles.",
    "steps": "Show the causes of the steps of a run, and its events.",
    "conformance": "Run all FMUs of a folder, and compare them with their references.",
    "host": "Run FMUs for simulations on other machines, until Ctrl-C.",
    "demo": "Run a ready-made system. Without a name, all demos are listed.",
    "completion": "Print the script for completion in a shell.",
}
"""Name of a command and of its module → what it does; the first sentence is its line in the list of commands."""

EXAMPLES: Mapping[str, str] = {
    "simulate": "two-mass.ssp --stop-time 5 --output-file two.csv --show-plot",
    "resume": "two-mass.checkpoint",
    "info": "two-mass.ssp",
    "validate": "two-mass.ssp",
    "probe": "BouncingBall.fmu",
    "plan": "two-mass.ssp --algorithm gauss-seidel",
    "optimize": "four-units.ssp --stop-time 0.1 --step-size 1/1000",
    "stability": "quarter-car-a.ssp --step-size 1/1000",
    "budget": "quarter-car-a.ssp --step-size 1/1000",
    "export": "quarter-car-a.ssp --output-file car.fmu",
    "sweep": "quarter-car-a.ssp --parameter wheel.dc=500:2000 -n 64",
    "plot": 'two.csv --variable "*.x" --show-plot',
    "steps": "two.csv",
    "conformance": "fmus --workers 4",
    "host": "--listen 127.0.0.1:7000",
    "demo": "two-mass --output-directory figures",
    "completion": "bash",
}
"""Name of a command → arguments of an example; ``demo files`` writes the files."""
