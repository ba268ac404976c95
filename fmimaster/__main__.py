"""``fmimaster`` and ``python -m fmimaster``: the command line, which can also be interrupted while it is imported."""

import os
import sys


def main() -> int:
    """Run the command of this process; returns the exit status."""
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
