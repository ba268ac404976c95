"""Names and defaults for help pages, because their modules are slow to import. tests/unit/test_named.py compares
them."""

from __future__ import annotations

ALGORITHMS = ("Jacobi", "GaussSeidel", "Sequential", "AutomaticSequence")
"""Names of ``named.algorithms``."""
BACKENDS = ("fastest", "native", "reference")
"""Values of ``run.choice.Backend``; the first is the default."""
EVENT_CLOCKS = ("look-ahead", "predictive", "intermediate", "early-return", "check")
"""Names of ``named.event_clocks``."""
FAULT_POLICIES = ("stop", "restart", "drop")
"""Names of ``named.fault_policies``; the first is the default."""
KINDS = (
    "hold",
    "midpoint",
    "nepce",
    "linear",
    "quadratic",
    "interpolated",
    "first-order",
    "hermite",
    "adaptive",
)
"""Names of ``program.polynomial``."""
METHODS = ("automatic", "count", "nearest-neighbour", "upstream")
"""Names of ``plan.sequence``."""
MODES = ("end", "mid", "lin", "held", "sub")
"""Names of ``algorithms``."""
SOLVERS = ("dormand-prince", "euler", "cvode")
"""Names of ``named.solvers``."""
STEP_RULES = (
    "grid",
    "free",
    "ramp",
    "locate",
    "ecco",
    "predictor-corrector",
    "embedded-orders",
    "step-doubling",
)
"""Names of ``named.step_rules``."""

DEFAULT_LOOPS = "real"
"""Of ``plan.step_groups.Loops``."""
LOOP_TOLERANCE = 1e-08
"""Relative, of ``control.loops.solver``."""
NO_TOLERANCE = "none"
"""The word of ``plan.tolerance``."""
REFERENCE_TOLERANCE = 0.01
"""Of ``results.comparison``."""
CONFORMANCE_DEADLINE = 60.0
"""In s, of ``conformance.run``."""
CONFORMANCE_OUTPUT = "conformance-results"
"""Folder, of ``conformance.run``."""
OUTSIDE_BAND = 0.1
"""Share of samples, of ``conformance.measures``."""
