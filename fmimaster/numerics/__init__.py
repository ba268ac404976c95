"""Formulas that both executors compute, written once: tools/translate_numerics.py makes the C of the kernel from them.

Here are the types of their arguments, as the translation knows them.
"""

from typing import Any

Number = Any
"""A float. Where the order of operations is the same for several signals, it may also be an array with one of each: NumPy
computes the same bits as a loop over floats. In C a ``double``."""

Doubles = Any
"""Numbers by index: a list, a memory view, an array, or a matrix whose rows are the numbers. In C a ``double *``."""

Ints = Any
"""Integers by index. In C an ``int *``."""

Cubics = Any
"""Cubics by index, each as four ``Doubles``. In C a ``double (*)[4]``."""
