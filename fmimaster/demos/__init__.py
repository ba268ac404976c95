"""Ready-made systems to simulate, and comparisons of algorithms on them."""

from fmimaster.demos.catalogue import DEMOS, Demo, demo
from fmimaster.demos.stage import Stage

__all__ = ["DEMOS", "Demo", "Stage", "demo"]
