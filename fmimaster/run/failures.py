"""Errors for failed steps and events, and warnings about them: with the names of instances, and advice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fmimaster.base.errors import CallError, ConvergenceError, SimulationError, ZenoError
from fmimaster.base.text import listed
from fmimaster.events.zeno import MOST_MICROSTEPS, Span
from fmimaster.numerics.indicators import ROUNDING
from fmimaster.plan.events import PlanEvent
from fmimaster.plan.plan import Plan
from fmimaster.program.indicator_set import IndicatorSet
from fmimaster.program.indicators import Indicators
from fmimaster.record.causes import Cause
from fmimaster.run.executor import Halt, Reason
from fmimaster.run.log import Late
from fmimaster.system.model import DataType

AGREEMENT = 1e-6
"""Indicators of an event's members may differ by this part of their usual values."""

MOST_NAMES = 6
"""Most names in a list of a message."""

MOST_EXACT = 2**20
"""Largest denominator of a step size in s whose multiples are exact for all practical times."""


def step_failure(plan: Plan, stop: Halt, begin: float, size: float) -> SimulationError:
    """The error for an attempt that stopped and is not tried again; times in s."""
    if stop.reason is Reason.NOT_CONVERGED:
        return ConvergenceError(
            f"An iteration did not converge in the step from t = {begin:.12g} s (size {size:.6g} s): outputs "
            f"still change by {stop.change:.3g} (relative). Use a smaller step size, or a solver: "
            "Waveform(..., solver=LoopSolver()) (--sweeps solver).",
            time=begin,
        )
    name = plan.instances[stop.instance].name
    if stop.reason is Reason.EARLY:
        return _wrong_stop(plan, stop, begin, size)
    if stop.reason is Reason.ENDED:
        return CallError(
            f"DoStep of '{name}' from t = {begin:.12g} s (size {size:.6g} s) ended the run at t = {stop.time:.17g} s, "
            "which is not inside the step. Expected the time that the FMU has reached. Ask the FMU's vendor.",
            instance=name,
            function="DoStep",
            status="terminate",
            time=begin,
        )
    logged = "".join(f"\n  {name}: {message}" for message in stop.messages[-5:])
    return CallError(
        f"DoStep of '{name}' was discarded at t = {begin:.12g} s (step {size:.6g} s); it reached "
        f"t = {stop.time:.12g} s. A fixed step cannot be made smaller during the run. Use a smaller step size"
        + _exact_size(size if stop.time == begin else 0.0)
        + (f" Messages of the FMU:{logged}" if logged else ""),
        instance=name,
        function="DoStep",
        status="Discard",
        messages=stop.messages,
        time=begin,
    )


def _exact_size(refused: float) -> str:
    """The end of an advice on the step size, where an FMU has refused a whole step of a size in s.

    Steps of 0.1 s differ in their last bits, as the points in time do. FMUs with a period of their own that count in
    nanoseconds (Overture's) then refuse some of them.
    """
    if refused.as_integer_ratio()[1] <= MOST_EXACT:
        return "."
    return (
        f", or one that a float holds exactly, such as 0.25 or 0.5 s: steps of {refused:.6g} s differ in their last bits, "
        "and FMUs with a period of their own may refuse those that are no exact multiple of it."
    )


def _wrong_stop(plan: Plan, stop: Halt, begin: float, size: float) -> CallError:
    """The error for an instance that stopped at an event where this is not permitted, by an early return or a discarded
    step."""
    planned = plan.instances[stop.instance]
    if not begin <= stop.time <= begin + size:
        wrong = "which is not inside the step"
    elif planned.may_return_early:
        wrong = "and after its state was restored and it was stepped to an event, it stopped earlier again"
    else:
        wrong = "which was not allowed"
    if planned.event_mode or not planned.may_return_early:
        did, status = "returned early", "early return"
        instead = "run it without Event Mode (event_mode=False, --no-event-mode)"
    else:
        did, status = "was discarded at an event", "Discard"
        instead = "use an event clock with which FMUs do not stop (Predictive, LookAhead)"
    return CallError(
        f"DoStep of '{planned.name}' from t = {begin:.12g} s (size {size:.6g} s) {did} at t = {stop.time:.17g} s, "
        f"{wrong}. Ask the FMU's vendor, or {instead}.",
        instance=planned.name,
        function="DoStep",
        status=status,
        messages=stop.messages,
        time=begin,
    )


