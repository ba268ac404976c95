"""Results of a run: rows, steps, events, files, comparisons."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.record.causes import Activations as Activations
    from fmimaster.record.causes import Cause as Cause
    from fmimaster.record.causes import Event as Event
    from fmimaster.record.causes import Kind as Kind
    from fmimaster.record.causes import Steps as Steps
    from fmimaster.results.comparison import Comparison as Comparison
    from fmimaster.results.comparison import Deviation as Deviation
    from fmimaster.results.comparison import PhaseError as PhaseError
    from fmimaster.results.deviations import JumpTimes as JumpTimes
    from fmimaster.results.results import Results as Results
else:
    __getattr__, __dir__ = public_names(__name__)
