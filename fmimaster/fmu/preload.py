"""Opens a library without blocking the other threads of the process.

Python holds its lock while it opens a library: if that takes forever, no other thread can handle Ctrl-C.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(library: Path) -> Iterator[None]:
    """Keep a library open: a second call to open it gets the same one at once.

    It is opened in its own folder, as fmpy does. If it cannot be opened, the next call to open it reports the reason.
    """
    if sys.platform == "win32":
        yield
        return
    c = ctypes.CDLL(None)
    dlopen = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)(("dlopen", c))
    dlclose = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(("dlclose", c))
    before = Path.cwd()
    os.chdir(library.parent)
    handle = dlopen(os.fsencode(library), os.RTLD_NOW)
    os.chdir(before)
    try:
        yield
    finally:
        if handle:
            dlclose(handle)
