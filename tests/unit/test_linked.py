"""What published libraries need and give: zig makes them here, for the systems of the wheels."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytest.importorskip("ziglang", reason="zig is not installed: the extra `release` brings it")
pytest.importorskip("lief", reason="lief is not installed: the extra `release` brings it")

from linked import faults, linked  # type: ignore[import-not-found]
from targets import TARGETS, Target, universal, zig

pytestmark = (
    pytest.mark.thorough
)  # the first library for a system takes a minute: zig compiles its C library

SOURCE = """
#include <math.h>
#ifdef _WIN32
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
double wave(double x) { return sin(x); }
"""


def library(target: Target, folder: Path, text: str = SOURCE, *flags: str) -> bytes:
    (folder / "a.c").write_text(text, encoding="utf-8")
    command = zig("cc", "-target", target.zig, "-O2", "-s", "-shared", "-fvisibility=hidden")
    command += [*flags, "a.c", "-o", f"a{target.suffix}", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return (folder / f"a{target.suffix}").read_bytes()


def is_wave(name: str) -> bool:
    return name == "wave"


@pytest.mark.parametrize("name", TARGETS)
def test_a_library_of_c_needs_what_every_system_has(tmp_path: Path, name: str) -> None:
    target = TARGETS[name]
    content = library(target, tmp_path)
    assert list(faults(content, target, is_wave)) == []
    [facts] = linked(content)
    assert (facts.processor, facts.exported) == (name.split("-")[0], {"wave"})
    assert content == library(target, tmp_path)


def test_other_names_other_processors_and_paths_are_told(tmp_path: Path) -> None:
    target = TARGETS["x86_64-linux"]
    content = library(
        target,
        tmp_path,
        f'{SOURCE}\nconst char *path(void) {{ return "{tmp_path}/"; }}',
        "-fvisibility=default",
    )
    told = list(faults(content, TARGETS["aarch64-linux"], is_wave))
    assert told[0] == "it is for x86_64"
    assert told[1] == "it exports path"
    assert told[2].startswith("it has a path of this machine, ")


def test_a_library_for_a_later_system_is_told(tmp_path: Path) -> None:
    later = Target("x86_64-linux", "linux64", ".so", "x86_64-linux-gnu.2.34")
    text = "#include <pthread.h>\n#include <stdlib.h>\nint wave(pthread_t *t) { return pthread_create(t, 0, 0, 0); }"
    content = library(later, tmp_path, text, "-fvisibility=default")
    told = list(faults(content, TARGETS["x86_64-linux"], is_wave))
    assert told == ["it needs linux (2, 34), and (2, 17) is promised"]


def test_a_universal_library_has_a_part_for_each_processor(tmp_path: Path) -> None:
    parts = [library(TARGETS[f"{p}-darwin"], tmp_path) for p in ("x86_64", "aarch64")]
    facts = linked(universal(parts))
    assert [part.processor for part in facts] == ["x86_64", "aarch64"]
    assert [part.libraries for part in facts] == [["/usr/lib/libSystem.B.dylib"]] * 2
    assert universal(parts[:1]) == parts[0]
