"""Rounding of times."""

SLIVER = 1e-9
"""No step is shorter than this fraction of a usual step, if that can be avoided."""

ULPS = 4
"""A time ``start + k * step`` that was computed with doubles is wrong by less: by at most 1 for the step, which is a double
near the decimal that was meant, and by at most a half each for the start, the product and the sum."""
