"""``fmimaster validate``: what is wrong, doubtful or worth knowing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter

from fmimaster.commands.text import count, write, write_json
from fmimaster.validation import Severity, validate

HELP = (
    "Look for all that is wrong with an FMU or a system. The exit status is 1 if there are errors."
)


def add_arguments(parser: ArgumentParser) -> None:
    """The file, and the form of the answer."""
    parser.add_argument("path", metavar="FMU|SYSTEM", help="an FMU, an SSP, an SSD, or a folder")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")


def run(arguments: Namespace) -> int:
    """Print the findings; the worst decides the exit status."""
    findings = validate(arguments.path)
    counts = Counter(finding.severity for finding in findings)
    if arguments.json:
        write_json(
            [
                {"place": f.place, "severity": f.severity.value, "what": f.what, "advice": f.advice}
                for f in findings
            ]
        )
    else:
        for f in findings:
            write(
                [f"{f.severity.value}: {f.place}: {f.what}" + (f" {f.advice}" if f.advice else "")]
            )
        write([", ".join(count(counts[severity], severity.value) for severity in Severity)])
    return 1 if counts[Severity.ERROR] else 0
