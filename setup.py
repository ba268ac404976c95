"""Builds the reference FMUs into the package. All else is in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
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


class PlatformDistribution(Distribution):
    """The FMUs are binaries of one platform."""

    def has_ext_modules(self) -> bool:
        return True


class PlatformWheel(bdist_wheel):
    """A wheel of one platform, for any Python 3: there is no extension module in it."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    distclass=PlatformDistribution,
    cmdclass={"build_py": BuildWithReferenceFMUs, "bdist_wheel": PlatformWheel},
)
