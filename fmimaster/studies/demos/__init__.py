"""Ready-made systems to simulate, and comparisons of algorithms on them."""

from fmimaster.studies.demos.catalogue import DEMOS, Demo, demo
from fmimaster.studies.demos.stage import Stage

__all__ = ["DEMOS", "Demo", "Stage", "demo"]
