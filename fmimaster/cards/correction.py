"""What one card changes: capabilities and dependencies of the model, and whether its FMU runs alone in a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from fmimaster.cards.card import FmuCard
from fmimaster.cards.findings import ROUNDING, TITLES, seen_anywhere
from fmimaster.cards.measured import Feedthrough
from fmimaster.system.declarations import Capabilities, Interface
from fmimaster.system.model import Model
from fmimaster.system.notes import listed

LARGEST_NOISE = 1e-2
"""Relative difference of repeated steps above which no solver of loops can use them."""

_NOT_IN_A_RUN = frozenset(
    {"beyond_stop", "leak", "replay", "reset", "serialization", "two_instances"}
)
"""Measurements of what a run with the card does not do: a state that cannot be restored is not saved."""
_NAMES = 4
"""Most names in a sentence."""


class CardCorrection:
    """The card of one component."""

    def __init__(self, card: FmuCard) -> None:
        self._card = card
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def model(self, model: Model) -> Model:
        """The model with what the card has shown."""
        card = self._card
        model = replace(
            self._with_dependencies(model),
            capabilities=self._capabilities(model.capabilities),
            replay_noise={} if card.replay is None else dict(card.replay.again.differences),
            followed=_followed(card),
        )
        if card.two_processes is not None and card.two_processes.largest > ROUNDING:
            self._warn(
                f"two equal runs of the FMU differ by {card.two_processes.largest:.2g} (relative), so results are not "
                "repeatable"
            )
        return model

    def _capabilities(self, can: Capabilities) -> Capabilities:
        """Capabilities that it declares but does not have are taken away."""
        card, failed = self._card, self._card.failures
        noise = 0.0 if card.replay is None else card.replay.again.largest
        unrestored = (
            card.not_measured.get("replay", "") if can.copies_states else failed.get("replay")
        )
        if can.can_get_and_set_fmu_state and (unrestored or noise > LARGEST_NOISE):
            what = unrestored or f"steps after a restore differ by {noise:.2g} (relative)"
            self._unrestored(can, what)
            can = replace(can, can_get_and_set_fmu_state=False, can_serialize_fmu_state=False)
        elif noise > ROUNDING:
            self.notes.append(
                f"repeated steps differ by {noise:.2g} (relative). Loops with this FMU are solved "
                "to that accuracy, with larger differences for derivatives"
            )
        if can.can_serialize_fmu_state and "serialization" in failed:
            self._refuted("canSerializeFMUState", failed["serialization"], "it is not used")
            can = replace(can, can_serialize_fmu_state=False)
        varying = card.varying_steps
        if can.can_handle_variable_communication_step_size and varying and varying.refused:
            name = "canHandleVariableCommunicationStepSize"
            self._refuted(name, varying.refused, "its steps have one size")
            can = replace(can, can_handle_variable_communication_step_size=False)
        return can

    def _with_dependencies(self, model: Model) -> Model:
        """Dependencies as they were seen: those that are not declared at all, and those that are missing."""
        feedthrough = self._card.feedthrough
        if feedthrough is None:
            return model
        at_start = {output: set(inputs) for output, inputs in feedthrough.at_start.items()}
        found, assumed = _seen(
            feedthrough,
            model.dependencies,
            model.assumed_dependencies,
            seen_anywhere(self._card),
        )
        initial, initial_assumed = _seen(
            feedthrough, model.initial_dependencies, model.assumed_initial_dependencies, at_start
        )
        self._tell_of_dependencies(model, found)
        return replace(
            model,
            dependencies=found,
            assumed_dependencies=assumed,
            initial_dependencies=initial,
            assumed_initial_dependencies=initial_assumed,
        )

    def _tell_of_dependencies(self, model: Model, found: Mapping[str, frozenset[str]]) -> None:
        missing = [
            f"{output} on {name}"
            for output, inputs in found.items()
            if output not in model.assumed_dependencies
            for name in sorted(inputs - model.dependencies[output])
        ]
        if missing:
            self._warn(
                f"direct dependencies were seen that the FMU does not declare; the plan takes them into account: "
                f"{listed(missing, _NAMES)}"
            )
        fewer = sorted(
            o for o in model.assumed_dependencies if found.get(o, ()) != model.dependencies.get(o)
        )
        if fewer:
            self._warn(
                f"the FMU declares no direct dependencies of {listed(fewer, _NAMES)}; those that were seen are used. One "
                "measured point cannot prove that there are no others"
            )

    def reason_to_isolate(self, *, several: bool) -> str:
        """Why the FMU should have a process of its own; empty if there is no reason.

        Parameters
        ----------
        several : bool
            Whether the run has several instances of the FMU.
        """
        return next(self._reasons(several), "")

    def _reasons(self, several: bool) -> Iterator[str]:
        card = self._card
        if lost := [name for name in card.losses if name not in _NOT_IN_A_RUN]:
            yield f"by its card, {card.not_measured[lost[0]]} when it was measured ({TITLES[lost[0]]})"
        two = card.two_instances
        fails_with_two = "two_instances" in card.losses or (
            two is not None and bool(two.refused or (two.beside and two.beside.largest > ROUNDING))
        )
        if several and fails_with_two:
            yield "by its card, it fails or gives other results beside a second instance"

    def _unrestored(self, can: Capabilities, what: str) -> None:
        result = "no step of it is repeated"
        if can.copies_states:
            self._warn(f"the FMU cannot save its state, and with copies of it {what}; {result}")
        else:
            self._refuted("canGetAndSetFMUState", what, result)

    def _refuted(self, capability: str, observed: str, result: str) -> None:
        self._warn(f"the FMU declares {capability}, but {observed}; {result}")

    def _warn(self, text: str) -> None:
        self.warnings.append(text)


def _followed(card: FmuCard) -> dict[str, frozenset[str]]:
    """Output → inputs that it follows at once in Step Mode, if reading outputs there has changed no later step."""
    found, between = card.feedthrough, card.read_before
    is_stepped = card.interface == Interface.CO_SIMULATION.value
    if found is None or found.in_step_mode is None or between is None or not is_stepped:
        return {}
    if between.largest > ROUNDING:
        return {}
    return {output: frozenset(inputs) for output, inputs in found.in_step_mode.items()}


def _seen(
    measured: Feedthrough,
    declared: Mapping[str, frozenset[str]],
    assumed: frozenset[str],
    seen: Mapping[str, set[str]],
) -> tuple[dict[str, frozenset[str]], frozenset[str]]:
    """Dependencies of each output, and the outputs for which they are still assumed.

    Outputs and inputs that were not measured keep what is declared or assumed.
    """
    tested = frozenset(measured.inputs) - frozenset(measured.refused)
    replaced = assumed & frozenset(measured.outputs)
    found = {
        output: frozenset(seen.get(output, ()))
        | (inputs - tested if output in replaced else inputs)
        for output, inputs in declared.items()
    }
    return found, frozenset(o for o in assumed if o not in replaced or found[o] - tested)
