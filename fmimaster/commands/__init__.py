"""The commands of the command line, one file each: ``add_arguments(parser)``, ``run(arguments) -> status``.

A file is imported when its command is used: each needs another part of the package.
"""

from __future__ import annotations

from collections.abc import Mapping

COMMANDS: Mapping[str, str] = {
    "simulate": "Simulate an FMU or a system of FMUs.",
    "info": "Show the properties of an FMU, or the parts of a system.",
    "validate": "Look for all that is wrong with an FMU or a system. The exit status is 1 if there are errors.",
    "plan": "Show how a system will be computed: order, loops, delays, conversions, events, programs.",
    "optimize": "Search the trigger sequence with the smallest error, by simulations with some of them.",
    "stability": "Find the largest communication step at which a system is stable, from the responses of its FMUs.",
    "budget": "Simulate a system, and show which connection costs accuracy, in its unit and by what it does to outputs.",
    "plot": "Plot results from CSV files; several are drawn into one figure with different dashes.",
    "steps": "Show each step of a run with its size and the cause of its end, and the events between.",
    "demo": "Run a ready-made system, write tables and figures; without a name, list all demos.",
}
"""Name of a command, which is that of its file → what it does."""
