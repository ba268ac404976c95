"""Random mutations of the code: does a test notice each?

    python tools/mutate.py fmimaster/steps --number 25 --seed 1
    python tools/mutate.py fmimaster/steps/pid.py fmimaster/loops

    python tools/mutate.py fmimaster/steps --calls FOLDER

Each mutation changes one expression or statement of a module, in a copy of the checkout. First all tests run once, and it
is kept which functions each test file calls (`tools/calls_of_tests.py`; in FOLDER for the next time, if there is one). Then
the files that call the changed function run, quickest first, until one fails. Of code that no followed process calls, as
outside of functions, these are the files that `tools/tests_of.py` lists. A mutation that none of them notices has survived:
it is shown with its place. A survivor is either equivalent, which nothing can notice, or lacks a test.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import NamedTuple

import house
import tests_of as near
from calls_of_tests import Caller, callers

_OTHERS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
"""Operator → those that replace it."""
_LEFT_OUT = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)
"""Messages, and what only checks or imports."""
_SILENT = ("__repr__", "__str__")
_COPIED = ("benchmarks", "conformance", "docs", "fmimaster", "fmus", "tests", "tools")


class Mutation(NamedTuple):
    """One change of a module."""

    path: Path
    source: str
    """The module as it is."""
    node: ast.expr | ast.stmt
    new: str
    """What stands there instead."""

    def text(self) -> str:
        """The mutated module."""
        lines = self.source.encode().splitlines(keepends=True)
        first, last = self.node.lineno - 1, (self.node.end_lineno or 0) - 1
        before = b"".join(lines[:first]) + lines[first][: self.node.col_offset]
        after = lines[last][self.node.end_col_offset :] + b"".join(lines[last + 1 :])
        return (before + self.new.encode() + after).decode()

    def __str__(self) -> str:
        """Its place, and its lines as a difference."""
        first, last = self.node.lineno - 1, self.node.end_lineno or 0
        old, new = self.source.splitlines(), self.text().splitlines()
        lines = [f"-{line}" for line in old[first:last]]
        lines += [f"+{line}" for line in new[first : len(new) - len(old) + last]]
        place = f"{self.path.relative_to(house.ROOT).as_posix()}:{self.node.lineno}"
        return "\n".join((place, *lines))


def mutations(path: Path) -> list[Mutation]:
    """All mutations of a module."""
    source = path.read_text(encoding="utf-8")
    return [Mutation(path, source, *change) for change in _changes(ast.parse(source))]


def function_of(mutation: Mutation) -> str:
    """Qualified name of the innermost function that holds a mutation; empty if it is outside of all."""

    def within(node: ast.AST, name: str, scope: str) -> str:
        for child in ast.iter_child_nodes(node):
            first, last = getattr(child, "lineno", 0), getattr(child, "end_lineno", 0)
            if not first <= mutation.node.lineno <= mutation.node.end_lineno <= last:
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                own = scope + child.name
                return within(child, own, f"{own}.<locals>.")
            if isinstance(child, ast.ClassDef):
                return within(child, name, f"{scope}{child.name}.")
            name = within(child, name, scope)
        return name

    return within(ast.parse(mutation.source), "", "")


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes in a node, and what may replace each."""
    if isinstance(node, _LEFT_OUT) or _is_silent(node):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield from ((node, new) for new in _instead(node))
    if isinstance(node, ast.If | ast.While):
        yield node.test, "False"
        if isinstance(node, ast.If):
            yield node.test, "True"
        if not isinstance(node.test, ast.Compare):  # another comparison stands instead of it
            yield node.test, f"not ({ast.unparse(node.test)})"
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list", "bases"):
            children = value if isinstance(value, list) else [value]
            for child in children:
                if isinstance(child, ast.AST):
                    yield from _changes(child)


def _is_silent(node: ast.AST) -> bool:
    """Whether a node is a text for readers, code for type checkers, or a check as ``strict`` of ``zip`` is one."""
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef) and node.name in _SILENT


