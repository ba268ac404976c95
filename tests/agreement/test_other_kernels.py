"""The kernel built in other ways: with sanitizers it is silent, and if one instruction is wrong the tests notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import fmimaster

pytest.importorskip("fmimaster.kernel._kernel", reason="the kernel is not built")

HERE = Path(__file__).parent
PACKAGE = Path(fmimaster.__file__).parent

BUILD = """
import sys
sys.path.insert(0, {folder!r})
from fmimaster.kernel.build import ffibuilder
name, source, _, options = ffibuilder._assigned_source
options["extra_compile_args"] += {flags!r}
options["extra_link_args"] += {flags!r}
ffibuilder.compile(tmpdir={folder!r})
"""


def package_with_kernel(
    folder: Path, *, flags: tuple[str, ...] = (), wrong: tuple[str, str] | None = None
) -> None:
    """A copy of the package whose kernel is built with these flags, or with one text replaced in it."""
    shutil.copytree(
        PACKAGE,
        folder / "fmimaster",
        ignore=shutil.ignore_patterns("*.so", "*.o", "_kernel.c", "__pycache__"),
    )
    if wrong is not None:
        source = folder / "fmimaster" / "kernel" / "kernel.c"
        text = source.read_text()
        assert text.count(wrong[0]) == 1
        source.write_text(text.replace(*wrong))
    script = BUILD.format(folder=str(folder), flags=list(flags))
    subprocess.run([sys.executable, "-c", script], cwd=folder, check=True, capture_output=True)


def agreement(
    folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the agreement tests on that package."""
    tests = folder / "tests"
    tests.mkdir()
    shutil.copy(HERE / "test_real_fmus.py", tests)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(tests)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **(environment or {})},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ("value = m->factor * value + m->offset;", "value = m->factor * (value + m->offset);"),
        ("k->read[c->instance] = k->at[c->instance];", "k->read[c->instance] = k->begin;"),
        ("column[i + 1] - column[i]", "column[i] - column[i + 1]"),
    ],
    ids=["MOVE", "GET", "FIT"],
)
def test_one_wrong_instruction_is_noticed(wrong: tuple[str, str], tmp_path: Path) -> None:
    package_with_kernel(tmp_path, wrong=wrong)
    run = agreement(tmp_path)
    assert run.returncode == 1, run.stdout[-2000:]
    assert "1 failed" in run.stdout


def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("no C compiler")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("the compiler has no address sanitizer")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")
    package_with_kernel(tmp_path, flags=flags)
    # Python itself leaks at its end; the sanitizer must be there before everything else
    environment = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0"}
    run = agreement(tmp_path, environment)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert "passed" in run.stdout
