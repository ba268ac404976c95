"""Trigger sequences: in what order the instances of a non-iterative co-simulation step.

The task is the general graph problem of the *minimum weighted feedback arc set* (also *linear ordering problem*): order
units so that the weight of the connections that lead back is least. This is shown
by Holzinger and Benedikt (2019), Optimal trigger sequence for non-iterative co-simulation, SIMULTECH. This
package is combinatorics of names and weights; it depends on no FMU and no simulation.
"""

from fmimaster.sequences.graph import UnitGraph
from fmimaster.sequences.methods import (
    METHODS,
    LeastStale,
    NearestNeighbour,
    SequenceMethod,
    Upstream,
)
from fmimaster.sequences.units import UnitConnection, Units
from fmimaster.sequences.weights import Count, FeedThrough, GivenWeights, Weights

__all__ = [
    "METHODS",
    "Count",
    "FeedThrough",
    "GivenWeights",
    "LeastStale",
    "NearestNeighbour",
    "SequenceMethod",
    "UnitConnection",
    "UnitGraph",
    "Units",
    "Upstream",
    "Weights",
]
