"""Build the library of exported systems: the kernel with the functions of FMI around it, without Python.

    python fmus/system_library.py OUTPUT [--targets all | --cc CC] [--werror]

makes OUTPUT/<platform>/fmimaster_system.<suffix>, with the platform as FMI 3.0 names it, and OUTPUT/license.txt. An
exported FMU gets copies of them. Both processors of macOS have the same universal library. Options and exit status are
those of build.py.
"""

from __future__ import annotations

import os
import runpy
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from build import (
    FMI_HEADERS,
    LICENSE,
    LINK_FLAGS,
    NO_COMPILER,
    Compiler,
    CompilerError,
    compilers_of,
    output_of,
    parser,
)
from targets import universal

KERNEL = Path(__file__).resolve().parents[1] / "fmimaster" / "kernel"
NAME = "fmimaster_system"
FLAGS = (
    *("-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections"),
    *("-pthread", "-DNDEBUG"),
    *("-DFMI3_OVERRIDE_FUNCTION_PREFIX", f"-I{FMI_HEADERS}"),
    "-Wno-unused-parameter",  # FMI functions have parameters that most FMUs do not need
)
"""Besides those of the kernel: the same operations give the same bits."""


def main() -> None:
    arguments = parser("Build the library of exported systems.").parse_args()
    compilers = compilers_of(arguments)
    print("Compiling the library of exported systems", flush=True)  # as pip install -v shows
    try:
        libraries = [library(compiler) for compiler in compilers]
    except CompilerError as error:
        print(error, file=sys.stderr)
        raise SystemExit(NO_COMPILER) from None
    for target in (compiler.target for compiler in compilers):
        same = [k for k, other in enumerate(compilers) if other.target.fmi2 == target.fmi2]
        folder = arguments.output / target.name
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{NAME}.unfinished"
        unfinished.write_bytes(universal([libraries[k] for k in same]))
        unfinished.replace(folder / f"{NAME}{target.suffix}")
    shutil.copyfile(LICENSE, arguments.output / "license.txt")


def library(compiler: Compiler) -> bytes:
    """The library, by one compiler."""
    build = runpy.run_path(str(KERNEL / "build.py"))
    flags = [*build["FLAGS"], *FLAGS]
    is_darwin = compiler.target.name.endswith("-darwin")
    unused = "-Wl,-dead_strip" if is_darwin else "-Wl,--gc-sections"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "digest.c").write_text(build["HASH_SOURCE"], encoding="ascii")
        sources = [KERNEL / file for file in (*build["SOURCES"], *build["SYSTEM_SOURCES"])]

        def compiled(source: Path) -> str:
            made = f"{source.stem}.o"
            command = [*compiler.command, *flags, "-c", str(source), "-o", made]
            output_of(command, folder, made)
            return made

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = [*pool.map(compiled, [*sources, folder / "digest.c"])]
        library = NAME + compiler.target.suffix
        link = [*LINK_FLAGS, *compiler.link_flags, unused, "-pthread", *made, "-o", library, "-lm"]
        return output_of([*compiler.command, *link], folder, library)


if __name__ == "__main__":
    main()
