"""The tools that try mutations, and that find the tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest
import tests_of as near  # type: ignore[import-not-found]
from mutate import mutations  # type: ignore[import-not-found]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("x = a < b", {"x = (a <= b)", "x = (a >= b)"}),
        ("x = a in b", {"x = (a not in b)"}),
        ("x = a and b", {"x = (a or b)"}),
        ("x = not a", {"x = (a)"}),
        ("x = a * b", {"x = (a / b)"}),
        ("x = 2", {"x = 3", "x = (1)"}),
        ("x = f(y=True)", {"x = f(y=False)"}),
        ("del x[a:1]", {"del x[a:2]", "del x[a:(0)]"}),
        ("f(a)", {"pass"}),
        ("x += a", {"pass"}),
        ("if a: b", {"if True: b", "if False: b", "if not (a): b"}),
        ("while a: b", {"while False: b", "while not (a): b"}),
        ("def f(a=True): return a", {"def f(a=True): return None", "def f(a=False): return a"}),
        ("x = 'ö' if a else b", {"x = ('ö' if not a else b)", "x = ('ö')", "x = (b)"}),
    ],
    ids=lambda given: given if isinstance(given, str) else "",  # sets have no order
)
def test_what_stands_instead_of_a_line(line: str, expected: set[str], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"# ä\n{line}\n", encoding="utf-8")
    assert {m.text() for m in mutations(path)} == {f"# ä\n{new}\n" for new in expected}


@pytest.mark.parametrize(
    "line",
    [
        '"""A text."""',
        "import a",
        "from a import b",
        "x: list[1]",
        "def f(x: 1) -> 2: ...",
        "raise ValueError(1 + 2)",
        "assert a < b",
        'x = f"{1 + 2}"',
        "def __repr__(self): return a < b",
        "if TYPE_CHECKING: f()",
        "x = zip(a, b, strict=True)",
    ],
)
def test_messages_types_and_imports_stay(line: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"{line}\n", encoding="utf-8")
    assert mutations(path) == []


def test_a_mutation_is_shown_with_its_place() -> None:
    path = near.module_at("fmimaster.run.choice")
    [shown] = [str(m) for m in mutations(path) if "is not Backend.REFERENCE" in m.new]
    place, old, new = shown.splitlines()
    assert place.startswith("fmimaster/run/choice.py:")
    assert old.removeprefix("-") in path.read_text(encoding="utf-8").splitlines()
    assert new == "+    if (backend is not Backend.REFERENCE):"


def test_the_nearest_test_file_is_the_one_of_the_module() -> None:
    found = [
        (touch.path.relative_to(near.TESTS).as_posix(), near.REASONS[touch.reason])
        for touch in near.tests_of(near.module_at("fmimaster/steps/pid.py"))
    ]
    assert found[0] == ("unit/test_pid.py", "has its name")
    assert ("unit/test_pid_in_c.py", "imports it") in found
    assert ("cli/test_step_rules.py", "imports it") in found
