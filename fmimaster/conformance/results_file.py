"""The file ``MODEL_out.csv`` of the results tree: small enough for the cross-check rules.

Source: FMI cross-check rules 4.1, section 9.2.
"""

from __future__ import annotations

import csv
from itertools import count
from math import ceil
from pathlib import Path

MOST_BYTES = 1_000_000
"""Largest size of the file."""


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
