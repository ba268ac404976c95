"""The facts beside a CSV file, read at once."""

from __future__ import annotations

import os

from fmimaster.record.causes import Event, Steps
from fmimaster.results.facts import Facts, facts_path


def read_facts(table: str | os.PathLike[str]) -> tuple[tuple[Event, ...], tuple[Steps, ...]]:
    """Events and steps of a CSV file; none if there is no file of facts beside it."""
    read = Facts(facts_path(table))
    return tuple(read.events()), tuple(read.steps())
