"""Parameters of tests that try many combinations of several things."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product
from math import prod
from typing import Any

import pytest


def in_turn(*lists: Sequence[Any]) -> list[Any]:
    """All combinations of an item of each list, for ``pytest.mark.parametrize``.

    By default each item of the longest list is tried with some of the others, and each item of all lists at least once. The
    other combinations are thorough.
    """
    longest = max(range(len(lists)), key=lambda j: len(lists[j]))
    strides = [1] * len(lists)
    others = [j for j in range(len(lists)) if j != longest]
    for n, j in enumerate(others):
        strides[j] = prod(len(lists[i]) for i in others[:n])
    usual, seen = set[tuple[int, ...]](), [set[int]() for _ in lists]
    for k in count():
        if all(len(found) == len(items) for found, items in zip(seen, lists, strict=True)):
            break
        chosen = tuple(k // s % len(items) for s, items in zip(strides, lists, strict=True))
        usual.add(chosen)
        for found, index in zip(seen, chosen, strict=True):
            found.add(index)
    return [
        pytest.param(
            *(items[i] for items, i in zip(lists, chosen, strict=True)),
            marks=() if chosen in usual else pytest.mark.thorough,
        )
        for chosen in product(*(range(len(items)) for items in lists))
    ]
