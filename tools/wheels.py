"""The source distribution and the wheel of this machine, as they are published.

    python tools/wheels.py [--output dist]

The wheel must have the kernel in C. On Linux, auditwheel then gives it the tag of the oldest system on which it runs,
such as manylinux_2_34; the older the system on which this is done, the better: an image of manylinux is the usual one.
auditwheel looks at the kernel only. The libraries in the reference FMUs are data to it, because FMUs are archives; so it
is checked here that they need no later C library than the tag says. Needs `pip install -e ".[release]"`.
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_TAG = re.compile(r"-cp310-abi3-(?P<platform>[^-]+)\.whl$")
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_")
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
"""A version of the C library, in the names that a Linux library asks for."""

Version = tuple[int, int]


def main() -> None:
    """Build, repair, check; prints the files."""
    parser = argparse.ArgumentParser(description="Build sdist and wheel; manylinux on Linux.")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="folder, default: dist")
    output = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        call(sys.executable, "-m", "build", "--outdir", folder, str(ROOT))
        (sdist,) = Path(folder).glob("*.tar.gz")
        (wheel,) = Path(folder).glob("*.whl")
        if not _TAG.search(wheel.name):
            raise SystemExit(f"{wheel.name} has no kernel. The build says why, above.")
        if sys.platform == "linux":
            wheel = repaired(wheel, Path(folder, "repaired"))
            check_fmus(wheel)
        for file in (sdist, wheel):
            print(shutil.copy(file, output))


def repaired(wheel: Path, folder: Path) -> Path:
    """The wheel with the tag of the oldest system on which it runs."""
    audit = [sys.executable, "-m", "auditwheel"]
    call(*audit, "show", str(wheel))
    call(*audit, "repair", "--wheel-dir", str(folder), str(wheel))
    (found,) = folder.glob("*.whl")
    return found


def check_fmus(wheel: Path) -> None:
    """Refuse FMUs that need a later C library than the tag of the wheel promises."""
    promised = min((int(a), int(b)) for a, b in _MANYLINUX.findall(wheel.name))
    needed = dict(fmus(wheel))
    if not needed:
        raise SystemExit(f"{wheel.name} has no reference FMUs. The build says why, above.")
    later = [f"{name} needs glibc {a}.{b}" for name, (a, b) in needed.items() if (a, b) > promised]
    if later:
        raise SystemExit(f"{wheel.name} promises less than its FMUs need: {', '.join(later)}.")
    a, b = max(needed.values())
    print(f"{len(needed)} reference FMUs need glibc {a}.{b} at most.")


def fmus(wheel: Path) -> Iterator[tuple[str, Version]]:
    """Name of each FMU in a wheel, and the version of the C library that its binary needs."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".fmu"):
                with zipfile.ZipFile(io.BytesIO(archive.read(name))) as fmu:
                    binaries = [fmu.read(n) for n in fmu.namelist() if n.startswith("binaries/")]
                versions = [v for binary in binaries for v in _GLIBC.findall(binary)]
                yield name, max(((int(a), int(b)) for a, b in versions), default=(0, 0))


def call(*command: str) -> None:
    """Run a command; end with its status if it fails."""
    status = subprocess.run(command).returncode
    if status:
        raise SystemExit(status)


if __name__ == "__main__":
    main()