def no_progress(names: Sequence[str], time: float) -> CallError:
    """The error for early returns without an event, again and again at about one time in s."""
    who = " or ".join(f"'{name}'" for name in names)
    return CallError(
        f"DoStep of {who} returns early at t = {time:.17g} s again and again, without an event, and time does not advance "
        f"(limit: {MOST_MICROSTEPS} times). Expected steps with a length, or event requests. Ask the FMU's vendor, or run "
        "it without Event Mode (event_mode=False, --no-event-mode).",
        instance=names[0],
        function="DoStep",
        status="early return",
        time=time,
    )


def standing(time: float, cause: Cause) -> SimulationError:
    """The error for steps without a length, at a time in s, at whose end nothing happens."""
    return SimulationError(
        f"The run does not advance beyond t = {time:.17g} s: steps end there again and again ('{cause}'), and nothing "
        f"happens (limit: {MOST_MICROSTEPS} times). Expected steps with a length. Use another step-size rule or "
        "event clock."
    )


def too_short(time: float, length: float, tries: int, error: float) -> SimulationError:
    """The error for a step from ``time`` that is rejected, though it can hardly be shorter; both in s."""
    return SimulationError(
        f"The step from t = {time:.12g} s was rejected {tries} times: the step-size rule proposes {length:.3g} s, and the "
        f"error is still {error:.3g} (1 is accepted). Use a larger tolerance, or check the outputs for NaN and for jumps."
    )


def illegitimate(
    plan: Plan, instances: Collection[int], changing: Collection[str], time: float
) -> SimulationError:
    """The error for events that do not end at one time in s.

    Parameters
    ----------
    instances
        Those that have had the last events.
    changing
        Recorded variables that have changed in them.
    """
    names = [i.name for i in plan.instances]
    who = listed([f"'{names[i]}'" for i in sorted(instances)], MOST_NAMES)
    alone = len(instances) == 1
    does = f"{who} always requests another one" if alone else f"{who} keep each other awake"
    what = f", and {listed(sorted(changing), MOST_NAMES)} still change" if changing else ""
    circle = [
        f"{names[link.source]}.{link.output.name} -> {names[link.target]}.{link.input.name}"
        for link in plan.links
        if link.source in instances and link.target in instances
        if link.input.type is DataType.CLOCK or not link.input.is_continuous
    ]
    through = f" They are connected by {listed(circle, MOST_NAMES)}." if circle else ""
    return SimulationError(
        f"illegitimate: events at t = {time:.12g} s do not end: {does}{what} "
        f"(limit: {MOST_MICROSTEPS} event iterations).{through} Time must advance after finitely many events: look for a "
        "loop of clocks or discrete values without delay, and for countdown clocks whose interval is always 0."
    )


def accumulating(name: str, limit: float, time: float) -> ZenoError:
    """The error for events that accumulate at ``limit``; the last one was at ``time``, both in s."""
    return ZenoError(
        f"zeno: {name}: events accumulate at t = {limit:.12g} s; the last one was at t = {time:.12g} s, and the "
        "gaps between them shrink like those of a geometric series. The model needs a state of rest, such as a "
        "smallest rebound speed.",
        time=time,
        limit=limit,
    )


def too_dense(
    indicators: Indicators,
    instance: int,
    events: Sequence[str],
    recorded: Mapping[str, object],
    span: Span,
) -> SimulationError:
    """The error for events of an instance that happen so often that time hardly advances.

    Parameters
    ----------
    events
        Names of the last of them.
    recorded
        Present values of the instance: those of discrete types show its mode.
    """
    plan, values, found = indicators.plan, indicators.present(), dict[str, object]()
    name = plan.instances[instance].name
    for s in indicators.sets:
        if s.instance == instance:
            declared = s.declaration.indicators
            named = zip(s.z, declared, strict=True)
            found |= {f"{name}.{i.name}": f"{values[z]:.6g}" for z, i in named}
    discrete = {c.name for c in plan.recorded if not c.type.is_float}
    found |= {n: v for n, v in recorded.items() if n in discrete}
    shown = ", ".join(f"{n} = {v}" for n, v in found.items())
    gap = (span.end - span.begin) / span.number
    last = listed([f"'{e}'" for e in dict.fromkeys(events)], MOST_NAMES)
    return SimulationError(
        f"creeping: '{name}' has had {span.number} events from t = {span.begin:.12g} s to "
        f"t = {span.end:.12g} s, one each {gap:.3g} s, within a usual step of {span.step:.6g} s: time hardly advances. The "
        f"last ones: {last}. Now: {shown}. Look for events that cannot be off, for modes that switch each other back at "
        "once, and for indicators that depend on held inputs; or use smaller steps if the system is that fast."
    )


