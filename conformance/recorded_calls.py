"""Copies of FMUs that record each FMI call: every program that runs such a copy leaves a list of its calls.

The library of the copy has the same functions as the original. Each writes its arguments into a file and calls the
original, which is beside it. The program that runs the FMU is not changed, so all programs can be observed.
Needs a C compiler and ``nm``, which comes with it. The prototypes are those of the C headers of FMI that fmpy ships.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fmpy

HEADERS = Path(fmpy.__file__).parent / "c-code"
VARIABLE = "FMI_CALLS"
"""The environment variable with the path of the file that gets the calls; without it none are written."""

_TYPEDEF = re.compile(r"typedef\s+((?:const\s+)?\w+\s*\**)\s*(fmi[23]\w+)TYPE\s*\(([^;]*)\)\s*;")
_PARAMETER = re.compile(r"(const\s+)?(\w+)\s*(\*?)\s*(\w*)\s*(\[\s*\])?$")
_LIBRARY = re.compile(r"binaries/(linux64|x86_64-linux)/[^/]+\.so")
_FORMATS = {
    "Real": "%a",
    "Float32": "%a",
    "Float64": "%a",
    "String": "s",
    "FMUState": "p",
    "FMUstate": "p",
}
_OPAQUE = (
    "Instance",
    "Component",
    "Callback",
    "Functions",
    "Environment",
    "Binary",
    "Byte",
    "Info",
    "void",
)
"""Types whose values say nothing about what is computed."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a C function. Names are made here: the headers of FMI 2.0 leave some out."""

    name: str
    kind: str
    is_constant: bool
    is_pointer: bool
    is_array: bool

    @property
    def declaration(self) -> str:
        """As C declares it."""
        pointer, array = "*" * self.is_pointer, "[]" * self.is_array
        return f"{'const ' * self.is_constant}{self.kind} {pointer}{self.name}{array}"

    @property
    def is_size(self) -> bool:
        """Whether it is the number of elements of arrays."""
        return self.kind == "size_t" and not self.is_pointer and not self.is_array


_HEAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "{header}"

static void *original;
static int file = -1;

__attribute__((constructor)) static void load(void) {{
    Dl_info self;
    char path[4096];
    dladdr((void *)load, &self);
    snprintf(path, sizeof path, "%s.original", self.dli_fname);
    original = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!original) fprintf(stderr, "%s\\n", dlerror());
    const char *to = getenv("{variable}");
    if (to) file = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}}

typedef struct {{ char *text; size_t used, size; }} Line;

static void add(Line *l, const char *format, ...) {{
    va_list a;
    for (;;) {{
        va_start(a, format);
        const size_t n = (size_t)vsnprintf(l->text + l->used, l->size - l->used, format, a);
        va_end(a);
        if (l->used + n < l->size) {{ l->used += n; return; }}
        l->text = realloc(l->text, l->size = 2 * (l->used + n + 1));
    }}
}}

