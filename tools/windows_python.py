"""A Windows Python under wine, with packages, the kernel and reference FMUs for Windows: made once, kept in a folder.

Packages come by their names and hashes from where pip is set up to look; zig compiles.
"""

from __future__ import annotations

import hashlib
import os
import select
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import cross_kernel
import wine_math
from targets import TARGETS, THIS_MACHINE, zig

ROOT = Path(__file__).resolve().parents[1]
PYTHON = Path(__file__).with_name("windows-python.txt")
COMPILER = Path(__file__).with_name("wine_cc.c")
PACKAGES = Path(__file__).with_name("windows-packages.txt")

_WINDOWS = "x86_64-windows"
_PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
_PINNED = ("--no-deps", "--no-compile", "--require-hashes")
_FOR_WINDOWS = ("--platform=win_amd64", "--python-version=3.13", "--only-binary=:all:")
_NO_WINE = (
    "wine is missing, or its part for 64-bit programs. It stands in for Windows here.\n"
    "On Debian and Ubuntu: apt-get install wine64 wine"
)

_WITHOUT_COPYFILE2 = "import _winapi; _winapi.__dict__.pop('CopyFile2', None)\n"
"""wine 8 ends a process that calls it. Without it, shutil copies files itself."""


class MissingError(Exception):
    """Something that must be installed is not there; the message says how to get it."""