def no_approach(causes: Sequence[str], span: Span) -> SimulationError:
    """The error for steps towards events that are never reached, so many that time hardly advances."""
    return SimulationError(
        f"creeping: {span.number} steps from t = {span.begin:.12g} s to t = {span.end:.12g} s, within a usual step of "
        f"{span.step:.6g} s: time hardly advances. The last ones ended by: {listed([*dict.fromkeys(causes)], MOST_NAMES)}. "
        "Look for an event that is predicted and does not happen: check the derivatives of its indicators; or use smaller "
        "steps."
    )


def next_event_is_nan(names: str, time: float) -> SimulationError:
    """The error for instances that name NaN as the time of their next event."""
    return SimulationError(
        f"UpdateDiscreteStates of {names} returned NaN as the time of the next event, at "
        f"t = {time:.12g} s. Expected a time in s, or that there is none. Ask the FMU's vendor."
    )


def still_on(plan: Plan, event: PlanEvent, time: float, late: Late | None) -> SimulationError:
    """The error for an event whose indicators are all still at or below 0 after it has happened, and how often it was late
    before."""
    names = ", ".join(
        f"{plan.instances[m.instance].name}.{i.name}"
        for m in event.members
        for i in m.declaration.indicators
    )
    advice = "check the FMU's reset, and that the trigger reaches it."
    if late is not None:
        advice = (
            f"but {late.text(event.name)}. If steps are too long for the extrapolation of inputs, events happen where "
            "members do not approach each other. Waveform or a lower order of Polynomial may help too. If "
            f"smaller steps do not help, {advice}"
        )
    return SimulationError(
        f"The event '{event.name}' is still on after it has happened at t = {time:.12g} s: all its "
        f"indicators ({names}) are at or below 0. After the reset at least one must be positive; {advice}"
    )


def unknown_event(name: str, time: float) -> SimulationError:
    """The error for an FMU without Event Mode that has stopped without a known event."""
    return SimulationError(
        f"'{name}' discards its step at t = {time:.12g} s again and again, and time hardly advances, but none of "
        "its events has all indicators at or below 0 there, so it is not known which event it is. Check the indicators "
        "in its manifest, or use an event clock with which FMUs do not stop (Predictive, LookAhead)."
    )


def too_often_late(
    name: str, times: int, first: tuple[float, float], now: tuple[float, float]
) -> SimulationError:
    """The error for an event that was found late again and again; (time in s, largest indicator) at first and now."""
    return SimulationError(
        f"The event '{name}' was found late {times} times, with all its indicators well below 0: first "
        f"at t = {first[0]:.12g} s ({first[1]:.3g}), now at t = {now[0]:.12g} s "
        f"({now[1]:.3g}). It happens more often than steps can follow; perhaps its events accumulate. "
        "Take smaller steps, or the event clock EarlyReturn, which reports the time at which they do."
    )


def close_changes(name: str, time: float, gap: float, step: float) -> str:
    """The warning about discrete outputs of a component that change and change back within a step; all in s."""
    return (
        f"'{name}' has changed discrete outputs and changed them back within {gap:.6g} s at t = {time:.12g} s, and steps "
        f"are {step:.6g} s long: if it does so inside a step, this is not found (Locate). Use shorter steps than that"
    )


def held_apart(name: str, gap: float, time: float) -> str:
    """The warning about bodies of a contact that a force has not held together; ``time`` in s."""
    return (
        f"while a force held the bodies of the contact '{name}', its first indicator was up to {gap:.2g} away from 0, at "
        f"t = {time:.6g} s: steps are too long for the motion to be foreseen. Use smaller steps, or inputs that follow "
        "polynomials (--inputs 2,2)"
    )


