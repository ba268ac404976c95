"""Builds the kernel as an extension module: cffi reads the header that the C compiler includes."""

from hashlib import sha256
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent
SOURCES = (
    "kernel.c",
    "fuse.c",
    "plain.c",
    "control.c",
    "stop.c",
    "changes.c",
    "values.c",
    "objects.c",
    "polynomial.c",
    "correction.c",
    "hooks.c",
    "power.c",
    "estimators.c",
    "controller.c",
    "watch.c",
    "pace.c",
    "observer.c",
    "loop.c",
    "fmu.c",
    "fmi2.c",
    "fmi3.c",
    "update.c",
    "integrator.c",
    "exchange.c",
    "cvode.c",
    "adaptation.c",
    "scheduled.c",
    "link.c",
    "isolated.c",
    "host.c",
    "workers.c",
    "tuner.c",
    "exit.c",
    "rows.c",
    "text.c",
    "portable.c",
    "system.c",
    "system_image.c",
)
SYSTEM_SOURCES = (
    "system_instance.c",
    "system_fmi2.c",
    "system_fmi3.c",
)
"""Besides all others, in the library of exported systems: see fmus/system_library.py."""
FLAGS = ["-std=c11", "-O2", "-Wall", "-Wextra", "-ffp-contract=off"]
"""No contraction to fused operations: the interpreter in Python must give the same bits. Warnings are errors in the
tests only, and with CFLAGS=-Werror, as in the Makefile: another compiler may warn of what ours does not."""
MSVC_FLAGS = ["/std:c11", "/experimental:c11atomics", "/O2", "/fp:precise"]
"""The same for the compiler of Microsoft, which setup.py sets; /fp:precise contracts nothing."""

CALLBACKS = """
extern "Python" {
    int fm_python_transfer(const fm_segment *segment);
    int fm_python_derive(const fm_derivative *derivative);
    int fm_python_set_polynomials(void *self, const uint32_t *references, size_t n, int degree, const double *derivatives,
                              double time, const char **function);
    int fm_python_do_step(void *self, double time, double size, fm_answer *answer, const char **function);
    int fm_python_save(void *self, int place, const char **function);
    int fm_python_restore(void *self, int place, const char **function);
    int fm_python_enter(void *self, int state, const fm_experiment *experiment, const char **function);
    int fm_python_update(void *self, fm_update *answer, const char **function);
    int fm_python_call(void *self, fm_kernel *kernel);
    int fm_python_events(void *self);
    void fm_python_exit(void);
    void fm_python_update_failed(void *self, int status);
    double fm_python_read_outputs(void *reader, double begin, double time, int can_return);
    int fm_python_look(void *self);
    int fm_python_copy(void *self, void **target, void *const *source, size_t n);
    int fm_python_differ(void *self, void *const *one, void *const *other, size_t n);
    int fm_python_sample(void *self);
    int fm_python_get_texts(void *self);
    int fm_python_set_texts(void *self);
    void fm_python_log(void *environment, int status, const char *category, const char *text);
}
"""
"""An instance written in Python; and what needs objects of Python: text and binaries that are new."""

_DIGEST = sha256((HERE / "kernel.h").read_bytes().replace(b"\r\n", b"\n")).hexdigest()
HASH_SOURCE = f'const char fm_kernel_hash[65] = "{_DIGEST}";\n'
"""The hash of the header in C: an image runs only by a kernel that was compiled with the same one."""


def _declarations(name: str) -> str:
    """A header as cffi takes it: without the lines for the preprocessor but numbers."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(
        n for n in lines if not n.startswith(("#include", "#if", "#endif", "#define FM_SYSTEM_H"))
    )


ffibuilder = FFI()
ffibuilder.cdef(_declarations("kernel.h") + _declarations("system.h") + CALLBACKS)
ffibuilder.set_source(
    "fmimaster.kernel._kernel",
    f"""#include <stddef.h>
#include <stdint.h>
#include "system.h"
{HASH_SOURCE}""",
    sources=[f"fmimaster/kernel/{name}" for name in SOURCES],
    include_dirs=[str(HERE)],
    extra_compile_args=FLAGS,
    extra_link_args=["-pthread", "-lm"],
)

if __name__ == "__main__":
    ffibuilder.compile(tmpdir=str(HERE.parents[1]), verbose=True)
