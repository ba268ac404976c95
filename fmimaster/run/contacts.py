"""Contacts whose impulses and forces the run determines: impacts, rest, and opening.

At an instant the impulses of all bodies that touch are one linear complementarity problem. A contact in which nothing moves
and that is pressed is then held by a force, and its event does not happen, until that force becomes 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fmimaster.events.complementarity import Vector, impulses, solve
from fmimaster.events.indicator_courses import first_time_all_reached
from fmimaster.events.predictive import APPROACH, NEAR, NOW
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.program.indicator_set import ContactPlan, IndicatorSet, contact_plans
from fmimaster.program.scales import REST
from fmimaster.program.store import floats
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.failures import (
    no_forces,
    no_impulses,
    no_mass,
    no_restitution,
    other_velocity,
)
from fmimaster.run.loop import Loop, LoopPart

FLIGHT = 1e-3
"""A contact whose next flight would be shorter than this part of a usual step is plastic: it stays closed."""

PRESSED = 1e-6
"""A contact is pressed if it would close at a rate above this part of the largest one."""

AGREEMENT = 0.1
"""The velocities of the two bodies of a contact and its second indicator may differ by this part of the largest one: by
extrapolated inputs they do so by less, and by a wrong sign or variable in a manifest by more."""

GAP = 2e-2
"""A force holds a contact well enough if the gap is at most this part of the way that the bodies would move apart or into
each other in a usual step without it. States are then wrong by a thousandth of the motion at most."""

MOST_POINTS = 3
"""Points by which forces over the next step are foreseen."""

RESTS, OPENS = Cause(Kind.RESTS), Cause(Kind.OPENS)


class Contacts(LoopPart):
    """Contacts of bodies: their impulses at impacts, and the forces that hold those that rest.

    The velocities ``w`` at which contacts open change with impulses ``p`` by ``W p``, their rates with forces likewise.
    A contact with ``w = 0`` that is pressed is held: by a force at which ``w`` stays 0. It opens where that becomes 0.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._all = {
            c.event: c
            for c in contact_plans(loop.plan, loop.indicators.sets, loop.programs.polynomial_inputs)
        }
        self._values = floats(loop.executor.store.values)
        self._step = float(loop.rule.exact_size)
        self._recorded = loop.recorded

    @property
    def events(self) -> Collection[int]:
        """Their events."""
        return self._all.keys()

    def with_impulses(self, fired: Mapping[int, Cause], cause: Cause) -> dict[int, Cause]:
        """Events that happen at this instant, with the other contacts in which there are impacts then.

        The impulses are stored, and the contacts that are held from now on, with their forces.
        """
        fired = dict(sorted(fired.items()))
        hit = [e for e in fired if e in self._all]
        if not hit:
            return fired
        chosen = self._touching(hit)
        w, rates = self._measured(chosen)
        matrix, restitutions = self._matrix(chosen), self._restitutions(chosen)
        free = rates - matrix @ self._forces_at(chosen, self._state.time.seconds)
        least, tiny = self._negligible(chosen)
        least = np.maximum(
            least, REST * np.abs(w).max()
        )  # in a row of bodies at rest it is the hit that counts
        slow = np.array([self._slow(matrix, free, restitutions, k) for k in range(len(chosen))])
        found = impulses(matrix, w, restitutions, slow, least)
        if found is None:
            raise no_impulses(self._names_of(chosen), self._state.time.seconds)
        self._check_velocities(chosen, w)
        pushes, order = found
        self._note_speeds(chosen, pushes * np.diagonal(matrix))
        still = np.abs(w + matrix @ pushes) <= least
        self._hold(chosen, matrix, free, still, tiny)
        happening = {e: c for e, c in fired.items() if e not in self._all}
        for e, push in zip(chosen, pushes, strict=True):
            for body in self._all[e].bodies:
                self._values[body.impulse] = push
        return happening | {chosen[k]: fired.get(chosen[k], cause) for k in order}

    def _check_velocities(self, chosen: Sequence[int], w: Vector) -> None:
        """Raise if the velocities of bodies are not those of a contact by its second indicator."""
        values, outdated = self._indicators.present(), self._indicators.outdated
        for e, speed in zip(chosen, w, strict=True):
            for s in self._all[e].sets:
                z = s.z[1]
                size = AGREEMENT * self._indicators.scales.largest_with_inputs(z)
                if s.number not in outdated and abs(values[z] - speed) > size:
                    names = self._plan.events[e].name, self._names[s.instance]
                    raise other_velocity(*names, values[z], float(speed))

    def _note_speeds(self, chosen: Sequence[int], speeds: Vector) -> None:
        """Velocities that bodies had between two impacts at one instant are among their largest ones."""
        largest = self._indicators.store.largest
        for e, speed in zip(chosen, speeds, strict=True):
            slots = [b.velocity for b in self._all[e].bodies]
            for k in [*slots, *(s.z[1] for s in self._all[e].sets)]:
                largest[k] = max(largest[k], speed)

    def note(self, before: frozenset[int]) -> None:
        """Note in the results which contacts are at rest now, and which have opened, since these were held."""
        held, log = self._state.held, self._state.event_log
        for e in sorted(held ^ before):
            event, who = self._plan.events[e], self._who(sorted(self._plan.events[e].instances))
            values = self._recorded(who)
            cause = RESTS if e in held else OPENS
            now = self._state.time.seconds, self._state.index
            log.events.append(Event(*now, event.name, True, who, cause, values, values))

    def step_to(self, goal: Goal) -> Goal | None:
        """Set the forces over a step, which ends where a contact opens; None if one opens now, or is pressed again."""
        s, now = self._state, self._state.time.seconds
        self._let_go()
        if not s.touching or goal.end.seconds <= now:
            return goal
        chosen, h = sorted(s.touching), goal.end.seconds - now
        matrix = self._matrix(chosen)
        forces = self._forces(chosen, matrix, now)
        cubics = np.zeros((len(chosen), 4))
        cubics[:, : len(forces)] = forces.T
        opening = [first_time_all_reached([cubic], h) for cubic in cubics.tolist()]
        _, tiny = self._negligible(chosen)
        stays = (np.array(opening) > NOW * self._step) & (forces[0] * np.diagonal(matrix) > tiny)
        pressed = {e for e, stay in zip(chosen, stays, strict=True) if stay}
        if pressed != s.held:
            for body in (b for e in pressed ^ s.held for b in self._all[e].bodies):
                self._values[body.impulse] = 0.0
            for e in sorted(s.held - pressed):
                self._open(e)
            self._press(pressed - s.held)
            self._executor.run(self._programs.forces, now, now)
            return None
        tau = min((t for t, stay in zip(opening, stays, strict=True) if stay), default=inf)
        if tau < h:
            name = self._plan.events[chosen[opening.index(tau)]].name
            h = max(tau, rounding(now, self._step)) if tau <= NEAR * self._step else APPROACH * tau
            goal = Goal(Instant(now + h), Cause(Kind.PREDICTED, (name,)))
        self._give(chosen, forces, matrix, now, h)
        return goal

    def _let_go(self) -> None:
        """Contacts that have moved apart are none any more: they open, and all members see it."""
        s = self._state
        if not s.loose:
            return
        chosen = sorted(s.loose)
        w, _ = self._measured(chosen)
        least, _ = self._negligible(chosen)
        values = self._indicators.present()
        apart = [
            e
            for e, speed, tiny in zip(chosen, w, least, strict=True)
            if min(speed, *(values[i.z[1]] for i in self._known(self._all[e]))) > tiny
        ]
        if apart:
            s.loose = s.loose.difference(apart)
            s.free = ()
            self._store(dict.fromkeys(apart, (0.0,)))
            self._executor.run(self._programs.forces, s.time.seconds, s.time.seconds)
            self._forget(s.closed)

    def _forces(self, chosen: Sequence[int], matrix: Vector, now: float) -> Vector:
        """The forces of these contacts, as coefficients of the time from now."""
        course = self._course(chosen, matrix, now)
        forces = np.zeros_like(course)
        first = solve(matrix, course[0])
        if first is None:
            raise no_forces(self._names_of(chosen), now)
        forces[0] = first
        at = np.flatnonzero(first > 0.0)
        if len(course) > 1 and len(at):
            pressed = matrix[np.ix_(at, at)]
            forces[1:, at] = np.linalg.lstsq(pressed, -course[1:, at].T, rcond=None)[0].T
        return forces

    # Data of contacts --------------------------------------------------------------------------------------------------

    def _touching(self, hit: Sequence[int]) -> list[int]:
        """Contacts that these reach over bodies of other contacts that are closed."""
        touching = self._state.touching
        closed = {e for e in self._all if e in touching or self._is_closed(self._all[e])}
        found, new, values = set(hit), list(hit), self._indicators.present()
        while new:
            keys = {b.key for b in self._all[new.pop()].bodies if values[b.inverse_mass] != 0.0}
            for e in closed - found:
                if any(b.key in keys for b in self._all[e].bodies):
                    found.add(e)
                    new.append(e)
        return sorted(found)

    def _is_closed(self, contact: ContactPlan) -> bool:
        values = self._indicators.present()
        return any(self._indicators.is_closed(s, values) for s in self._known(contact))

    def _known(self, contact: ContactPlan) -> list[IndicatorSet]:
        """Its sets of indicators, those first that show the present."""
        outdated = self._indicators.outdated
        return [s for s in contact.sets if s.number not in outdated] or [*contact.sets]

    def _measured(self, chosen: Sequence[int]) -> tuple[Vector, Vector]:
        """The velocities at which contacts open, and their rates.

        Those of the bodies themselves are exact at each point; indicators depend on extrapolated inputs.
        """
        values, found = self._indicators.present(), []
        for e in chosen:
            _, dz = self._known(self._all[e])[0].pairs[1]
            bodies = self._all[e].bodies
            w = sum(b.direction * values[b.velocity] for b in bodies)
            has_rates = all(b.rate >= 0 for b in bodies)
            rate = sum(b.direction * values[b.rate] for b in bodies) if has_rates else values[dz]
            found.append((w, rate))
        return np.array([w for w, _ in found]), np.array([rate for _, rate in found])

    def _places(self, chosen: Sequence[int]) -> list[float]:
        """The gaps, up to a constant: by the positions of the bodies, if they are published, otherwise by the indicator."""
        values, found = self._indicators.present(), []
        for e in chosen:
            bodies = self._all[e].bodies
            if all(b.position >= 0 for b in bodies):
                found.append(sum(b.direction * values[b.position] for b in bodies))
            else:
                found.append(values[self._known(self._all[e])[0].z[0]])
        return found

    def _negligible(self, chosen: Sequence[int]) -> tuple[Vector, float]:
        """The velocities of contacts that are rounding, and the rates that press none of them."""
        pairs = [s.pairs[1] for e in chosen for s in self._all[e].sets]
        least = [self._indicators.scales.rest(self._all[e].sets[0].pairs[1][0]) for e in chosen]
        largest = max(self._indicators.scales.largest_with_inputs(dz) for _, dz in pairs)
        return np.array(least), PRESSED * largest

    def _matrix(self, chosen: Sequence[int]) -> Vector:
        """The change of the velocities of contacts by impulses."""
        values, matrix = self._indicators.present(), np.zeros((len(chosen), len(chosen)))
        of_body: dict[tuple[int, str], list[tuple[int, float]]] = {}
        for k, e in enumerate(chosen):
            for body in self._all[e].bodies:
                inverse = values[body.inverse_mass]
                if not 0.0 <= inverse < inf:
                    raise no_mass(self._names[body.key[0]], self._plan.events[e].name, inverse)
                of_body.setdefault(body.key, []).append((k, body.direction))
                for other, direction in of_body[body.key]:
                    change = inverse * body.direction * direction
                    matrix[k, other] += change
                    matrix[other, k] += change if other != k else 0.0
        return matrix

    def _restitutions(self, chosen: Sequence[int]) -> Vector:
        values, found = self._indicators.present(), []
        for e in chosen:
            of_bodies = [values[b.restitution] for b in self._all[e].bodies]
            if len({*of_bodies}) > 1 or not 0.0 <= of_bodies[0] <= 1.0:
                raise no_restitution(self._plan.events[e].name, of_bodies)
            found.append(of_bodies[0])
        return np.array(found)

    def _slow(self, matrix: Vector, free: Vector, restitutions: Vector, k: int) -> float:
        """The velocity of an approach below which the next flight would be too short; the other contacts stay closed."""
        others = np.arange(len(free)) != k
        forces = solve(matrix[np.ix_(others, others)], free[others])
        rate = free[k] if forces is None else free[k] + matrix[k, others] @ forces
        if rate >= 0.0 or restitutions[k] == 0.0:
            return 0.0
        return float(-rate * FLIGHT * self._step / (2 * restitutions[k]))

    # Contacts that are held --------------------------------------------------------------------------------------------

    def _hold(
        self,
        chosen: Sequence[int],
        matrix: Vector,
        free: Vector,
        still: NDArray[np.bool_],
        tiny: float,
    ) -> None:
        """Which of these contacts are held from now on, and their forces."""
        s, at = self._state, np.flatnonzero(still)
        forces = np.zeros(len(chosen))
        found = solve(matrix[np.ix_(at, at)], free[at])
        if found is None:
            raise no_forces(self._names_of(chosen), s.time.seconds)
        forces[at] = found
        forces[forces * np.diagonal(matrix) <= tiny] = 0.0
        pressed = {e for e, force in zip(chosen, forces, strict=True) if force > 0.0}
        s.held = s.held.difference(chosen)
        s.loose = s.loose.difference(chosen) | ({chosen[k] for k in at.tolist()} - pressed)
        self._press(pressed)
        s.free = ()
        self._store(dict(zip(chosen, forces[:, np.newaxis].tolist(), strict=True)))

    def _press(self, pressed: Collection[int]) -> None:
        """Hold these contacts from now on."""
        s, values = self._state, self._indicators.present()
        s.held |= set(pressed)
        s.loose -= set(pressed)
        new = sorted(set(pressed) - s.closed.keys())
        closed = dict(s.closed)
        for e, place in zip(new, self._places(new), strict=True):
            closed[e] = place - values[self._known(self._all[e])[0].z[0]]
        self._forget(closed)

    def _forget(self, closed: Mapping[int, float]) -> None:
        """Keep where bodies have met for contacts that touch."""
        s = self._state
        s.closed = {e: place for e, place in closed.items() if e in s.touching}
        self._indicators.held = s.touching

    def _open(self, event: int) -> None:
        s = self._state
        s.held -= {event}
        s.loose |= {event}
        self._indicators.held = s.touching
        s.free = ()
        self._store({event: [0.0]})

    def _store(self, forces: Mapping[int, Sequence[float]]) -> None:
        """Note forces from now on, as coefficients, for the FMUs."""
        s, now = self._state, self._state.time.seconds
        kept = {e: [float(self._forces_at([e], now)[0])] for e in s.forces if e not in forces}
        s.forces, s.forces_at = {e: tuple(c) for e, c in (kept | {**forces}).items()}, now
        for e, coefficients in s.forces.items():
            for body in self._all[e].bodies:
                self._values[body.force] = coefficients[0]
                for k, slot in enumerate(body.coefficients):
                    self._values[slot] = coefficients[k] if k < len(coefficients) else 0.0

    def _forces_at(self, chosen: Sequence[int], time: float) -> Vector:
        """The forces at a time in s by the coefficients that the FMUs have."""
        age = time - self._state.forces_at
        given = (self._state.forces.get(e, (0.0,)) for e in chosen)
        return np.array([sum(c * age**k for k, c in enumerate(of_one)) for of_one in given])

    def _course(self, chosen: Sequence[int], matrix: Vector, now: float) -> Vector:
        """The rates of contacts without their forces, as coefficients of the time from now: through the last points."""
        s = self._state
        if (
            not s.free or s.free[0][0] != now
        ):  # else the step is tried again, and the forces are those of the first try
            _, rates = self._measured(chosen)
            free = tuple((rates - matrix @ self._forces_at(chosen, now)).tolist())
            s.free = ((now, free), *s.free)[:MOST_POINTS]
        times = np.array([t - now for t, _ in s.free])
        powers = np.vander(times / self._step, increasing=True)
        scale = self._step ** np.arange(len(times))
        found = np.linalg.solve(powers, np.array([f for _, f in s.free]))
        return np.asarray(found / scale[:, np.newaxis], np.float64)

    def _give(
        self, chosen: Sequence[int], forces: Vector, matrix: Vector, now: float, h: float
    ) -> None:
        """Give the FMUs the forces of a step of the length h in s, with what brings gap and velocity back to 0."""
        held = np.array([e in self._state.held for e in chosen])
        w, _ = self._measured(chosen)
        places, closed = self._places(chosen), self._state.closed
        gaps = np.array([x - closed.get(e, x) for e, x in zip(chosen, places, strict=True)])
        gaps[~held] = 0.0
        length = max(h, self._step)
        follows = all(b.coefficients for e in chosen for b in self._all[e].bodies)
        if follows:
            back = np.zeros((max(2, len(forces)), len(chosen)))
            back[0] = -(6 * gaps / length + 4 * w) / length
            back[1] = (12 * gaps / length + 6 * w) / length**2
        else:  # a constant force does it in two steps
            means = h ** np.arange(len(forces)) / np.arange(1, len(forces) + 1)
            forces = (means @ forces)[np.newaxis]
            back = -((gaps / length + 1.5 * w) / length)[np.newaxis]
        least, _ = self._negligible(chosen)
        back[:, ~held] = 0.0
        back[0, ~held] = np.where(w < -least, -w / length, 0.0)[
            ~held
        ]  # what opens must not approach
        at = np.flatnonzero(back.any(axis=0) | held)
        corrected = np.zeros((len(back), len(chosen)))
        corrected[:, at] = np.linalg.lstsq(matrix[np.ix_(at, at)], back[:, at].T, rcond=None)[0].T
        corrected[: len(forces), held] += forces[:, held]
        self._store({e: corrected[:, k].tolist() for k, e in enumerate(chosen)})
        self._executor.run(self._programs.forces, now, now)

    def _names_of(self, chosen: Iterable[int]) -> list[str]:
        return [self._plan.events[e].name for e in chosen]
