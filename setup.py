"""Builds the kernel, and the reference FMUs into the package. All else is in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
NO_COMPILER = 3  # exit status of fmus/build.py


class BuildWithReferenceFMUs(build_py):
    """Build the package and fmimaster/reference; without a C compiler, the package alone."""

    def run(self) -> None:
        super().run()
        root = HERE if self.editable_mode else Path(self.build_lib)
        output = root / "fmimaster" / "reference"
        command = [sys.executable, str(HERE / "fmus" / "build.py"), str(output)]
        status = subprocess.run(command).returncode
        if status == NO_COMPILER:
            self.warn("fmimaster is installed without its reference FMUs.")
        elif status != 0:
            raise SystemExit(status)


class BuildKernelIfPossible(build_ext):
    """Build the kernel; without a C compiler, go on: simulations run on the interpreter in Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        for extension in self.extensions:
            extension.optional = True


setup(
    cffi_modules=["fmimaster/kernel/build.py:ffibuilder"],
    cmdclass={"build_py": BuildWithReferenceFMUs, "build_ext": BuildKernelIfPossible},
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
