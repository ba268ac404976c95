"""The results tree of the cross-check rules: a folder for each FMU, with a file that is named after its verdict.

Source: FMI cross-check rules 4.1, section 9.2.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fmimaster.conformance.cases import Case
from fmimaster.conformance.one_run import LOG_FILE
from fmimaster.conformance.verdict import Outcome, Verdict

CARD_FILE = "card.json"
"""What the FMU really does, if it was measured."""

README = "README.md"
"""Why an FMU has not passed, as the rules ask for."""


def new_folder(output: Path, case: Case) -> Path:
    """The folder of an FMU, empty."""
    folder = output / case.results
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_outcome(output: Path, verdict: Verdict, printed: str) -> None:
    """Write the file ``passed``, ``failed`` or ``rejected``, the reason, and what the FMU has printed into the log."""
    folder = output / verdict.results
    (folder / verdict.outcome.value).touch()
    if verdict.outcome is not Outcome.PASSED:
        text = f"# {verdict.model}: {verdict.outcome.value}\n\n{verdict.reason}\n"
        (folder / README).write_text(text, encoding="utf-8", errors="backslashreplace")
    if printed.strip():
        with (folder / LOG_FILE).open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"\nPrinted by the process of the FMU:\n{printed}")
