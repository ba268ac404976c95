"""``fmimaster`` and ``python -m fmimaster``: the command line, which can also be interrupted while it is imported."""

import os
import sys

_SLEEP_AT_ONCE = "4"
"""Least power of 2, in processor cycles, that the threads of OpenBLAS look for work before they sleep; its own is 26."""


def main() -> int:
    """Run the command of this process; returns the exit status."""
    # NumPy starts these threads when it is imported: a fifth of the CPU time of a short command
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", _SLEEP_AT_ONCE)
    try:
        from fmimaster.commands.cli import main as command

        return command()
    except KeyboardInterrupt:  # before a command begins; afterwards the command prints it
        if (
            "FMIMASTER_RUN" not in os.environ
        ):  # else the process that has started this one prints it
            sys.stderr.write("fmimaster: error: Interrupted.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
