"""When Python's garbage collector works."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_for_later() -> Iterator[None]:
    """A context in which Python's garbage collector is switched off.

    A plan has some hundred objects for each instance, and all of them stay. The collector would traverse them again and
    again as their number grows, which takes half of the time for thousands of instances. After the context, it works as
    usual: ``gc.freeze`` and ``gc.unfreeze`` would save another 5 %, but they reset its counts each time, and the
    garbage of many short runs would never be collected.

    Importing is such work, too: it makes some 100 000 objects.

    Only for work that certainly ends: an FMU that does not return would leave the collector switched off for the whole
    process.
    """
    was_on = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()
