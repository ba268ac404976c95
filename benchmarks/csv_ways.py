"""Ways to write and read the same rows as CSV, in turns: the kernel, Python and NumPy without it, pyarrow if it is there.

CPU times in s for a million rows of a time and four values. *Digits alone* is what `repr` takes for all numbers: no way in
Python that writes these digits can be faster.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from systems import folder_until_exit

from fmimaster.results import numbers
from fmimaster.results.csv import read_csv, write_csv
from fmimaster.results.table import Table

MILLION = 1_000_000


def table_of(rows: int) -> Table:
    """Four signals over a grid of time."""
    t = np.arange(rows) / 1000
    return Table(
        time=t, columns={name: np.sin((k + 1) * t) * k for k, name in enumerate("abcd", 1)}
    )


def without_kernel(work: Callable[[], object]) -> Callable[[], object]:
    """The same work as if there had been no C compiler at installation."""

    def run() -> object:
        kernel = numbers._kernel
        numbers._kernel = lambda: None  # type: ignore[assignment]
        try:
            return work()
        finally:
            numbers._kernel = kernel

    return run


def ways(table: Table, path: Path) -> dict[str, Callable[[], object]]:
    """Name → what is measured."""
    columns = {"time": table.time, **table.columns}

    def write() -> None:
        write_csv(table, path)

    def digits() -> None:
        for values in columns.values():
            for _ in map(repr, values.tolist()):
                pass

    known: dict[str, Callable[[], object]] = {
        "write, kernel": write,
        "write, Python": without_kernel(write),
        "digits alone, Python": digits,
        "read, kernel": lambda: read_csv(path),
        "read, NumPy": without_kernel(lambda: read_csv(path)),
    }
    try:
        import pyarrow  # no dependency of fmimaster: only compared with
        from pyarrow import csv
    except ImportError:
        return known
    arrow = pyarrow.table(columns)
    alone = csv.ReadOptions(use_threads=False)
    known["write, pyarrow"] = lambda: csv.write_csv(arrow, path.with_suffix(".arrow"))
    known["read, pyarrow"] = lambda: csv.read_csv(path, read_options=alone)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    table = table_of(options.rows)
    measured = ways(table, folder_until_exit() / "rows.csv")
    taken: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(options.rounds):
        for name, work in measured.items():
            begin = time.process_time()
            work()
            taken[name].append((time.process_time() - begin) * MILLION / options.rows)
    for name, times in taken.items():
        print(f"{name:22} {statistics.median(times):6.3f} s")


if __name__ == "__main__":
    main()
