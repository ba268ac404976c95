"""The systems for which binaries are built, and how zig, a C compiler that has what all of them need, is asked for them.

zig is the package `ziglang` of the extra `release`. It brings headers and libraries of the C library of each system, so
that one machine builds for all.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import fmpy


@dataclass(frozen=True)
class Target:
    """A system with a processor."""

    name: str
    """As FMI 3.0 names it, which is the folder of its binaries (section 2.5.1.4.1)."""
    fmi2: str
    """The folder of its binaries in an FMU of FMI 2.0. Version 2.0.4 allows names of FMI 3.0; a folder of two targets
    has one library for both."""
    suffix: str
    """Of shared libraries."""
    zig: str = ""
    """As zig names it, with the oldest version of the C library or of the system that is supported."""
    wheel: str = ""
    """As a wheel names it in its tag, with the same version."""


TARGETS = {
    target.name: target
    for target in (
        Target(
            "x86_64-linux",
            "linux64",
            ".so",
            "x86_64-linux-gnu.2.17",
            "manylinux2014_x86_64.manylinux_2_17_x86_64",
        ),
        Target(
            "aarch64-linux",
            "aarch64-linux",
            ".so",
            "aarch64-linux-gnu.2.17",
            "manylinux2014_aarch64.manylinux_2_17_aarch64",
        ),
        Target("x86_64-windows", "win64", ".dll", "x86_64-windows-gnu", "win_amd64"),
        Target("x86_64-darwin", "darwin64", ".dylib", "x86_64-macos.11.0", "macosx_11_0_x86_64"),
        Target("aarch64-darwin", "darwin64", ".dylib", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    )
}
"""All, by name."""

THIS_MACHINE = Target(fmpy.platform_tuple, fmpy.platform, fmpy.sharedLibraryExtension)
"""The system on which this runs, whose C compiler needs no name of a target."""


def zig(*arguments: str) -> list[str]:
    """A command of zig; ends this command if zig is not installed."""
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        raise SystemExit('zig is not installed. `pip install -e ".[release]"` brings it.')
    return [str(Path(package.origin).with_name("zig")), *arguments]


_PAGE = 14
"""log2 of the alignment in a universal library: the pages of Apple's processors."""


def universal(libraries: Sequence[bytes]) -> bytes:
    """One library of macOS that holds those of several processors; a single one stays as it is.

    Mach-O's fat_header and fat_arch: numbers of four bytes, big-endian, in front of whole libraries.
    """
    if len(libraries) == 1:
        return libraries[0]
    page = 1 << _PAGE
    head = struct.pack(">II", 0xCAFEBABE, len(libraries))
    body = b""
    for library in libraries:
        body += bytes(-len(body) % page)
        processor, kind = struct.unpack_from("<II", library, 4)
        head += struct.pack(">5I", processor, kind, page + len(body), len(library), _PAGE)
        body += library
    return head.ljust(page, b"\0") + body
