"""Whether sdist and wheel can be installed and used, in fresh environments of several Pythons.

    python tools/try_installs.py [dist/*] [--python python3.10 ...] [--extra all] [--oldest] [--compiler false]

Without files, those of this system in dist/ are tried, which tools/wheels.py makes; without --python, all of Python
3.10 to 3.13 that are on PATH. Each environment is new and is deleted. In it, `fmimaster` simulates reference FMUs with
the kernel in C and with the interpreter in Python, whose results must be equal in every bit, and near the exact
solution.

--oldest            with the oldest versions of all dependencies that pyproject.toml permits
--compiler COMMAND  is CC for an sdist; with one that fails, such as `false`, fmimaster must do without its kernel
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.tags import platform_tags
from packaging.utils import parse_wheel_filename

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = tuple(f"python3.{minor}" for minor in range(10, 14))

_BOUND = re.compile(r"[\"']([\w.-]+)>=([\w.]+)")
_SHOWN = ("numpy", "scipy", "lxml", "fmpy", "cffi", "matplotlib")
"""Packages whose versions are shown."""

_WITH_KERNEL = """
import math, subprocess, sys
from importlib.util import find_spec
from fmimaster import OptionError, reference_path, simulate
from fmimaster.run import Backend
fmu = reference_path("fmi3/Dahlquist.fmu")
runs = [simulate(fmu, stop_time=1, step_size=0.01, backend=b) for b in (Backend.NATIVE, Backend.REFERENCE)]
assert runs[0]["x"].tobytes() == runs[1]["x"].tobytes()
assert math.isclose(runs[0]["x"][-1], math.exp(-1), rel_tol=0.01), runs[0]["x"][-1]
system = reference_path("systems/two-mass-b1-mixed.ssp")
assert simulate(system, stop_time=0.1, step_size=0.01).rows > 10
command = [sys.executable, "-m", "fmimaster", "simulate", str(fmu), "--output-file", "x.csv"]
subprocess.run([*command, *(["--plot", "x.png"] if find_spec("matplotlib") else [])], check=True)
"""
_WITHOUT_KERNEL = """
from fmimaster import (
    FileError,
    OptionError,
    PythonComponent,
    SystemBuilder,
    reference_path,
    simulate,
)
from fmimaster.run import Backend
def step(component, t, h):
    component.y = component.u
builder = SystemBuilder("pair")
for name in "ab":
    builder.add(name, PythonComponent(inputs={"u": 1.0}, outputs={"y": 0.0}, step=step))
builder.connect("a.y", "b.u")
results = simulate(builder.build(), stop_time=1, step_size=0.1)
assert results.rows == 11 and results["b.y"][-1] == 1.0
for call in (lambda: reference_path("fmi3/Dahlquist.fmu"),
             lambda: simulate(builder.build(), stop_time=1, step_size=0.1, backend=Backend.NATIVE)):
    try:
        call()
    except (FileError, OptionError) as error:
        print(error)
    else:
        raise AssertionError("there is a kernel, or there are reference FMUs")
"""


@dataclass(frozen=True)
class Trial:
    """One installation: by which Python, of what, how."""

    python: str
    file: Path
    extras: Sequence[str] = ()
    oldest: bool = False
    compiler: str | None = None

    @property
    def has_kernel(self) -> bool:
        """Whether the kernel must be there."""
        return self.file.suffix == ".whl" or not self.compiler or works(self.compiler)

    @property
    def how(self) -> str:
        """Its options, for a line of the table."""
        words = [*self.extras, *["oldest"] * self.oldest]
        words += [f"CC={self.compiler}"] if self.compiler else []
        return " ".join(words)

    def run(self) -> str:
        """Install and use it; returns the versions of what it uses."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self._do(folder, self.python, "-m", "venv", "env")
            python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
            pip = (python, "-m", "pip", "--disable-pip-version-check")
            what = (
                f"{self.file.resolve()}{'[' + ','.join(self.extras) + ']' if self.extras else ''}"
            )
            options = ["--quiet", "--prefer-binary"]
            if self.oldest:
                bounds = folder / "oldest.txt"
                bounds.write_text(
                    "".join(f"{n}=={v}\n" for n, v in oldest()), encoding="utf-8", newline="\n"
                )
                options += ["--constraint", str(bounds)]
            self._do(folder, *pip, "install", *options, what)
            self._do(folder, *pip, "check")
            script = _WITH_KERNEL if self.has_kernel else _WITHOUT_KERNEL
            self._do(folder, python, "-c", script)
            self._do(folder, python, "-m", "fmimaster", "--version")
            return versions(self._do(folder, *pip, "list", "--format", "freeze"))

    def _do(self, folder: Path, *command: str) -> str:
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
        env |= {"CC": self.compiler} if self.compiler else {}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8")
        if done.returncode:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise TrialError(f"{' '.join(command)[:300]}\n{end}")
        return done.stdout


class TrialError(Exception):
    """A command has failed; the message has the end of what it printed."""


def main() -> int:
    """Try all; the exit status is 1 if one has failed."""
    parser = argparse.ArgumentParser(description="Try sdist and wheel in fresh environments.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--python", action="append", help="default: those on PATH")
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--oldest", action="store_true")
    parser.add_argument("--compiler", metavar="COMMAND")
    given = parser.parse_args()
    files = given.files or [
        f for f in sorted((ROOT / "dist").glob("fmimaster-*")) if is_for_here(f)
    ]
    if not files:
        raise SystemExit("There is nothing in dist/. Run tools/wheels.py, or name files.")
    failed = 0
    for python in given.python or pythons():
        for file in files:
            trial = Trial(python, file, given.extra, given.oldest, given.compiler)
            begin = time.monotonic()
            try:
                told = trial.run()
            except TrialError as error:
                told, failed = f"FAILED: {error}", failed + 1
            seconds = time.monotonic() - begin
            print(f"{python:12}{file.name:58}{trial.how}{seconds:5.0f} s  {told}", flush=True)
    return int(failed > 0)


def is_for_here(file: Path) -> bool:
    """Whether this is an sdist, or a wheel of this system."""
    if file.suffix != ".whl":
        return True
    of_wheel = {tag.platform for tag in parse_wheel_filename(file.name)[3]}
    return bool(of_wheel & {*platform_tags(), "any"})


def pythons() -> Iterator[str]:
    """Commands of the supported Pythons on PATH that start; the others are named."""
    for command in PYTHONS:
        if works(f"{command} --version"):
            yield command
        else:
            print(f"{command:12}left out: not found, or it does not start", flush=True)


def works(command: str) -> bool:
    """Whether a command is there and succeeds; a C compiler is asked for its version."""
    words = command.split()
    words += ["--version"] if len(words) == 1 else []
    return (
        bool(shutil.which(words[0])) and not subprocess.run(words, capture_output=True).returncode
    )


def oldest() -> list[tuple[str, str]]:
    """Name and version of the oldest dependencies and extras, without what only development needs."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    used = text[text.index("\ndependencies = [") : text.index("\ntest = [")]
    return _BOUND.findall(used)


def versions(frozen: str) -> str:
    """Versions of the most important packages, in a line."""
    found = dict(line.lower().split("==", 1) for line in frozen.splitlines() if "==" in line)
    return ", ".join(f"{name} {found[name]}" for name in _SHOWN if name in found)


if __name__ == "__main__":
    sys.exit(main())