def unrepeated(names: Sequence[str], time: float) -> str:
    """The warning about a change of a discrete output that did not occur again in the same step from a time in s."""
    who = " or ".join(f"'{name}'" for name in names)
    return (
        f"a discrete output of {who} changed in a step from t = {time:.12g} s, and not when the step was repeated with the "
        "same length, so the change is not located (Locate): the FMU state that was restored is not complete. Ask the "
        "FMU's vendor"
    )


def no_mass(name: str, event: str, inverse: float) -> SimulationError:
    """The error for a body at a contact with an inverse mass that is none."""
    return SimulationError(
        f"The inverse mass of '{name}' at the contact '{event}' is {inverse:.6g}. Expected a finite number that is not "
        "negative, and 0 for a wall. Check its mass."
    )


def no_restitution(event: str, found: Sequence[float]) -> SimulationError:
    """The error for members of a contact with different restitutions, or with one that is none."""
    told = " and ".join(f"{value:.6g}" for value in found)
    return SimulationError(
        f"The members of the contact '{event}' have the restitutions {told}. Expected the same one, from 0 to 1."
    )


def no_impulses(contacts: Sequence[str], time: float) -> SimulationError:
    """The error for contacts that no impulses can open."""
    return SimulationError(
        f"No impulses can end the approach at the contacts {listed(contacts)} at t = {time:.12g} s: bodies of infinite "
        "mass approach each other there."
    )


def no_forces(contacts: Sequence[str], time: float) -> SimulationError:
    """The error for contacts that no forces can keep closed."""
    return SimulationError(
        f"No forces can keep the contacts {listed(contacts)} from closing at t = {time:.12g} s: bodies of infinite mass "
        "accelerate towards each other there."
    )


def other_velocity(event: str, name: str, indicator: float, speed: float) -> SimulationError:
    """The error for a contact whose second indicator is not the difference of the velocities of its bodies."""
    return SimulationError(
        f"The contact '{event}' opens at the velocity {indicator:.6g} by the second indicator of '{name}', but at "
        f"{speed:.6g} by the velocities and directions that its members declare. Inputs that follow polynomials have no "
        "velocity after an event if derivatives of outputs are not used: use --inputs 2,2, Polynomial(2, 2). Otherwise "
        "correct the element Contact in their manifests."
    )


def check_indicators_are_finite(indicators: Indicators, now: float) -> None:
    """Raise if an event indicator is not a number; ``now`` in s."""
    values, total = indicators.present(), 0.0
    for s in indicators.sets:
        for k in s.z:
            total += values[k]
    if total == total:  # NaN stays NaN in a sum
        return
    plan = indicators.plan
    for s in indicators.sets:
        for k, indicator in zip(s.z, s.declaration.indicators, strict=True):
            if values[k] != values[k]:
                raise SimulationError(
                    f"The event indicator '{plan.instances[s.instance].name}.{indicator.name}' is NaN at "
                    f"t = {now:.12g} s, so no event can be found. Check the FMU's inputs and parameters."
                )


def check_members_agree(indicators: Indicators, event: int, now: float) -> None:
    """Raise if the indicators of an event differ between members whose inputs are all up to date; ``now`` in s."""
    if indicators.is_dropped(event):
        return
    plan, values = indicators.plan, indicators.present()
    first, *others = [s for s in indicators.sets if s.event == event]
    for other in others:
        if len(other.z) != len(first.z):  # differently written conditions
            continue
        for n, (a, b) in enumerate(zip(first.z, other.z, strict=True)):
            largest = max(_disagreement(indicators, first, n), _disagreement(indicators, other, n))
            if abs(values[a] - values[b]) > largest:
                told = " but ".join(
                    f"'{plan.instances[s.instance].name}."
                    f"{s.declaration.indicators[n].name}' is {values[s.z[n]]:.12g}"
                    for s in (first, other)
                )
                raise SimulationError(
                    f"The members of the shared event '{plan.events[event].name}' disagree at t = {now:.12g} s: "
                    f"{told}, though both have the same inputs. They must use the same condition for the event; "
                    "compare their parameters and the connections."
                )


def _disagreement(indicators: Indicators, s: IndicatorSet, n: int) -> float:
    """Largest accepted difference of an indicator between two members, in its unit."""
    return max(AGREEMENT * indicators.usual(s, n), ROUNDING * indicators.scales.of_inputs(s.z[n]))
