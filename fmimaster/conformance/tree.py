"""The results tree of the cross-check rules: a folder for each FMU, with a file that is named after its verdict.

Source: FMI cross-check rules 4.1, section 9.2.
"""

from __future__ import annotations

import csv
import shutil
from itertools import count
from math import ceil
from pathlib import Path

from fmimaster.conformance.cases import FmuCase
from fmimaster.conformance.verdict import Verdict, VerdictOutcome

LOG_FILE = "log.txt"
"""In the folder of an FMU: the log of its run, and what it has printed."""

CARD_FILE = "card.json"
"""What the FMU really does, if it was measured."""

MOST_BYTES = 1_000_000
"""Largest size of ``MODEL_out.csv``, which has the results."""

README = "README.md"
"""Why an FMU has not passed, as the rules ask for."""


def new_folder(output: Path, case: FmuCase) -> Path:
    """The folder of an FMU, empty."""
    folder = output / case.results
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_outcome(output: Path, verdict: Verdict, printed: str) -> None:
    """Write the file ``passed``, ``failed`` or ``rejected``, the reason, and what the FMU has printed into the log."""
    folder = output / verdict.results
    (folder / verdict.outcome.value).touch()
    if verdict.outcome is not VerdictOutcome.PASSED:
        text = f"# {verdict.model}: {verdict.outcome.value}\n\n{verdict.reason}\n"
        (folder / README).write_text(text, encoding="utf-8", errors="backslashreplace")
    if printed.strip():
        with (folder / LOG_FILE).open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"\nPrinted by the process of the FMU:\n{printed}")


def shorten(file: Path, most: int = MOST_BYTES) -> tuple[str, ...]:
    """Leave out rows of a CSV file that is too large: each n-th one stays, and the last one.

    Returns
    -------
    A note about it; none if the file is small enough.
    """
    size = file.stat().st_size
    if size <= most:
        return ()
    with file.open(newline="", encoding="utf-8") as stream:
        head, *rows = list(csv.reader(stream))
    for n in count(ceil(size / most)):
        kept = rows[:-1:n] + rows[-1:]
        with file.open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream, lineterminator="\n").writerows([head, *kept])
        if file.stat().st_size <= most or n > len(rows):
            break
    return (f"'{file.name}' has one of {n} rows and the last one, to be below {most / 1e6:g} MB",)
