"""The tools that try mutations, and that find the tests of a module."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import calls_of_tests  # type: ignore[import-not-found]
import pytest
import tests_of as near  # type: ignore[import-not-found]
from mutate import function_of, mutations  # type: ignore[import-not-found]


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


def test_a_mutation_is_in_the_innermost_function(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        """
a = 1
class A:
    b = 2
    def f(self, c=3):
        if self:
            def g():
                return 4
        return 5
""",
        encoding="utf-8",
    )
    found = {m.node.lineno: function_of(m) for m in mutations(path)}
    assert found == {2: "", 4: "", 5: "A.f", 6: "A.f", 8: "A.f.<locals>.g", 9: "A.f"}


_TESTS = {
    "test_calls.py": """
import subprocess, sys
from fmimaster.base.text import count

def test_here():
    assert count(2, "row") == "2 rows"

def test_in_another_process():
    code = "from fmimaster.base.text import named; print(named('ab'))"
    subprocess.run([sys.executable, "-c", code], check=True)
""",
    "test_that_fails.py": """
from fmimaster.base.text import count

def test_fails():
    assert count(1, "row") == "1 rows"
""",
}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no qualified names before 3.11")
def test_calls_are_followed_into_processes_and_not_in_tests_that_fail(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    for name, text in _TESTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error", encoding="utf-8")
    tools = Path(calls_of_tests.__file__).parent
    command = ["-m", "pytest", "-n", "1", "-p", "calls_of_tests", "--calls-to=calls"]
    environment = dict(os.environ, PYTHONPATH=str(tools))
    run = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, check=False)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    found = calls_of_tests.callers(tmp_path / "calls")
    for function in ("count", "named"):
        assert [c.file for c in found[f"base/text.py:{function}"]] == ["test_calls.py"]


def test_the_nearest_test_file_is_the_one_of_the_module() -> None:
    found = [
        (touch.path.relative_to(near.TESTS).as_posix(), near.REASONS[touch.reason])
        for touch in near.tests_of(near.module_at("fmimaster/steps/pid.py"))
    ]
    assert found[0] == ("unit/test_pid.py", "has its name")
    assert ("unit/test_pid_in_c.py", "imports it") in found
    assert ("cli/test_step_rules.py", "imports it") in found