static void end(Line *l) {{
    add(l, "\\n");
    if (file >= 0 && write(file, l->text, l->used) < 0) file = -1;
    free(l->text);
}}
"""
_SHOWN = """
static void show_{type}(Line *l, const {type} *v, size_t n) {{
    if (!v) {{ add(l, " null"); return; }}
    for (size_t i = 0; i < n; i++) add(l, {how});
}}
"""


def record(fmu: Path, target: Path, identifier: str) -> Path:
    """Write a copy of an FMU for FMI 2.0 or 3.0 on 64-bit Linux that records its calls.

    Raises
    ------
    ValueError
        If the FMU has no library named after its model identifier, or the compiler fails.
    """
    with zipfile.ZipFile(fmu) as source, tempfile.TemporaryDirectory() as folder:
        library = _library(source.namelist(), identifier)
        original = Path(folder) / "original.so"
        original.write_bytes(source.read(library))
        _try_to_load(original)
        proxy = _compiled(_source(_exported(original)))
        with zipfile.ZipFile(target, "w") as copy:
            for entry in {entry.filename: entry for entry in source.infolist()}.values():
                copy.writestr(entry, proxy if entry.filename == library else source.read(entry))
            copy.writestr(f"{library}.original", original.read_bytes())
    return target


def with_named_library(fmu: Path, target: Path, identifier: str) -> Path:
    """The FMU itself, or a copy whose library is named after its model identifier, for programs that require this.

    Raises
    ------
    ValueError
        If it has none or several libraries.
    """
    with zipfile.ZipFile(fmu) as source:
        library = _library(source.namelist(), identifier)
        if Path(library.replace("\\", "/")).stem == identifier:
            return fmu
        with zipfile.ZipFile(target, "w") as copy:
            for name in dict.fromkeys(source.namelist()):
                copy.writestr(name, source.read(name))
            named = library.replace(re.split(r"[/\\]", library)[-1], f"{identifier}.so")
            copy.writestr(named, source.read(library))
    return target


def calls(file: Path) -> list[str]:
    """The calls of a run, one a text; FMU states are numbered in the order in which they appear."""
    states: dict[str, int] = {}
    text = file.read_text(errors="replace", encoding="utf-8") if file.exists() else ""
    return [
        re.sub(r"@\w+", lambda m: f"@{states.setdefault(m[0], len(states))}", t)
        for t in text.splitlines()
    ]


def first_difference(one: list[str], other: list[str]) -> str:
    """Where two lists of calls begin to differ; empty if they are equal."""
    for k, (a, b) in enumerate(zip(one, other, strict=False), start=1):
        if a != b:
            return f"call {k}: {a[:120]} / {b[:120]}"
    longer = one[len(other) :] or other[len(one) :]
    return f"{len(one)} / {len(other)} calls; first one more: {longer[0][:120]}" if longer else ""


def _library(names: list[str], identifier: str) -> str:
    """The library named after the model identifier, else the only one."""
    found = [n for n in names if _LIBRARY.fullmatch(n.replace("\\", "/"))]
    named = [n for n in found if Path(n.replace("\\", "/")).stem == identifier]
    if not named and len(found) != 1:
        raise ValueError(f"it has no {identifier}.so for 64-bit Linux")
    return (named or found)[0]


def _try_to_load(library: Path) -> None:
    """In a process of its own: what libraries do when they are loaded is not known."""
    load = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", load, library], capture_output=True, encoding="utf-8"
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise ValueError(f"its library cannot be loaded by itself: {last}")


def _exported(library: Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", library], check=True, capture_output=True, encoding="utf-8"
    )
    return {line.split()[-1].partition("@")[0] for line in listing.stdout.splitlines()}


@cache  # FMUs of one exporter mostly have the same functions
def _compiled(source: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        code, library = Path(folder) / "proxy.c", Path(folder) / "proxy.so"
        code.write_text(source, encoding="utf-8", newline="\n")
        done = subprocess.run(
            ["cc", "-shared", "-fPIC", "-w", f"-I{HEADERS}", "-o", library, code, "-ldl"],
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode:
            raise ValueError(f"the compiler: {done.stderr.strip()[:300]}")
        return library.read_bytes()


def _source(exported: set[str]) -> str:
    """A library with those functions of FMI that are exported."""
    version = "2" if any(name.startswith("fmi2") for name in exported) else "3"
    header = f"fmi{version}FunctionTypes.h"
    text = re.sub(
        r"/\*.*?\*/|//[^\n]*", "", (HEADERS / header).read_text(encoding="utf-8"), flags=re.DOTALL
    )
    parts, shown = [], set[str]()
    for result, name, listed in _TYPEDEF.findall(text):
        if name in exported:
            parameters = _parameters(listed)
            parts.append(_function(result.strip(), name, parameters))
            shown |= {p.kind for p in parameters}
    shows = [_SHOWN.format(type=t, how=_how(t)) for t in sorted(shown) if _how(t)]
    head = "#include <stdarg.h>\n" + _HEAD.format(header=header, variable=VARIABLE)
    return head + "".join(shows) + "".join(parts)


def _how(kind: str) -> str:
    """The arguments of ``add`` that show one value of a C type; empty if it is not shown."""
    if any(word in kind for word in _OPAQUE):
        return ""
    form = _FORMATS.get(kind[4:], "d")
    return {
        "s": '" \\"%s\\"", v[i] ? v[i] : "(null)"',
        "p": '" @%p", v[i]',
        "d": '" %lld", (long long)v[i]',
    }.get(form, '" %a", (double)v[i]')


def _parameters(listed: str) -> list[Parameter]:
    matches = [_PARAMETER.match(" ".join(text.split())) for text in listed.split(",")]
    found = [m.groups() for m in matches if m]
    return [
        Parameter(f"p{k}", kind, bool(const), bool(star), bool(array))
        for k, (const, kind, star, _, array) in enumerate(found)
        if kind != "void" or star
    ]


def _function(result: str, name: str, parameters: list[Parameter]) -> str:
    before, after = [], []
    strings = 0
    for k, p in enumerate(parameters):
        strings += p.kind.endswith("String")
        show = f"show_{p.kind}(&l, {p.name if p.is_pointer or p.is_array else '&' + p.name}, {_size(parameters, k)});"
        is_resource_path = "Instantiate" in name and strings == 3 and p.kind.endswith("String")
        if not _how(p.kind) or is_resource_path:
            if p.is_pointer or is_resource_path:
                before.append(f'add(&l, {p.name} ? " *" : " null");')
        elif p.is_array and not p.is_constant:
            after.append(show)
        elif not p.is_pointer or "FreeFMU" in name:
            before.append(show)
        elif "FMU" in p.kind:
            after.append(show)
    declared = ", ".join(p.declaration for p in parameters) or "void"
    call = f'((__typeof__(&{name}))dlsym(original, "{name}"))({", ".join(p.name for p in parameters)});'
    is_status = result.endswith("Status")
    return "\n".join(
        (
            f"{result} {name}({declared}) {{",
            "    Line l = {0};",
            f'    add(&l, "{name}");',
            *(f"    {b}" for b in before),
            f"    {'' if result == 'void' else f'{result} r = '}{call}",
            '    add(&l, " -> %d", (int)r);' if is_status else "",
            *((f"    if (r <= 1) {{ {' '.join(after)} }}",) if is_status and after else ()),
            "    end(&l);",
            "" if result == "void" else "    return r;",
            "}",
            "",
        )
    )


def _size(parameters: list[Parameter], k: int) -> str:
    """The number of elements of an argument: the size right behind it, else the last one before."""
    if not parameters[k].is_array:
        return "1"
    if k + 1 < len(parameters) and parameters[k + 1].is_size:
        return parameters[k + 1].name
    return next((p.name for p in reversed(parameters[:k]) if p.is_size), "1")


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
