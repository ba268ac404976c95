"""The platform of this process: the names of the folders with its binaries in FMUs."""

from __future__ import annotations

import sys
from platform import machine

_SYSTEMS = {
    "win32": ("win", "windows", ".dll"),
    "linux": ("linux", "linux", ".so"),
    "darwin": ("darwin", "darwin", ".dylib"),
}
"""System → its name in FMI 2.0 and in FMI 3.0, and the suffix of shared libraries."""

_ARM = {"aarch64", "arm64"}

_old_name, _name, SUFFIX = _SYSTEMS.get(sys.platform, (sys.platform, sys.platform, ".so"))
_is_64 = sys.maxsize > 2**32

FMI2 = f"{_old_name}{64 if _is_64 else 32}"
"""For example ``linux64``. Source: FMI 2.0.4, section 2.3."""

FMI3 = f"{'aarch64' if machine().lower() in _ARM else 'x86_64' if _is_64 else 'x86'}-{_name}"
"""For example ``x86_64-linux``. Source: FMI 3.0, section 2.5.1.4.1."""
