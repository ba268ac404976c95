"""Verdicts as files for others: the results tree of the cross-check rules, a CSV file, and JUnit XML.

The tree has a folder for each FMU, with a file that is named after its verdict. The CSV file has a line for each FMU.

Source: FMI cross-check rules 4.1, section 9.2."""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator
from itertools import count
from math import ceil
from pathlib import Path
from xml.etree import ElementTree

from fmimaster.base.text import visible
from fmimaster.conformance.cases import FmuCase
from fmimaster.conformance.verdict import ConformanceRun, Verdict, VerdictCause, VerdictOutcome

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
    if not verdict.has_passed:
        text = f"# {verdict.model}: {verdict.outcome.value}\n\n{verdict.reason}\n"
        _append(folder / README, text)
    if printed.strip():
        _append(folder / LOG_FILE, f"\nPrinted by the process of the FMU:\n{printed}")


def _append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
        stream.write(text)


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


COLUMNS = (
    *("name", "interface", "FMI", "exporter", "exporter version", "verdict", "cause", "reason"),
    *("start time", "stop time", "step size", "rows", "seconds", "overhead", "reference"),
    *("outside band", "relative RMS", "largest deviation", "variable", "notes", "results"),
)
"""Times in s. The measures are the largest of all variables; the largest deviation is relative to the range."""


def write_verdicts_csv(run: ConformanceRun, file: Path) -> None:
    """Write the CSV file: a line for each FMU."""
    with file.open("w", newline="", encoding="utf-8", errors="backslashreplace") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows([_inert(visible(str(cell))) for cell in _cells(v)] for v in run.verdicts)


def _inert(cell: str) -> str:
    """A cell that a spreadsheet does not take for a formula: names and reasons are texts of FMUs."""
    if not cell.lstrip().startswith(("=", "+", "-", "@")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def _cells(v: Verdict) -> Iterator[object]:
    yield from (v.name, v.interface, v.fmi_version, v.exporter, v.exporter_version)
    yield from (v.outcome.value, v.cause.value, v.reason)
    yield from ("" if t is None else repr(t) for t in (v.start_time, v.stop_time, v.step_size))
    yield from (v.rows, f"{v.seconds:.3f}", f"{v.overhead:.3f}", v.reference)
    if v.measures:
        worst = max(v.measures, key=lambda m: (m.outside, m.deviation.relative))
        d = worst.deviation
        largest = d.largest / d.range if d.range else d.largest
        yield from (f"{x:.6g}" for x in (worst.outside, d.relative, largest))
        yield d.name
    else:
        yield from ("", "", "", "")
    yield from ("; ".join(v.notes), v.results)


_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not permit."""

_MOST_LOG = 20_000
"""Letters of the end of a log."""


def write_junit(run: ConformanceRun, folder: Path, file: Path) -> None:
    """Write JUnit XML: a test case for each FMU; a rejected one is skipped.

    Parameters
    ----------
    folder
        The output folder, which has the logs.
    """
    suite = ElementTree.Element(
        "testsuite",
        name=f"conformance of {Path(run.folder).name}",
        timestamp=run.started,
        tests=str(len(run.verdicts)),
        failures=str(run.count(VerdictOutcome.FAILED) - _defects(run)),
        errors=str(_defects(run)),
        skipped=str(run.count(VerdictOutcome.REJECTED)),
        time=f"{sum(v.seconds + v.overhead for v in run.verdicts):.3f}",
    )
    for verdict in run.verdicts:
        _add(suite, verdict, folder)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    file.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _defects(run: ConformanceRun) -> int:
    return sum(verdict.cause is VerdictCause.INTERNAL for verdict in run.verdicts)


def _add(suite: ElementTree.Element, verdict: Verdict, folder: Path) -> None:
    exporter = f"{verdict.exporter} {verdict.exporter_version}".strip() or "unknown exporter"
    test = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_legal(exporter),
        name=_legal(verdict.name),
        time=f"{verdict.seconds + verdict.overhead:.3f}",
    )
    if verdict.has_passed:
        return
    kind = "skipped" if verdict.outcome is VerdictOutcome.REJECTED else "failure"
    kind = "error" if verdict.cause is VerdictCause.INTERNAL else kind
    found = ElementTree.SubElement(test, kind, message=_legal(verdict.reason))
    if kind != "skipped":
        found.set("type", verdict.cause.value)
    log = folder / verdict.results / LOG_FILE
    if log.is_file():
        text = log.read_text(encoding="utf-8", errors="replace")[-_MOST_LOG:]
        ElementTree.SubElement(test, "system-out").text = _legal(text)


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
