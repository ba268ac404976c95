"""An FMU whose DoStep takes 100 us of CPU time: the sources in Dahlquist.fmu, compiled with a delay."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import fmpy

from fmimaster import reference_path

DELAY = """
#include <time.h>
static void busy(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    long until = t.tv_sec * 1000000000L + t.tv_nsec + 100000L;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000000000L + t.tv_nsec < until);
}
"""
"""CPU time, not wall time: two threads that share a core must not look faster."""

STEP = "fm_Status model_step(fm_Instance *self, Variables *v, double *length)\n{\n"


def slow_fmu(folder: Path) -> Path:
    """Make the FMU in a folder."""
    with ZipFile(reference_path("fmi3/Dahlquist.fmu")) as archive:
        archive.extractall(folder / "fmu")
    sources = folder / "fmu" / "sources"
    model = (sources / "model.c").read_text()
    if STEP not in model:
        raise RuntimeError("model.c of the Dahlquist FMU has changed: adapt slow.py")
    includes, _, rest = model.partition(STEP)
    (sources / "model.c").write_text(f"{includes}{DELAY}{STEP}    busy();\n{rest}")
    library = next((folder / "fmu" / "binaries").glob(f"*/*{fmpy.sharedLibraryExtension}"))
    headers = Path(fmpy.__file__).parent / "c-code"
    command = ["cc", "-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]
    files = sorted(str(p) for p in sources.glob("*.c"))
    subprocess.run(
        [*command, f"-I{headers}", f"-I{sources}", "-o", str(library), *files, "-lm"], check=True
    )
    target = folder / "Slow.fmu"
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted((folder / "fmu").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder / "fmu"))
    shutil.rmtree(folder / "fmu")
    return target
