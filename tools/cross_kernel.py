"""The kernel for another system: compiled and linked by zig, in one command that takes only what changed."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from fmimaster.kernel.build import FLAGS, HERE, SOURCES, ffibuilder

ZIG = (sys.executable, "-m", "ziglang", "cc")
WINDOWS_CONFIGURATION = Path(__file__).with_name("windows-pyconfig.h")

_LIMITED_API = "-DPy_LIMITED_API=0x030a0000"  # as the tag of the wheels says: cp310-abi3


def build(target: str, work: Path, output: Path, libraries: Sequence[Path] = ()) -> None:
    """Build ``output`` for a target of zig, such as x86_64-windows-gnu; ``work`` keeps what the next build needs.

    Windows needs ``libraries``: python3.dll, to which the linker binds the names of Python."""
    work.mkdir(parents=True, exist_ok=True)
    interface = work / "_kernel.c"
    with contextlib.redirect_stdout(io.StringIO()):
        ffibuilder.emit_c_code(str(interface))
    flags = [flag for flag in FLAGS if flag != "-pthread"]
    sources = [HERE / name for name in SOURCES]
    includes = [f"-I{path}" for path in (_headers(target, work), HERE)]
    command = [*ZIG, "-target", target, "-s", "-shared", *flags, _LIMITED_API, *includes]
    command += [str(path) for path in (interface, *sources, *libraries)]
    # zig puts a library of imports beside what it links: nobody needs it
    made = work / output.name
    subprocess.run([*command, "-o", str(made)], check=True)
    os.replace(shutil.copy(made, output.with_suffix(".new")), output)


def _headers(target: str, work: Path) -> Path:
    """The C headers of this Python, with the sizes of the target: those of Windows differ."""
    own = Path(sysconfig.get_path("include"))
    if "windows" not in target:
        return own
    folder = work / "include"
    if not folder.exists():
        shutil.copytree(own, folder)
        shutil.copy(WINDOWS_CONFIGURATION, folder / "pyconfig.h")
    return folder
