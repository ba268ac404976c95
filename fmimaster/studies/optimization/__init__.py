"""Better trigger sequences by simulations: stands above :mod:`fmimaster.front.simulation`."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.studies.optimization.sequence_search import SequenceSearch as SequenceSearch
    from fmimaster.studies.optimization.signature import Signature as Signature
    from fmimaster.studies.optimization.weights import Fuzzy as Fuzzy
    from fmimaster.studies.optimization.weights import Propagated as Propagated
else:
    __getattr__, __dir__ = public_names(__name__)
