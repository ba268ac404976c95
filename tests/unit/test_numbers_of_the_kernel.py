"""Numbers that stand in Python and in C are the same: each is in one of these tables."""

from __future__ import annotations

import re
from typing import Any

import pytest
from kernels import FOLDER

from fmimaster.fmu.kernel_memory import ExchangeMode
from fmimaster.fmu.model_exchange import cvode
from fmimaster.fmu.model_exchange import steps as exchange_steps
from fmimaster.inputs.polynomial import (
    MOST_CANDIDATES,
    MOST_COEFFICIENTS,
    MOST_GIVEN,
    MOST_POINTS,
)
from fmimaster.loops.unknowns import MOST_REMEMBERED, At
from fmimaster.numerics.runge_kutta import STAGES
from fmimaster.program import bond_powers, hook
from fmimaster.program.instructions.steps import MOST_NESTED
from fmimaster.run.reference import steps
from fmimaster.steps.prediction_errors import MOST_DEGREE
from fmimaster.system.clocks import Qualifier
from fmimaster.system.model import DataType

OF_THE_HEADER = {
    "FM_MOST_NESTED": MOST_NESTED,
    "FM_MOST_POINTS": MOST_POINTS,
    "FM_MOST_NODES": MOST_COEFFICIENTS,
    "FM_CANDIDATES": MOST_CANDIDATES,
    "FM_MOST_GIVEN": MOST_GIVEN,
    "FM_MOST_ANDERSON": MOST_REMEMBERED,
    "FM_MOST_DEGREE": MOST_DEGREE,
    "FM_MOST_STAGES": STAGES,
    "FM_TYPES": len(DataType),
    "FM_NOTHING": hook.NOTHING,
    "FM_WHAT_VARIES": hook.WHAT_VARIES,
    "FM_EVERYTHING": hook.EVERYTHING,
    **{f"FM_{q.name}": q.value for q in Qualifier},
}
"""Name in kernel.h → number in Python."""

OF_SOURCES = {
    ("kernel.c", "OUTSIDE"): steps.OUTSIDE,
    ("kernel.c", "MOST_ALIGNMENTS"): steps.MOST_ALIGNMENTS,
    ("control.c", "SAME_LIMIT"): steps.SAME_LIMIT,
    ("power.c", "first_part"): bond_powers.FIRST,
    ("exchange.c", "MODE_EVENT"): ExchangeMode.EVENT,
    ("exchange.c", "MODE_CONTINUOUS_TIME"): ExchangeMode.CONTINUOUS_TIME,
    ("exchange.h", "SAME"): exchange_steps._SAME,
    ("cvode.c", "LARGEST_JUMP"): cvode.LARGEST_JUMP,
}
"""File of the kernel and name → number in Python."""


def in_source(file: str, name: str) -> float:
    """The number of that name in a file of the kernel: a product of literals."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    (value,) = re.findall(rf"\b{name} = ([^,;}}]+)", text)
    product = 1.0
    for factor in value.split("*"):
        literal = factor.strip()
        product *= float.fromhex(literal) if literal.startswith("0x") else float(literal)
    return product


@pytest.mark.parametrize("name", OF_THE_HEADER)
def test_a_number_of_the_header_is_that_of_python(name: str) -> None:
    kernel = pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")
    numbers: dict[str, Any] = vars(kernel.lib)
    assert numbers[name] == OF_THE_HEADER[name]


@pytest.mark.parametrize(("file", "name"), OF_SOURCES)
def test_a_number_of_a_source_is_that_of_python(file: str, name: str) -> None:
    assert in_source(file, name) == OF_SOURCES[file, name]


def test_what_a_loop_counts_has_the_same_places() -> None:
    text = (FOLDER / "loop.c").read_text(encoding="utf-8")
    (names,) = re.findall(r"enum \{ (SWEEPS[^}]*) \};", text)
    assert names.split(", ") == [at.name for at in At]
