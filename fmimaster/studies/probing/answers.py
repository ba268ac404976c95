"""How an FMU answers: to inputs, to unusual steps, and at events inside a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import CallError, FmimasterError
from fmimaster.cards.measured import EarlyReturns, Feedthrough, TinySteps, Tried
from fmimaster.studies.probing.excitation import Use, shifts, start_value
from fmimaster.studies.probing.subject import MeasuredUnit, Subject, refusal
from fmimaster.system.model import Causality

_BEFORE = 3
"""Steps before something is tried in Step Mode."""
_MOST_INPUTS = 200
"""Most inputs that are changed, one at a time."""
_VARYING = (1.0, 0.5, 2.0, 1 / 3, 1.5)
"""Sizes of steps, relative to the usual one."""
_TINY = ("1e-3", "1e-6", "1e-9")
"""Sizes of tiny steps, relative to the usual one."""
_STEPS_TO_RETURN_EARLY = 500


def feedthrough(use: Use, in_step_mode: bool) -> Feedthrough:
    """Change one input at a time, in Initialization Mode and between two steps.

    Parameters
    ----------
    in_step_mode : bool
        Whether it is tried in Step Mode too, where FMI forbids Get after Set (FMI 2.0.5, 4.2.4; FMI 3.0.2, 4.2.1.2).
    """
    with Subject(use) as subject:
        unit = subject.instantiated()
        found: list[tuple[dict[str, set[str]], list[str]]] = []
        unit.initialize(inside=lambda: found.append(_responses(unit)))
        at_start, refused = found[0]
        inputs = [v.name for v in subject.inputs[:_MOST_INPUTS]]
        later = _in_step_mode(unit) if in_step_mode else None
    return Feedthrough(
        at_start=_in_order(at_start, inputs),
        in_step_mode=None if later is None else _in_order(later, inputs),
        outputs=tuple(v.name for v in subject.observed if v.causality is Causality.OUTPUT),
        inputs=tuple(inputs),
        refused=tuple(refused),
    )


def _in_step_mode(unit: MeasuredUnit) -> dict[str, set[str]] | None:
    """Responses between two steps; None if the FMU refuses, as it may."""
    try:
        unit.trace(_BEFORE)
        found, refused = _responses(unit, goes_on=False)
    except FmimasterError:
        return None
    return None if refused else found


def _responses(
    unit: MeasuredUnit, *, goes_on: bool = True
) -> tuple[dict[str, set[str]], list[str]]:
    """Output → inputs whose change alone has changed it; and inputs that could not be changed.

    Parameters
    ----------
    goes_on : bool
        Whether the other inputs are tried after one that could not be changed.
    """
    subject = unit.subject
    names = subject.names()
    found: dict[str, set[str]] = {}
    refused: list[str] = []
    unsteady = _differ(unit.read(), unit.read())
    for variable in subject.inputs[:_MOST_INPUTS]:
        rest = start_value(variable)
        try:
            unit.set_input(variable, rest)
            before = unit.read()
            for shifted in shifts(variable, rest):
                unit.set_input(variable, shifted)
                changed = _differ(before, unit.read()) & ~unsteady
                for k in np.flatnonzero(changed).tolist():
                    found.setdefault(names[k], set()).add(variable.name)
            unit.set_input(variable, rest)
            unit.read()
        except CallError:
            refused.append(variable.name)
            if not goes_on:
                break
    return found, refused


def _differ(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = ~((one == other) | (np.isnan(one) & np.isnan(other)))
    return differ


def _in_order(found: dict[str, set[str]], inputs: list[str]) -> dict[str, tuple[str, ...]]:
    return {output: tuple(i for i in inputs if i in its) for output, its in found.items()}


def varying_steps(use: Use) -> Tried:
    """Steps whose size changes."""
    with Subject(use) as subject:
        unit = subject.unit()

        def vary() -> None:
            for share in _VARYING:
                unit.vary()
                unit.step(share * subject.times.size)
                unit.read()

        return Tried(refused=refusal(vary))


def tiny_steps(use: Use) -> TinySteps:
    """Steps that are very short, each shorter than the one before; none after one that has failed, as FMI asks."""
    refused = {}
    with Subject(use) as subject:
        unit = subject.unit()
        unit.trace(_BEFORE)
        for share in _TINY:
            refused[share] = _tiny(unit, float(share))
            if refused[share]:
                break
    return TinySteps(refused=refused)


def _tiny(unit: MeasuredUnit, share: float) -> str:
    return refusal(lambda: unit.step(share * unit.subject.times.size))


def beyond_stop(use: Use) -> Tried:
    """A step that ends after the stop time which the FMU has been given."""
    with Subject(use) as subject:
        size, start = subject.times.size, subject.times.start
        unit = subject.instantiated()
        unit.initialize(stop=start + _BEFORE * size)
        ended = unit.trace(_BEFORE).ended
        if ended:
            raise CallError(ended, instance=use.name, function="DoStep", status="Discard")
        return Tried(refused=refusal(lambda: unit.step(size)))


def early_return(use: Use) -> EarlyReturns:
    """Count steps that end before their end, with and without permission."""
    with Subject(use) as subject:
        numbers = []
        for allowed in (True, False):
            unit = subject.unit("allowed" if allowed else "forbidden", events=allowed)
            unit.trace(_STEPS_TO_RETURN_EARLY)
            numbers.append(unit.early)
            steps = unit.steps
            unit.free()
    return EarlyReturns(allowed=numbers[0], forbidden=numbers[1], steps=steps)
