"""Names of variables by the naming conventions: those of the standard, and by fmpy's grammar where that is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fmpy import validation
from fmpy.model_description import ModelDescription, ModelVariable
from hypothesis import given
from hypothesis import strategies as st

from fmimaster.fmu.description.rules import follows_convention


@pytest.mark.parametrize(
    "name",
    [
        *("a", "_a9", "a.b.c", "a[1]", "a[1,20].b[3]", "der(a.b)", "der(a[1],2)"),
        *("'a b'", "x.'a.b[c d]'[1]", r"'it\'s'", r"'a\\b\n'", "der"),
    ],
)
def test_structured_names(name: str) -> None:
    assert follows_convention(name, "structured")


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            "9a",
            "a b",
            "a-b",
            "a.",
            ".a",
            "a..b",
            "a[]",
            "a[1][2]",
            "a[1, 2]",
            "a[x]",
            "é",
            "''",
        ),
        *("'a", "der()", "der(der(a))", "der(a,b)", "a\n", r"'a\b c\d'"),
    ],
)
def test_names_that_are_not_structured(name: str) -> None:
    assert not follows_convention(name, "structured")


def test_a_flat_name_holds_anything_but_line_breaks_and_tabs() -> None:
    assert follows_convention("a b-[é", "flat")
    assert not any(follows_convention(f"a{c}b", "flat") for c in "\r\n\t")


@pytest.fixture(scope="module")
def fmpy_accepts() -> Callable[[str], bool]:
    def accepts(name: str) -> bool:
        variable = ModelVariable(name=name, valueReference=0, type="Real")
        description = ModelDescription(variableNamingConvention="structured")
        description.modelVariables = [variable]
        return not validation._validate_variable_names(description)

    return accepts


@given(
    name=st.one_of(
        st.text(alphabet="ab_1.,[]()' ", max_size=6),
        st.lists(
            st.sampled_from(["a", ".", "[1]", "[1,2]", "der(", ")", ",3", "'x y'", "b_2"]),
            max_size=5,
        ).map("".join),
    )
)
def test_fmpy_agrees(name: str, fmpy_accepts: Callable[[str], bool]) -> None:
    assert follows_convention(name, "structured") == fmpy_accepts(name)


def test_a_long_name_that_does_not_fit_takes_no_long_time() -> None:
    for name in ("a" * 100_000 + "-", "a." * 50_000, "'" + "a" * 100_000, "a[" + "1," * 50_000):
        assert not follows_convention(name, "structured")