@dataclass(frozen=True)
class WindowsPython:
    """All of it in a folder. Call :meth:`prepare` before anything else."""

    folder: Path

    @property
    def executable(self) -> Path:
        """python.exe."""
        return self.folder / "python" / "python.exe"

    @property
    def environment(self) -> dict[str, str]:
        """Variables for wine and for Python, which imports the package from this checkout.

        Compiled modules are kept apart: those of tests name files as the system does that compiled them.
        """
        kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return os.environ | {
            "ZIG_GLOBAL_CACHE_DIR": str(kept / "zig"),  # for the zig of Linux
            "WINEPREFIX": str(self.folder / "prefix"),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            # else wine asks to install .NET and a browser, and starts a debugger when Python crashes
            "WINEDLLOVERRIDES": "mscoree,mshtml,winedbg.exe=",
            "PYTHONPATH": windows_path(ROOT),
            "PYTHONPYCACHEPREFIX": windows_path(self.folder / "compiled"),
            # else each of thousands of processes compiles all that it imports
            "PYTHONDONTWRITEBYTECODE": "",
            "WINEPATH": windows_path(self.folder / "commands"),
            "CC_OF_MACHINE": shlex.join(_compiler()),
        }

    def prepare(self) -> None:
        """Make what is missing or out of date."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._make_prefix()
        home = self.executable.parent
        if self._install("Python for Windows", PYTHON, home):
            # It asks for the version of Windows in a way that wine lacks. Without it, Python asks in another way.
            (home / "_wmi.pyd").unlink()
            # This file would make Python ignore PYTHONPATH and site-packages.
            (home / "python313._pth").unlink()
            with zipfile.ZipFile(home / "python313.zip") as library:
                library.extractall(home / "Lib")
            (home / "python313.zip").unlink()
        packages = home / "Lib" / "site-packages"
        if self._install("Packages for it", PACKAGES, packages, *_FOR_WINDOWS):
            wine_math.mend(packages, home, self.folder / "math")
            (packages / "wine.pth").write_text(_WITHOUT_COPYFILE2, encoding="utf-8")
        _say("The kernel for Windows, and a compiler for tests")
        commands = self.folder / "commands"
        commands.mkdir(exist_ok=True)
        # not in the folder of the checkout, where zig would find its C library by another path, and compile it once more
        _call(*_compiler(), "-O2", "-s", str(COMPILER), "-o", "cc.exe", folder=commands)
        kernel = ROOT / "fmimaster" / "kernel" / "_kernel.pyd"
        cross_kernel.build(TARGETS[_WINDOWS], self.folder / "kernel", kernel)
        command = [sys.executable, "fmus/system_library.py", str(kernel.with_name("system"))]
        _call(*command, "--werror", "--targets", _WINDOWS)
        self._build_fmus()

    def run(self, arguments: Sequence[str]) -> int:
        """Show what Python prints with these arguments; returns its exit status. Nothing that it started lives on."""
        try:
            return copy(self.begun(arguments), sys.stdout.buffer)
        finally:
            self.end()

    def begun(
        self, arguments: Sequence[str], variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Python with these arguments, and what it prints.

        It prints to a pipe, because Python would end at once if that were a file: wine 8 has no handle for it.
        """
        return subprocess.Popen(
            ["wine", str(self.executable), *arguments],
            cwd=ROOT,
            env=self.environment | (variables or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def end(self) -> None:
        """End all that runs under wine for this folder."""
        self._wineserver("--kill")

    def _make_prefix(self) -> None:
        """The folder that wine takes for a Windows of 64 bits."""
        if not shutil.which("wine"):
            raise MissingError(_NO_WINE)
        registry = self.folder / "prefix" / "system.reg"
        if registry.exists():
            return
        _say("A folder for wine")
        command = ("wine", "wineboot", "--init")
        begun = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self._wineserver("--wait")  # it writes the registry when it ends
        if (
            begun.returncode
            or not registry.exists()
            or "#arch=win64" not in registry.read_text(encoding="utf-8")
        ):
            shutil.rmtree(self.folder / "prefix", ignore_errors=True)
            raise MissingError(f"{begun.stderr}\n{_NO_WINE}")

    def _wineserver(self, option: str) -> None:
        subprocess.run(["wineserver", option], env=self.environment, check=False)

    def _install(self, what: str, pinned: Path, folder: Path, *options: str) -> bool:
        """Install what a file lists into a new folder; False if the folder has it."""
        done = folder / pinned.name
        if done.exists() and done.read_bytes() == pinned.read_bytes():
            return False
        _say(what)
        shutil.rmtree(folder, ignore_errors=True)
        _call(*_PIP, "install", *_PINNED, *options, "--target", str(folder), "-r", str(pinned))
        shutil.copy(pinned, done)
        return True

    def _build_fmus(self) -> None:
        """The reference FMUs of the checkout, with binaries for this machine and for Windows.

        They are kept, because zig takes minutes, and `make` builds those for this machine alone."""
        folder = self.folder / "reference"
        digest = hashlib.sha256()
        for source in sorted((ROOT / "fmus").rglob("*.*")):
            if source.is_file() and source.suffix != ".pyc":
                digest.update(source.read_bytes())
        done = self.folder / "reference.sha256"
        if not done.exists() or done.read_text(encoding="utf-8") != digest.hexdigest():
            _say("The reference FMUs, with binaries for Windows")
            targets = (THIS_MACHINE.name, _WINDOWS)
            _call(sys.executable, "fmus/build.py", str(folder), "--werror", "--targets", *targets)
            done.write_text(digest.hexdigest(), encoding="utf-8")
        shutil.copytree(folder, ROOT / "fmimaster" / "reference", dirs_exist_ok=True)


def copy(process: subprocess.Popen[bytes], to: BinaryIO) -> int:
    """Write what a process prints, as it comes; returns its exit status. What it leaves running may keep the pipe."""
    assert process.stdout is not None
    while True:
        if select.select([process.stdout], [], [], 1.0)[0]:
            if not (text := os.read(process.stdout.fileno(), 65536)):
                break
            to.write(text)
            to.flush()
        elif process.poll() is not None:
            break
    return process.wait()


def windows_path(path: Path) -> str:
    """An absolute path as Windows programs under wine name it."""
    return f"Z:{path}".replace("/", "\\")


def _compiler() -> list[str]:
    """zig as a C compiler for Windows."""
    return zig("cc", "-target", TARGETS[_WINDOWS].zig)


def _say(what: str) -> None:
    print(f"{what} …", flush=True)


def _call(*command: str, folder: Path = ROOT) -> None:
    """Run a command; end with its status if it fails."""
    status = subprocess.run(command, cwd=folder).returncode
    if status:
        raise SystemExit(status)
