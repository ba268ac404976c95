"""Programs for the kernel as they are written, without what makes them fast."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def as_written() -> Iterator[None]:
    """Instructions are not fused."""
    from fmimaster.run.native.encoding import ProgramEncoder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProgramEncoder, "fused", False)
        yield
