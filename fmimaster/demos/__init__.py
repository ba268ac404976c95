"""Systems that are ready to be simulated, and comparisons of algorithms on them."""

from fmimaster.demos.catalogue import DEMOS, Demo, Stage, demo

__all__ = ["DEMOS", "Demo", "Stage", "demo"]
