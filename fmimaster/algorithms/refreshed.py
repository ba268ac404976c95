"""Refreshed: updates outputs that depend directly on inputs to the new inputs, at the end of each step."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fmimaster.algorithms.settling import Settling, visits_among
from fmimaster.algorithms.wrapper import Wrapper
from fmimaster.base.data import dataclass
from fmimaster.base.text import listed
from fmimaster.events.zeno import MOST_MICROSTEPS
from fmimaster.inputs.polynomial import HOLD
from fmimaster.plan.layout import Group
from fmimaster.plan.plan import Plan
from fmimaster.program.emitter import Emitter
from fmimaster.system.states import State


@dataclass(frozen=True, slots=True)
class Refreshed(Wrapper):
    """Step by the base, then update outputs that depend directly on connected inputs to the new inputs.

    At the end of a step such an output belongs to the held or extrapolated input. Other instances would start the next
    step with it, although a better value is known. The outputs are updated in the order of their dependencies:

    * FMUs with Event Mode, without own events and without discrete inputs: the new inputs are set in Event
      Mode, and the outputs are read again. This is exact, and algebraic loops among such FMUs are solved.
      ``UpdateDiscreteStates``, which ends Event Mode, would execute an event; therefore FMUs with events are excluded.
    * other FMUs that declare a linear dependence (dependenciesKind): the partial derivative times the change of the
    inputs is added, which is exact. * all other FMUs keep their outputs. FMI forbids reading outputs after setting
    inputs in Step Mode, so this is not tried.

    Parameters
    ----------
    base : Algorithm
    linearized : bool
        Whether directional derivatives are also used where the dependence may not be linear. For a smooth dependence,
        the error is of second order in the change of the inputs. A damper whose force is the square root of the
        velocity has an infinite derivative at rest: its results become far worse.

    Source: fmimaster, as the feed-through refresh of the interface Jacobian's direct part; FMI 3.0.2, sections 2.3.5 and
    4.2.1.
    """

    linearized: bool = False

    @property
    def refreshes(self) -> bool:
        """True: in FMUs with Event Mode."""
        return True

    @property
    def measures_itself(self) -> bool:
        """True: it measures between the steps and the refresh."""
        return True

    def notes(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, and how outputs are refreshed."""
        found = [(how, sorted(names)) for how, names in self._ways(plan) if names]
        said = (f"Outputs of {listed(names)} are refreshed {how}." for how, names in found)
        return (*self.base.notes(plan, before), *said)

    def accuracy_warnings(self, plan: Plan, before: Collection[int] = ()) -> tuple[str, ...]:
        """Those of the base, and the outputs that are not refreshed."""
        stale = [i for i in plan.members if self._is_stale(plan, i)]
        names = sorted(f"'{plan.instances[i].name}'" for i in stale)
        said = (
            f"Outputs of {listed(names)} depend directly on inputs and are not refreshed: the FMU has no Event Mode that "
            "can be used for it, and does not declare that the dependence is linear (dependenciesKind)."
        )
        if any(plan.corrections[i].means is not None for i in stale):
            said += (
                " If it is nearly linear, linearized=True (--refresh-linearized) corrects them by directional "
                "derivatives."
            )
        return (*self.base.accuracy_warnings(plan, before), *((said,) if stale else ()))

    def emit(self, plan: Plan, p: Emitter) -> None:
        """Write one attempt."""
        self.base.emit(plan, p)
        if not self.base.measures_itself:
            p.measure()
        self._refresh(plan, p)
        p.remeasure()

    def _refresh(self, plan: Plan, p: Emitter) -> None:
        """Write the update of outputs that depend directly on inputs, to the new inputs."""
        modes = [i for i in plan.members if _has_event_mode(plan, i)]
        others = [i for i in plan.members if self._is_corrected(plan, i)]
        for i in modes:
            p.mode(i, State.EVENT_MODE)
        for visit in visits_among(plan, [*modes, *others]):
            asked = [i for i in visit.instances if i in modes]
            if asked:
                _ask(plan, p, asked)
            p.correct(i for i in visit.instances if i in others)
        for i in modes:
            p.mode(i, State.STEP_MODE)

    def _is_corrected(self, plan: Plan, i: int) -> bool:
        """Whether outputs of an instance are corrected by partial derivatives."""
        correction = plan.corrections.get(i)
        if correction is None or correction.means is None or _has_event_mode(plan, i):
            return False
        return correction.is_linear or self.linearized

    def _is_stale(self, plan: Plan, i: int) -> bool:
        is_refreshed = _has_event_mode(plan, i) or self._is_corrected(plan, i)
        return i in plan.corrections and not is_refreshed

    def _ways(self, plan: Plan) -> Iterator[tuple[str, list[str]]]:
        """The ways in which outputs are refreshed, in words, and the names of the instances."""
        name = {i: f"'{plan.instances[i].name}'" for i in plan.members}
        yield "in Event Mode", [name[i] for i in plan.members if _has_event_mode(plan, i)]
        for means in dict.fromkeys(c.means for c in plan.corrections.values() if c.means):
            corrected = [i for i in plan.members if self._is_corrected(plan, i)]
            yield means.value, [name[i] for i in corrected if plan.corrections[i].means is means]


def _ask(plan: Plan, p: Emitter, instances: Collection[int]) -> None:
    """Set inputs in Event Mode, and read outputs; Event Mode ends when no update requires another one."""
    with p.repeat(least=1, most=MOST_MICROSTEPS, tolerance=float("inf")):
        if len(instances) > 1:
            Settling().at_an_event(plan, p, instances)
        for i in instances:
            p.inputs(i, HOLD, for_all=True)
            p.update(i)
            p.get(i)


def _has_event_mode(plan: Plan, i: int) -> bool:
    """Whether outputs of an instance depend directly on inputs, and can be read again in Event Mode without an
    event."""
    has_events = plan.triggers_of(i) or (i, Group.DISCRETE) in plan.routes
    return plan.instances[i].refreshed and i in plan.corrections and not has_events
