"""``fmimaster validate``: errors, warnings and notes about an FMU or a system."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator

from fmimaster.base.text import count, flowing
from fmimaster.commands.text import write, write_json
from fmimaster.front.validation import Finding, Severity, validate

_MOST_OF_A_KIND = 5
"""Most findings that differ only in names and numbers."""
_NAMES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


def add_arguments(parser: ArgumentParser) -> None:
    """The file, and the form of the output."""
    parser.add_argument("path", metavar="SYSTEM", help="an FMU, an SSP, an SSD, or a folder")
    parser.add_argument("--all", action="store_true", help="print all findings of one kind")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    interface = "interface of an FMU: CoSimulation, ModelExchange, ScheduledExecution (default: the first that it has)"
    parser.add_argument("--interface", metavar="NAME", help=interface)


def run(arguments: Namespace) -> int:
    """Print the findings; the most severe one decides the exit status."""
    findings = validate(arguments.path, interface=arguments.interface)
    counts = Counter(finding.severity for finding in findings)
    if arguments.json:
        write_json(
            [
                {"place": f.place, "severity": f.severity.value, "what": f.what, "advice": f.advice}
                for f in findings
            ]
        )
    else:
        write(flowing(_lines(findings, None if arguments.all else _MOST_OF_A_KIND)))
        write([", ".join(count(counts[severity], severity.value) for severity in Severity)])
    return 1 if counts[Severity.ERROR] else 0


def _lines(findings: Iterable[Finding], most: int | None) -> Iterator[str]:
    """A line for each finding; of many that differ only in names and numbers, the first ones and a count."""
    kinds: dict[tuple[str, Severity, str], list[Finding]] = {}
    for finding in findings:
        kind = _NAMES.sub("", finding.what)
        kinds.setdefault((finding.place, finding.severity, kind), []).append(finding)
    for alike in kinds.values():
        for f in alike[:most]:
            place = "" if f.what.startswith(f.place) else f"{f.place}: "
            yield f"{f.severity.value}: {place}{f.what}" + (f" {f.advice}" if f.advice else "")
        if (more := len(alike) - len(alike[:most])) > 0:
            f = alike[0]
            yield f"{f.severity.value}: {f.place}: ... and {more} more of this kind (all with --all)"
