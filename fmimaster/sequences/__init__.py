"""Trigger sequences: in what order the instances of a non-iterative co-simulation step.

The task is the general graph problem of the *minimum weighted feedback arc set* (also *linear ordering problem*): order
units so that the weight of the connections that lead back is least. This is shown
by Holzinger and Benedikt (2019), Optimal trigger sequence for non-iterative co-simulation, SIMULTECH. This
package is combinatorics of names and weights; it depends on no FMU and no simulation.
"""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.sequences.methods import LeastStale as LeastStale
    from fmimaster.sequences.methods import NearestNeighbour as NearestNeighbour
    from fmimaster.sequences.methods import Upstream as Upstream
    from fmimaster.sequences.weights import Count as Count
    from fmimaster.sequences.weights import FeedThrough as FeedThrough
    from fmimaster.sequences.weights import GivenWeights as GivenWeights
else:
    __getattr__, __dir__ = public_names(__name__)
