"""Builds the kernel, the library of exported systems, and the reference FMUs into the package. All else is in
pyproject.toml.

Both need a C compiler. Without one, or with one that fails, the package is built without them; the wheel's tag says
what it has: `cp310-abi3-PLATFORM` with the kernel, `py3-none-PLATFORM` with the reference FMUs alone, which hold
binaries, `py3-none-any` with neither.
"""

import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
NO_COMPILER = 3  # exit status of fmus/build.py and fmus/system_library.py


class BuildWithBinaries(build_py):
    """Build the package, fmimaster/kernel/system and fmimaster/reference; without a C compiler that works, the package
    alone."""

    def run(self) -> None:
        super().run()
        self._compile("system_library.py", "kernel/system", "the library of exported systems")
        self._compile("build.py", "reference", "its reference FMUs")

    def _compile(self, script: str, output: str, what: str) -> None:
        root = HERE if self.editable_mode else Path(self.build_lib)
        command = [sys.executable, str(HERE / "fmus" / script), str(root / "fmimaster" / output)]
        status = subprocess.run(command).returncode
        if status == NO_COMPILER:
            self.warn(
                f"fmimaster is built WITHOUT {what}: the C compiler is missing or fails. See above."
            )
        elif status != 0:
            raise SystemExit(status)


class BuildKernelIfPossible(build_ext):
    """Build the kernel; without a C compiler that works, go on: simulations run on the interpreter in Python."""

    def finalize_options(self) -> None:
        super().finalize_options()
        for extension in self.extensions:
            extension.optional = True

    def run(self) -> None:
        super().run()
        if not self.has_kernel():
            self.warn(
                "fmimaster is built WITHOUT its kernel in C: the C compiler, or the C headers of Python, are missing, "
                "or the compiler fails. See above. Simulations give the same results, and take longer."
            )

    def build_extensions(self) -> None:
        """Compile with the flags of this compiler: which one it is was not known before."""
        if self.compiler.compiler_type == "msvc":
            flags = runpy.run_path(str(HERE / "fmimaster" / "kernel" / "build.py"))["MSVC_FLAGS"]
            for extension in self.extensions:
                extension.extra_compile_args, extension.extra_link_args = flags, []
        super().build_extensions()

    def has_kernel(self) -> bool:
        """Whether the kernel has been built."""
        return all(Path(path).exists() for path in self.get_outputs())


class WheelOfWhatWasBuilt(bdist_wheel):
    """A wheel whose tag says what is in it, which is known when it has been built."""

    has_kernel = True
    """An editable wheel asks for the tag without run(); it has the kernel's tag, and holds no binaries at all."""

    def run(self) -> None:
        self.run_command("build")
        build: BuildKernelIfPossible = self.get_finalized_command("build_ext")
        package = Path(build.build_lib, "fmimaster")
        has_binaries = any((package / name).exists() for name in ("reference", "kernel/system"))
        self.has_kernel = build.has_kernel()
        self.root_is_pure = not (self.has_kernel or has_binaries)
        self.distribution.has_ext_modules = lambda: not self.root_is_pure
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        return (python, abi, platform) if self.has_kernel else ("py3", "none", platform)


setup(
    cffi_modules=["fmimaster/kernel/build.py:ffibuilder"],
    cmdclass={
        "bdist_wheel": WheelOfWhatWasBuilt,
        "build_ext": BuildKernelIfPossible,
        "build_py": BuildWithBinaries,
    },
    options={"bdist_wheel": {"py_limited_api": "cp310"}},
)
