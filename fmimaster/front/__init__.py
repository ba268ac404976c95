"""The front door: simulations, their validation, and runs that are repeated until they have an accuracy."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.export.export import ExportedSystem as ExportedSystem
    from fmimaster.front.accuracy_pair import Pair as Pair
    from fmimaster.front.compiled import CompiledRuns as CompiledRuns
    from fmimaster.front.compiled import ManyRuns as ManyRuns
    from fmimaster.front.validation import Finding as Finding
    from fmimaster.front.validation import Severity as Severity
    from fmimaster.session.repeated import RepeatedRuns as RepeatedRuns
else:
    __getattr__, __dir__ = public_names(__name__)
