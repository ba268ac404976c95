"""``fmimaster conformance --compare OLD NEW``: what changed between two conformance runs."""

from __future__ import annotations

from fmimaster.base.given_path import given_path
from fmimaster.commands.text import write, write_json
from fmimaster.conformance.changes import Effect, changes
from fmimaster.conformance.changes_page import write_changes
from fmimaster.conformance.verdict import ConformanceRun

WORSE = 1
"""Exit status if an FMU that passed before does not pass now."""


def compare(old: str, new: str, html: str | None, as_json: bool) -> int:
    """Print what changed, and write it as an HTML page if a file is given.

    Parameters
    ----------
    old, new
        Output folders of two runs, or their files ``verdicts.jsonl``.
    """
    found = changes(*(ConformanceRun.read(given_path(run)) for run in (old, new)))
    if html:
        write_changes(found, given_path(html))
    if as_json:
        write_json(found.to_json())
    else:
        write(str(found).splitlines())
    return WORSE if found.of(Effect.WORSE) else 0
