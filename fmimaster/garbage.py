"""Python's collector of garbage, while many objects are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_for_later() -> Iterator[None]:
    """Nothing looks for garbage inside; after it, what was made inside counts as old at once.

    A plan has some hundred objects for each instance, and all of them stay. The collector would look through them again
    and again as they become more, which takes half of the time where instances are thousands. For work that ends by
    itself: an FMU that does not return would leave the collector switched off for the whole process.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if gc.get_freeze_count() == 0:  # else somebody has use for what is frozen
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()
