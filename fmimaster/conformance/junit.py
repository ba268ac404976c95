"""Verdicts as JUnit XML, which systems for continuous integration show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from fmimaster.conformance.one_run import LOG_FILE
from fmimaster.conformance.verdict import ConformanceRun, Outcome, Verdict, VerdictCause

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not permit."""

_MOST_LOG = 20_000
"""Letters of the end of a log."""


def write_junit(run: ConformanceRun, folder: Path, file: Path) -> None:
    """Write them: a test case for each FMU; a rejected one is skipped.

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
        failures=str(run.count(Outcome.FAILED) - _defects(run)),
        errors=str(_defects(run)),
        skipped=str(run.count(Outcome.REJECTED)),
        time=f"{sum(v.seconds + v.overhead for v in run.verdicts):.3f}",
    )
    for verdict in run.verdicts:
        _add(suite, verdict, folder)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)


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
    if verdict.outcome is Outcome.PASSED:
        return
    kind = "skipped" if verdict.outcome is Outcome.REJECTED else "failure"
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
