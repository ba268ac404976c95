"""Values that are not numbers: texts, and binaries as bytes or as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def as_text(value: object) -> str:
    """A text as it is, binaries in hexadecimal digits."""
    return value.hex() if isinstance(value, bytes) else str(value)


def are_binaries(values: NDArray[Any]) -> bool:
    """Whether a column of objects has binaries: ``bytes``, also where a value is absent."""
    return values.dtype == object and any(isinstance(v, bytes) for v in np.ma.getdata(values).flat)


def objects(values: Sequence[str | bytes | None], absent: str | bytes = "") -> NDArray[Any]:
    """Texts or binaries as a column; a masked array if one is None, which is absent.

    Parameters
    ----------
    absent
        The value below the mask.
    """
    column = np.empty(len(values), object)
    column[:] = [absent if v is None else v for v in values]
    mask = [v is None for v in values]
    return np.ma.MaskedArray(column, mask) if any(mask) else column
