"""Opens a library so that the rest of the process goes on meanwhile.

Python opens a library with its lock held: where that takes for ever, no other thread could listen for Ctrl-C any more.
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
    """Keep a library open: who opens it meanwhile gets the same one at once.

    It is opened in its own folder, as fmpy does. One that cannot be opened is left to who opens it next, and says why.
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