def _instead(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Texts that may stand instead of a node."""
    match node:
        case ast.Compare(left, [operator], [right]):
            for other in _OTHERS[type(operator)]:
                yield _text(ast.Compare(left, [other()], [right]))
        case ast.BoolOp(operator, values):
            yield _text(ast.BoolOp(_OTHERS[type(operator)][0](), values))
        case ast.BinOp(left, operator, right) if type(operator) in _OTHERS and not _is_text(left):
            yield _text(ast.BinOp(left, _OTHERS[type(operator)][0](), right))
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield _text(operand)
        case ast.Constant(bool(value)):
            yield str(not value)
        case ast.Constant(int(value) | float(value)):
            yield from (repr(value + 1), f"({value - 1!r})")
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return None"
        case ast.Expr(ast.Call()) | ast.AugAssign():
            yield "pass"
        case ast.IfExp(test, body, orelse):
            yield _text(ast.IfExp(ast.UnaryOp(ast.Not(), test), body, orelse))
            yield _text(body)
            yield _text(orelse)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _text(node: ast.expr) -> str:
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


class Copy:
    """A copy of the checkout in which mutations are tried.

    Parameters
    ----------
    calls : Path
        Folder of the functions that test files call; if it is empty, all tests run.
    seconds : float
        Longest time of the tests for a mutation: test files that take longer with those before them are left out.
    """

    def __init__(self, folder: Path, calls: Path, seconds: float) -> None:
        self._folder, self._seconds = folder, seconds
        for name in _COPIED:
            shutil.copytree(
                house.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for file in house.ROOT.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
        # the copy comes before the installed package, also in the processes that tests start
        paths = f"{folder}{os.pathsep}{folder / 'tools'}"
        self._environment = dict(os.environ, PYTHONPATH=paths, PYTHONDONTWRITEBYTECODE="1")
        if not any(calls.glob("*.json")):
            plugin = ("-p", "calls_of_tests", f"--calls-to={calls}")
            self._run(["-n", "auto", "--dist", "loadfile", *plugin], None)
        self._callers = callers(calls)
        self._seconds_of = {c.file: c.seconds for found in self._callers.values() for c in found}
        quickest = min(self._seconds_of, key=self._seconds_of.__getitem__, default="")
        if not (quickest and self._run([quickest], 60.0)):
            sys.exit("The tests fail without any mutation: run them in the checkout first.")

    def tests(self, mutation: Mutation) -> list[Caller]:
        """The test files for a mutation, in time; the quickest in any case."""
        module = mutation.path.relative_to(house.ROOT / "fmimaster").as_posix()
        found = self._callers.get(f"{module}:{function_of(mutation)}", [])
        if not found:
            files = [
                t.path.relative_to(house.ROOT).as_posix() for t in near.tests_of(mutation.path)
            ]
            found = [Caller(self._seconds_of[f], f) for f in files if f in self._seconds_of]
        total = list(accumulate(caller.seconds for caller in found))
        return found[: max(1, bisect_right(total, self._seconds))]

    def _run(self, arguments: Sequence[str], limit: float | None) -> bool:
        """Whether tests pass within a limit of CPU time in s for each process. One that waits ends too, but later."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        with subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=None if limit is None else partial(_allow, int(limit)),
        ) as process:
            try:
                return process.wait(limit and 2.0 * limit) == 0
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return False

    def survives(self, mutation: Mutation) -> bool | None:
        """Whether no test notices a mutation; None if there is none near the function either."""
        tests = self.tests(mutation)
        if not tests:
            return None
        place = self._folder / mutation.path.relative_to(house.ROOT)
        place.write_text(mutation.text(), encoding="utf-8", newline="\n")
        try:
            limit = 3.0 * sum(test.seconds for test in tests) + 20.0
            return self._run(["-x", *(test.file for test in tests)], limit)
        finally:
            place.write_text(mutation.source, encoding="utf-8", newline="\n")


def _allow(seconds: int) -> None:
    """Limit the CPU time of this process and of those that it starts, of each."""
    import resource  # not there on Windows

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutations; returns how many have survived."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("places", nargs="+", type=Path, help="folders and modules of the package")
    parser.add_argument("--number", type=int, default=25, help="mutations to try")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the tests of a mutation")
    parser.add_argument("--calls", type=Path, help="folder that keeps what each test file calls")
    options = parser.parse_args(arguments)
    paths = [
        p for place in options.places for p in (place.rglob("*.py") if place.is_dir() else [place])
    ]
    every = [m for path in sorted(paths) for m in mutations(path.resolve())]
    chosen = Random(options.seed).sample(every, min(options.number, len(every)))
    counts = {True: 0, False: 0, None: 0}
    with tempfile.TemporaryDirectory() as folder:
        calls = options.calls or Path(folder) / "calls"
        calls.mkdir(exist_ok=True)
        copy = Copy(Path(folder) / "copy", calls.absolute(), options.seconds)
        for mutation in sorted(chosen, key=lambda m: (m.path, m.node.lineno)):
            survives = copy.survives(mutation)
            counts[survives] += 1
            if survives is not False:
                print("SURVIVED" if survives else "NO TESTS", mutation, flush=True)
    n = counts[True]
    print(
        f"{n} of {len(chosen)} mutations survived ({100 * n / len(chosen):.0f} %), {counts[None]} without tests"
    )
    return n


if __name__ == "__main__":
    sys.exit(min(main(), 1))
