"""The kernel for another system: compiled and linked by zig, in one command that takes only what changed."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from abi3info import DATAS, FUNCTIONS

from fmimaster.kernel.build import FLAGS, HERE, SOURCES, ffibuilder

sys.path.append(str(Path(__file__).resolve().parents[1] / "fmus"))
from targets import TARGETS as TARGETS
from targets import Target, zig

CONFIGURATION = Path(__file__).with_name("pyconfig.h")

_LIMITED_API = "-DPy_LIMITED_API=0x030a0000"  # as the tag of the wheels says: cp310-abi3
_OLDEST = (3, 10)

FUNCTIONS_OF_PYTHON, DATA_OF_PYTHON = (
    {
        symbol.name
        for symbol, thing in things.items()
        if tuple(vars(thing.added).values()) <= _OLDEST
    }
    for things in (FUNCTIONS, DATAS)
)
"""Names of the stable ABI that every supported Python has."""


def build(target: Target, work: Path, output: Path) -> None:
    """Build ``output`` for a system; ``work`` keeps what the next build needs."""
    work.mkdir(parents=True, exist_ok=True)
    interface = work / "_kernel.c"
    with contextlib.redirect_stdout(io.StringIO()):
        ffibuilder.emit_c_code(str(interface))
    sources = [str(interface), *(str(HERE / name) for name in SOURCES)]
    flags = [flag for flag in FLAGS if flag != "-pthread"]
    flags += [_LIMITED_API, "-fvisibility=hidden", f"-I{_headers(work)}", f"-I{HERE}"]
    command = zig("cc", "-target", target.zig, "-s", "-shared", *flags, *sources)
    command += [*_python(target, work), "-o", output.name]
    # In its own folder: macOS keeps the name as it is given; for Windows zig makes a library of imports beside it.
    subprocess.run(command, cwd=work, check=True)
    os.replace(shutil.copy(work / output.name, output.with_suffix(".new")), output)


def _headers(work: Path) -> Path:
    """The C headers of this Python, with the sizes of the other systems."""
    folder = work / "include"
    if not folder.exists():
        shutil.copytree(sysconfig.get_path("include"), folder)
    shutil.copy(CONFIGURATION, folder / "pyconfig.h")
    return folder


def _python(target: Target, work: Path) -> list[str]:
    """What the linker needs to know of Python: nothing is linked that brings one."""
    if target.name.endswith("-darwin"):
        return ["-Wl,-undefined,dynamic_lookup"]
    if target.name.endswith("-linux"):
        return ["-lpthread", "-lm"]
    names = work / "python3.def"
    data = [f"{name} DATA" for name in sorted(DATA_OF_PYTHON)]
    lines = ["LIBRARY python3.dll", "EXPORTS", *sorted(FUNCTIONS_OF_PYTHON), *data]
    names.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    library = work / "libpython3.a"
    machine = ("-m", "i386:x86-64")
    subprocess.run(zig("dlltool", *machine, "-d", str(names), "-l", str(library)), check=True)
    return [str(library)]
