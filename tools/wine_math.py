"""What numpy and scipy need and wine 8 lacks: functions of complex numbers in the C library of Windows.

wine ends a process that calls one. A library with these functions, made of those of mingw for long double, passes all
others on to the C library; numpy's and scipy's modules get its name in place of the system's, which is as long.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from targets import TARGETS, zig

SYSTEMS = "api-ms-win-crt-math-l1-1-0"
OURS = "bed-ms-win-crt-math-l1-1-0"

_REAL = ("cabs", "carg", "cimag", "creal")
_COMPLEX = (
    *("cacos", "cacosh", "casin", "casinh", "catan", "catanh", "ccos", "ccosh", "cexp", "clog"),
    *("conj", "cpow", "cproj", "csin", "csinh", "csqrt", "ctan", "ctanh"),
)
_NAMES = Path("lib", "libc", "mingw", "lib-common", f"{SYSTEMS}.def.in")
"""In zig's folder: what Microsoft's library exports."""


def mend(packages: Path, beside: Path, work: Path) -> None:
    """Build the library beside python.exe, and name it in the modules of ``packages`` that need it."""
    work.mkdir(parents=True, exist_ok=True)
    (work / "math.c").write_text(_source(), encoding="utf-8")
    (work / "math.def").write_text(_exports(), encoding="utf-8")
    windows = TARGETS["x86_64-windows"].zig
    command = zig("cc", "-target", windows, "-O2", "-fno-builtin", "-s", "-shared")
    made = work / f"{OURS}.dll"
    subprocess.run([*command, "math.c", "math.def", "-o", made.name], cwd=work, check=True)
    (beside / made.name).write_bytes(made.read_bytes())
    calls = re.compile(rb"\0(%s)f?\0" % "|".join(_REAL + _COMPLEX).encode())
    for package in ("numpy", "scipy"):
        for module in (packages / package).rglob("*.pyd"):
            content = module.read_bytes()
            if calls.search(content):
                module.write_bytes(content.replace(SYSTEMS.encode(), OURS.encode()))


def _source() -> str:
    """Each function for double, float, and long double, which is double for Microsoft's compiler."""
    lines = ["#include <complex.h>"]
    for name in _REAL + _COMPLEX:
        for suffix, real in (("", "double"), ("f", "float"), ("l", "double")):
            result = real if name in _REAL else f"{real} _Complex"
            more, given = (f", {real} _Complex w", "z, w") if name == "cpow" else ("", "z")
            head = f"{result} own_{name}{suffix}({real} _Complex z{more})"
            lines.append(f"{head} {{ return ({result})({name}l({given})); }}")
    return "\n".join(lines) + "\n"


def _exports() -> str:
    """Our functions under the names of the C library, and all others of it."""
    own = [f"{name}{suffix}" for name in _REAL + _COMPLEX for suffix in ("", "f", "l")]
    text = (Path(zig()[0]).parent / _NAMES).read_text(encoding="utf-8")
    others = sorted(set(re.findall(r"^(?:F\w+\()?(\w+)", text, re.MULTILINE)) - set(own))
    others = [name for name in others if name not in ("LIBRARY", "EXPORTS")]
    lines = [f"  {name}=own_{name}" for name in own]
    lines += [f"  {name}=ucrtbase.{name}" for name in others]
    return "\n".join((f"LIBRARY {OURS}.dll", "EXPORTS", *lines)) + "\n"
