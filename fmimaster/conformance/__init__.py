"""Conformance runs: all FMUs of a folder, each in a process of its own, with a verdict for each."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.conformance.measures import ConformanceLimits as ConformanceLimits
    from fmimaster.conformance.measures import Measure as Measure
    from fmimaster.conformance.run import check_conformance as check_conformance
    from fmimaster.conformance.verdict import ConformanceRun as ConformanceRun
    from fmimaster.conformance.verdict import Verdict as Verdict
    from fmimaster.conformance.verdict import VerdictCause as VerdictCause
    from fmimaster.conformance.verdict import VerdictOutcome as VerdictOutcome
    from fmimaster.conformance.workers import ConformanceProgress as ConformanceProgress
else:
    __getattr__, __dir__ = public_names(__name__)
