"""Co-simulation algorithms, one file each, and the modes of Gauss-Seidel."""

from typing import TYPE_CHECKING

from fmimaster.base.public_names import public_names

if TYPE_CHECKING:
    from fmimaster.algorithms.algorithm import Algorithm as Algorithm
    from fmimaster.algorithms.gauss_seidel import GaussSeidel as GaussSeidel
    from fmimaster.algorithms.jacobi import Jacobi as Jacobi
    from fmimaster.algorithms.modes import AlongLine as AlongLine
    from fmimaster.algorithms.modes import AtEnd as AtEnd
    from fmimaster.algorithms.modes import AtMiddle as AtMiddle
    from fmimaster.algorithms.modes import Corrected as Corrected
    from fmimaster.algorithms.modes import InputMode as InputMode
    from fmimaster.algorithms.own_steps import SubSteps as SubSteps
    from fmimaster.algorithms.refreshed import Refreshed as Refreshed
    from fmimaster.algorithms.richardson import Richardson as Richardson
    from fmimaster.algorithms.sequential import AutomaticSequence as AutomaticSequence
    from fmimaster.algorithms.sequential import Sequential as Sequential
    from fmimaster.algorithms.subsequence import Subsequence as Subsequence
    from fmimaster.algorithms.waveform import Waveform as Waveform
    from fmimaster.algorithms.wrapper import Aligned as Aligned
    from fmimaster.plan.plan import Plan as Plan
    from fmimaster.program.emitter import Emitter as Emitter
else:
    __getattr__, __dir__ = public_names(__name__)
