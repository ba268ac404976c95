"""Systems with modes and events that are linear in each mode, of which hybrid_writer.py makes FMUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STATES, SIGNALS, OUTPUTS, EVENTS, MODES, INDICATORS = 4, 4, 6, 4, 3, 2
"""How many of each a system can have; as in HybridLinear/model.c. Indicators: of one event."""
ORDERS = 3
"""A signal is an input with the inputs of its first and its second derivative."""
INPUTS = SIGNALS * ORDERS
PARTNER = 2
"""How many inputs can be told by a shared event."""

Form = Mapping[str, float]
"""An affine form: factors by the names of states and inputs, and the constant by the name "1"."""


@dataclass(frozen=True)
class Signal:
    """An input, and the inputs of its derivatives; "" if the FMU has none."""

    value: str
    first: str = ""
    second: str = ""

    @property
    def names(self) -> tuple[str, str, str]:
        return self.value, self.first, self.second


@dataclass(frozen=True)
class Transition:
    """What an event does in one mode: it occurs when all indicators have come down to 0."""

    indicators: tuple[Form, ...]
    next: int
    reset: Mapping[str, Form] = field(default_factory=dict)
    """States that it changes, by their values before it; all others stay."""
    partner: Mapping[str, Form] = field(default_factory=dict)
    """Of a shared event: inputs that it changes in the other member, likewise. They count until inputs are set."""


@dataclass(frozen=True)
class Event:
    """An event, by the modes in which it can happen."""

    name: str
    transitions: Mapping[int, Transition]
    shared: bool = False
    payload: tuple[str, str] | None = None
    """Of a shared event: the output that goes to the other member, and the input that its output replaces here."""


@dataclass(frozen=True)
class Mode:
    """x' = rates, y = outputs; what is left out is 0."""

    rates: Mapping[str, Form]
    outputs: Mapping[str, Form]
    on: bool = False
    """The Boolean output ``on``."""


@dataclass(frozen=True)
class HybridSystem:
    """A system with modes.

    Parameters
    ----------
    states, inputs
        Start values by name. Inputs that are not named start at 0.
    signals
        Inputs with their derivatives.
    outputs
        Names, with the name of the output that is the time derivative, or "".
    modes, events
        Of equal names and numbers of indicators in all modes.
    start_mode
        Number of the mode at the start.
    """

    states: Mapping[str, float]
    modes: tuple[Mode, ...]
    outputs: Mapping[str, str]
    signals: tuple[Signal, ...] = ()
    events: tuple[Event, ...] = ()
    inputs: Mapping[str, float] = field(default_factory=dict)
    start_mode: int = 0

    def __post_init__(self) -> None:
        counts = {
            "states": (len(self.states), STATES),
            "signals": (len(self.signals), SIGNALS),
            "outputs": (len(self.outputs), OUTPUTS),
            "modes": (len(self.modes), MODES),
            "events": (len(self.events), EVENTS),
        }
        for what, (count, most) in counts.items():
            if count > most:
                raise ValueError(f"{count} {what}: there can be {most}.")

    @property
    def input_names(self) -> tuple[str, ...]:
        """Of all orders of all signals; "" where there is none."""
        return tuple(name for signal in self.signals for name in signal.names)


EXAMPLE = HybridSystem(
    states={"x": 1.0, "v": 0.0},
    signals=(Signal("u_x", "u_v", "u_a"),),
    outputs={"x": "v", "v": "a", "a": ""},
    modes=(
        Mode(
            rates={"x": {"v": 1}, "v": {"1": -9.81}},
            outputs={"x": {"x": 1}, "v": {"v": 1}, "a": {"1": -9.81}},
        ),
    ),
    events=(
        Event(
            "bounce",
            {
                0: Transition(
                    ({"x": 1, "u_x": -1}, {"v": 1, "u_v": -1}), 0, {"v": {"v": -1, "u_v": 2}}
                )
            },
        ),
    ),
)
"""The system of the FMU that build.py makes: an elastic ball on a table whose height is the input."""
