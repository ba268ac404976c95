"""The kernel compiles on every system: its sources are C11, and only portable.h and portable.c ask which system it is."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from kernels import FOLDER, compiler
from targets import TARGETS, zig

from fmimaster.kernel.build import FLAGS, HASH_SOURCE, SOURCES

HEADERS = {
    *("math", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
    "string",
}
"""Of C11, and MSVC has them all: it has no ``threads.h`` of its own before 2022, nor has macOS."""

SAME_ON_EVERY_SYSTEM = [
    path
    for path in sorted(FOLDER.glob("*.[ch]"))
    if path.stem not in ("portable", "_kernel")  # the last is generated
]


@pytest.mark.parametrize("path", SAME_ON_EVERY_SYSTEM, ids=lambda path: path.name)
def test_what_differs_between_systems_is_in_one_place(path: Path) -> None:
    code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    conditions = re.findall(r"^\s*#\s*(?:if|elif)\w*\s+(.*)", code, re.MULTILINE)
    guard = [f"FM_{path.stem.upper()}_H"]
    assert conditions in ([], guard)
    assert set(re.findall(r"#include <(\w+)\.h>", code)) <= HEADERS
    assert not re.findall(r"\b__(?!VA_ARGS__)\w+", code)  # extensions of a compiler
    assert not re.findall(r"\blong\b", code)  # 32 bits on Windows, 64 elsewhere


ALTERNATIVES = r"""
#include "portable.h"
#include <inttypes.h>
#include <stdio.h>

static uint32_t word;

static FM_THREAD_RESULT change(void *word)
{
    atomic_store((_Atomic uint32_t *)word, 1);
    return 0;
}

int main(void)
{
    uint64_t a, b, upper;
    while (scanf("%" SCNu64 " %" SCNu64, &a, &b) == 2) {
        uint64_t lower = fm_product(a, b, &upper);
        printf("%" PRIu64 " %" PRIu64 "\n", upper, lower);
    }
    int64_t begin = fm_nanoseconds();
    int is_late = fm_wait(&word, 0, 0, 2000000);
    int has_waited = fm_nanoseconds() - begin >= 2000000;
    fm_thread thread;
    fm_thread_start(&thread, change, &word);
    int is_late_again = fm_wait(&word, 0, 0, -1);
    fm_thread_join(thread);
    printf("%d %d %d\n", is_late, has_waited, is_late_again);
}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="what Windows needs is in use there")
def test_other_systems_multiply_and_wait_as_well(tmp_path: Path) -> None:
    """Without integers of 128 bits, and without a futex."""
    (tmp_path / "alternatives.c").write_text(ALTERNATIVES, encoding="utf-8")
    without = ("-U__SIZEOF_INT128__", "-U__linux__", "-D_POSIX_C_SOURCE=200809L")
    command = [compiler(), *FLAGS, "-Werror", *without, f"-I{FOLDER}", "-pthread"]
    sources = [str(tmp_path / "alternatives.c"), str(FOLDER / "portable.c")]
    subprocess.run([*command, "-o", str(tmp_path / "run"), *sources], check=True)
    chance, most = random.Random(1), 2**64 - 1
    pairs = [(chance.getrandbits(64), chance.getrandbits(64)) for _ in range(1000)]
    pairs += [(most, most), (most, 1), (0, most), (2**32, 2**32), (2**32 - 1, 2**32 + 1)]
    given = "".join(f"{a} {b}\n" for a, b in pairs)
    run = subprocess.run(
        [tmp_path / "run"], input=given, capture_output=True, text=True, check=True
    )
    *products, waited = run.stdout.splitlines()
    assert [line.split() for line in products] == [
        [str(a * b >> 64), str(a * b & most)] for a, b in pairs
    ]
    assert waited == "1 1 0"


@pytest.mark.thorough
@pytest.mark.skipif(find_spec("ziglang") is None, reason="zig is not installed")
@pytest.mark.parametrize("name", TARGETS)
def test_the_kernel_compiles_for_every_system_without_a_warning(name: str, tmp_path: Path) -> None:
    flags = [*FLAGS, "-Werror", "-pedantic", "-Wvla", "-shared"]
    digest, made = tmp_path / "hash.c", tmp_path / "kernel"
    digest.write_text(HASH_SOURCE, encoding="ascii")
    sources = [*(str(FOLDER / source) for source in SOURCES), str(digest)]
    command = zig("cc", "-target", TARGETS[name].zig, *flags, *sources)
    subprocess.run([*command, "-o", str(made)], check=True)
    assert made.stat().st_size > 0
