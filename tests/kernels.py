"""The kernel built in other ways than it is shipped, in a moment: by the C compiler alone, into a library of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import fmimaster
from fmimaster.kernel.build import FLAGS, SOURCES, ffibuilder

PACKAGE = Path(fmimaster.__file__).parent
FOLDER = PACKAGE / "kernel"
TESTS = Path(__file__).parent

SERVER = """
import gc, importlib.util, json, os, sys, traceback
import hypothesis, pytest
from fmimaster.base.public_names import rooms

for room in rooms("fmimaster"):
    exec(f"from {room} import *")

BROKEN = 70  # no status of pytest
NAME = "fmimaster.kernel._kernel"
assert NAME not in sys.modules

def tests_on(kernel, arguments, output):
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT, 0o600), 1)
    os.dup2(1, 2)
    specification = importlib.util.spec_from_file_location(NAME, kernel)
    sys.modules[NAME] = module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return pytest.main(arguments)

gc.freeze()  # what is imported stays; each child would search it for garbage
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            status = tests_on(**json.loads(line))
        except BaseException:
            traceback.print_exc()
            status = BROKEN
        sys.stdout.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports all of the package but its kernel once. For each request it forks a process that takes another kernel and runs
tests on it."""


@dataclass(frozen=True)
class Run:
    """Exit status of pytest, negative after a signal; and what it printed."""

    status: int
    output: str


class TestServer:
    """A process that runs tests on other kernels. Importing all anew for each kernel would take longer than the tests."""

    __test__ = False  # of pytest

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        inherited = {k: v for k, v in os.environ.items() if k != "PYTEST_ADDOPTS"}
        inherited |= {"PYTHONPATH": str(PACKAGE.parent), "OPENBLAS_NUM_THREADS": "1"}
        inherited |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            cwd=TESTS.parent,
            env=inherited | dict(environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, kernel: Path, *arguments: str) -> Run:
        """Run tests on this kernel; the first failure ends them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        output = kernel.with_name("output")
        # that a test fails is enough: the difference of two long runs takes longer to explain than to find
        options = ["-q", "-x", "-p", "no:cacheprovider", "--assert=plain"]
        request = {
            "kernel": str(kernel),
            "arguments": [*options, *arguments],
            "output": str(output),
        }
        print(json.dumps(request), file=self._process.stdin, flush=True)
        status = self._process.stdout.readline()
        return Run(int(status), output.read_text(encoding="utf-8"))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compiler() -> str:
    """The C compiler; the test is skipped if there is none."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if found is None:
        pytest.skip("no C compiler")
    return found


@dataclass(frozen=True)
class Build:
    """Object files of all sources of the kernel, compiled with the same flags.

    Attributes
    ----------
    folder : Path
        Where they are.
    flags : tuple of str
        Flags beside those of the package; they come last.
    """

    folder: Path
    flags: tuple[str, ...]

    def compile(self, source: Path, target: Path) -> Path:
        """Compile one file; includes are found beside the sources of the package."""
        include = [f"-I{FOLDER}", f"-I{sysconfig.get_path('include')}"]
        checked = (
            [*FLAGS, "-Werror"] if source.name in SOURCES else ["-pthread"]
        )  # not what cffi generates
        command = [compiler(), *checked, *self.flags, "-fPIC", *include]
        subprocess.run([*command, "-c", str(source), "-o", str(target)], check=True)
        return target

    def link(self, target: Path, instead: Mapping[str, Path] | None = None) -> Path:
        """Link all objects, some of them replaced by others, into a kernel that :class:`TestServer` takes."""
        names = ("_kernel.c", *SOURCES)
        objects = [(instead or {}).get(name, self.object_of(name)) for name in names]
        command = [compiler(), "-shared", "-pthread", *self.flags, "-o", str(target)]
        subprocess.run([*command, *map(str, objects)], check=True)
        return target

    def object_of(self, name: str) -> Path:
        """The object file of a source."""
        return (self.folder / name).with_suffix(".o")

    def with_text_replaced(self, folder: Path, text: str, other: str) -> Path:
        """A kernel in which a text that stands in exactly one place of all sources is another."""
        name, changed = replaced(text, other)
        (folder / name).write_text(changed, encoding="utf-8")
        including = [s for s in SOURCES if f'"{name}"' in (FOLDER / s).read_text(encoding="utf-8")]
        for source in including:  # it includes the header beside it
            shutil.copy(FOLDER / source, folder)
        sources = [folder / source for source in including or [name]]
        objects = {s.name: self.compile(s, s.with_suffix(".o")) for s in sources}
        return self.link(folder / "_kernel.so", objects)


def build(folder: Path, *flags: str) -> Build:
    """Compile all sources of the kernel, and what cffi generates."""
    made = Build(folder, flags)
    generated = folder / "_kernel.c"
    ffibuilder.emit_c_code(str(generated))
    for source in (generated, *(FOLDER / name for name in SOURCES)):
        made.compile(source, made.object_of(source.name))
    return made


def replaced(text: str, other: str) -> tuple[str, str]:
    """Name of the source in which a text stands, and that source with another in its place.

    White space counts as one blank, so that lines may be broken in other places.
    """
    pattern = r"\s+".join(map(re.escape, text.split()))
    names = (*SOURCES, "numerics.h", "calls.h")
    found = {name: (FOLDER / name).read_text(encoding="utf-8") for name in names}
    counts = {name: len(re.findall(pattern, source)) for name, source in found.items()}
    places = {name: count for name, count in counts.items() if count}
    assert sum(places.values()) == 1, f"{text!r} stands in {places or 'no source'}"
    (name,) = places
    return name, re.sub(pattern, lambda _: other, found[name])
