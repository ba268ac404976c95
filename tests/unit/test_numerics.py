"""The numbers of fmimaster/numerics, and their translation to C."""

from __future__ import annotations

import ast
import sys

import pytest
import translate_numerics as tool  # type: ignore[import-not-found]


def translated(code: str) -> str:
    (node,) = ast.parse(code).body
    text: str = tool.Function(node, {"ULPS": 4.0}, {}).text
    return text


def test_the_c_of_the_kernel_is_the_translation() -> None:
    written = tool.HEADER.read_text(encoding="utf-8")
    assert written == tool.translation(), f"run {sys.executable} tools/translate_numerics.py"


def test_every_module_is_translated() -> None:
    modules = {path.stem for path in (tool.PACKAGE / "numerics").glob("*.py")}
    assert modules == {"__init__", *tool.MODULES}


def test_operations_keep_their_order() -> None:
    code = 'def f(a: float, b: float) -> float:\n    ""\n    return a - (b - a) - b * (a + b) / -(a * b)'
    assert "return a - (b - a) - b * (a + b) / -(a * b);" in translated(code)


def test_conditions_in_conditions_get_parentheses() -> None:
    code = 'def f(a: int, b: int) -> bool:\n    ""\n    return a > 0 and (b > 0 or not (a == b))'
    assert "return a > 0 && (b > 0 || !(a == b));" in translated(code)


def test_an_array_that_is_not_written_is_constant() -> None:
    code = 'def f(a: Doubles, b: Doubles) -> None:\n    ""\n    a[0] = ULPS * b[0]'
    assert "static inline void fm_f(double *a, const double *b)" in translated(code)


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("return n / 2", "divides integers"),
        ("return n // 2", "is not in the part"),
        ("return n % 2", "is not in the part"),
        ("return 0 < n < 2", "is not in the part"),
        ("return n**2.0", "is not in the part"),
        ("return abs(n)", "is not in the part"),
        ("return max(n, 2)", "is not in the part"),
        ("return print(n)", "is not in the part"),
        ("return a[:n]", "is not in the part"),
        ("return [n]", "is not in the part"),
        ("n = 1.5", "is a float"),
        ("n += 0.5", "is a float"),
        ("a[0], a[1] = 1.0, 2.0", "is not in the part"),
        ("for i in range(0, n, 2): a[i] = 0.0", "is not in the part"),
        ("for i in range(n): n = 2", "changes what its range depends on"),
        ("for x in a: n = 2", "is not in the part"),
        ("raise ValueError", "is not in the part"),
        ("ULPS = 1.0", "is not in the part"),
    ],
)
def test_what_c_would_compute_in_another_way_is_refused(statement: str, why: str) -> None:
    with pytest.raises(SyntaxError, match=why):
        translated(f'def f(n: int, a: Doubles) -> float:\n    ""\n    {statement}')
