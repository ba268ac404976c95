"""Python's collector of garbage, while many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_for_later() -> Iterator[None]:
    """Nothing looks for garbage inside.

    A plan has some hundred objects for each instance, and all of them stay. The collector would look through them again
    and again as they become more, which takes half of the time where instances are thousands. After it, the collector
    goes on as usual: objects declared as old (``gc.freeze``, ``gc.unfreeze``) would save it another 5 %, but start its
    counts anew each time, and what many short runs leave would never be collected.

    For work that ends by itself: an FMU that does not return would leave the collector switched off for the whole process.
    """
    was_on = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_on:
            gc.enable()
