"""Contacts whose impulses and forces the run determines: impacts, rest, and opening.

At an instant the impulses of all bodies that touch are one linear complementarity problem. A contact in which nothing moves
and that is pressed is then held by a force, and its event does not happen, until that force becomes 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import inf

import numpy as np

from fmimaster.events.complementarity import Rows, impulses, part, product, solve
from fmimaster.events.indicator_courses import first_time_all_reached
from fmimaster.events.predictive import APPROACH, NEAR, NOW
from fmimaster.instants.grid import rounding
from fmimaster.instants.instant import Goal, Instant
from fmimaster.program.scales import REST
from fmimaster.program.store import floats
from fmimaster.record.causes import Cause, Event, Kind
from fmimaster.run.bodies import Bodies, Vector
from fmimaster.run.failures import no_forces, no_impulses
from fmimaster.run.loop import Loop, LoopPart

FLIGHT = 1e-3
"""A contact whose next flight would be shorter than this part of a usual step is plastic: it stays closed."""

SLOWER, SLOW = 4, 1e-2
"""Hits of a contact that accumulate end with a plastic one if so many have become slower, or if all these were slower than
the second part of the largest velocity."""

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
        self._bodies = Bodies(loop)
        self._all = self._bodies.contacts
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
        chosen = self._bodies.touching(hit)
        w, rates = self._bodies.measured(chosen)
        array, restitutions = self._bodies.matrix(chosen), self._bodies.restitutions(chosen)
        free = (rates - array @ self._forces_at(chosen, self._state.time.seconds)).tolist()
        # lists from here on: most hits are at one contact
        matrix, speeds = array.tolist(), w.tolist()
        least, tiny = self._bodies.negligible(chosen)
        # in a row of bodies at rest it is the hit that counts
        hardest = REST * max(map(abs, speeds))
        near = [max(one, hardest) for one in least.tolist()]
        slow = [self._slow(matrix, free, restitutions, k) for k in range(len(chosen))]
        for k in self._collapsing(chosen, speeds):
            slow[k] = inf
        found = impulses(matrix, speeds, restitutions, slow, near)
        if found is None:
            raise no_impulses(self._bodies.names_of(chosen), self._state.time.seconds)
        self._bodies.check_velocities(chosen, speeds)
        pushes, order = found
        self._bodies.note_speeds(chosen, [matrix[k][k] * push for k, push in enumerate(pushes)])
        after = [v + product(row, pushes) for v, row in zip(speeds, matrix, strict=True)]
        still = [k for k, v in enumerate(after) if abs(v) <= near[k]]
        self._hold(chosen, matrix, free, still, tiny)
        happening = {e: c for e, c in fired.items() if e not in self._all}
        for e, push in zip(chosen, pushes, strict=True):
            for body in self._all[e].bodies:
                self._values[body.impulse] = push
        return happening | {chosen[k]: fired.get(chosen[k], cause) for k in order}

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
        matrix = self._bodies.matrix(chosen)
        forces = self._forces(chosen, matrix, now)
        cubics = np.zeros((len(chosen), 4))
        cubics[:, : len(forces)] = forces.T
        opening = [first_time_all_reached([cubic], h) for cubic in cubics.tolist()]
        _, tiny = self._bodies.negligible(chosen)
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
        w, _ = self._bodies.measured(chosen)
        least, _ = self._bodies.negligible(chosen)
        values = self._indicators.present()
        apart = [
            e
            for e, speed, tiny in zip(chosen, w, least, strict=True)
            if min(speed, *(values[i.z[1]] for i in self._bodies.known(self._all[e]))) > tiny
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
        first = solve(matrix.tolist(), course[0].tolist())
        if first is None:
            raise no_forces(self._bodies.names_of(chosen), now)
        forces[0] = first
        at = np.flatnonzero(forces[0] > 0.0)
        if len(course) > 1 and len(at):
            pressed = matrix[np.ix_(at, at)]
            forces[1:, at] = np.linalg.lstsq(pressed, -course[1:, at].T, rcond=None)[0].T
        return forces

    def _collapsing(self, chosen: Sequence[int], speeds: Sequence[float]) -> list[int]:
        """Which of these contacts have slow hits that accumulate, or become slower: the last ones may be plastic.

        Bodies between others lose their velocities by an infinite number of hits before a finite time (inelastic collapse:
        McNamara and Young 1992). A light one between two that squeeze it becomes faster.
        """
        s, now, found = self._state, self._state.time.seconds, []
        for k, e in enumerate(chosen):
            if speeds[k] < 0.0:
                s.approaches[e] = (*s.approaches.get(e, ()), -speeds[k])[-SLOWER:]
            recent, name = s.approaches.get(e, ()), self._plan.events[e].name
            largest = self._indicators.scales.largest_with_inputs(self._all[e].sets[0].z[1])
            is_slow = max(recent, default=0.0) < SLOW * largest
            is_slower = len(recent) == SLOWER and all(b < a for a, b in pairwise(recent))
            if (is_slow or is_slower) and s.accumulating.would_accumulate(name, now, self._step):
                s.accumulating.forget(name)
                found.append(k)
        return found

    def _slow(
        self, matrix: Rows, free: Sequence[float], restitutions: Sequence[float], k: int
    ) -> float:
        """The velocity of an approach below which the next flight would be too short; the other contacts stay closed."""
        others, rate = [i for i in range(len(free)) if i != k], free[k]
        forces = solve(part(matrix, others), [free[i] for i in others])
        if forces is not None:
            rate += product([matrix[k][i] for i in others], forces)
        is_lasting = rate >= 0.0 or restitutions[k] == 0.0
        return 0.0 if is_lasting else -rate * FLIGHT * self._step / (2 * restitutions[k])

    # Contacts that are held --------------------------------------------------------------------------------------------

    def _hold(
        self,
        chosen: Sequence[int],
        matrix: Rows,
        free: Sequence[float],
        still: Sequence[int],
        tiny: float,
    ) -> None:
        """Which of these contacts are held from now on, and their forces; ``still``: where nothing moves, by position."""
        s, forces = self._state, [0.0] * len(chosen)
        found = solve(part(matrix, still), [free[k] for k in still])
        if found is None:
            raise no_forces(self._bodies.names_of(chosen), s.time.seconds)
        for k, force in zip(still, found, strict=True):
            forces[k] = force if force * matrix[k][k] > tiny else 0.0
        pressed = {e for e, force in zip(chosen, forces, strict=True) if force > 0.0}
        s.held = s.held.difference(chosen)
        s.loose = s.loose.difference(chosen) | ({chosen[k] for k in still} - pressed)
        self._press(pressed)
        s.free = ()
        self._store({e: [force] for e, force in zip(chosen, forces, strict=True)})

    def _press(self, pressed: Collection[int]) -> None:
        """Hold these contacts from now on."""
        s, values = self._state, self._indicators.present()
        s.held |= set(pressed)
        s.loose -= set(pressed)
        new = sorted(set(pressed) - s.closed.keys())
        closed = dict(s.closed)
        for e, place in zip(new, self._bodies.places(new), strict=True):
            closed[e] = place - values[self._bodies.known(self._all[e])[0].z[0]]
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
        # else the step is tried again, and the forces are those of the first try
        if not s.free or s.free[0][0] != now:
            _, rates = self._bodies.measured(chosen)
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
        w, _ = self._bodies.measured(chosen)
        places, closed = self._bodies.places(chosen), self._state.closed
        gaps = np.array([x - closed.get(e, x) for e, x in zip(chosen, places, strict=True)])
        gaps[~held] = 0.0
        self._note_gaps(chosen, gaps)
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
        least, _ = self._bodies.negligible(chosen)
        back[:, ~held] = 0.0
        # what opens must not approach
        back[0, ~held] = np.where(w < -least, -w / length, 0.0)[~held]
        at = np.flatnonzero(back.any(axis=0) | held)
        corrected = np.zeros((len(back), len(chosen)))
        corrected[:, at] = np.linalg.lstsq(matrix[np.ix_(at, at)], back[:, at].T, rcond=None)[0].T
        corrected[: len(forces), held] += forces[:, held]
        self._store({e: corrected[:, k].tolist() for k, e in enumerate(chosen)})
        self._executor.run(self._programs.forces, now, now)

    def _note_gaps(self, chosen: Sequence[int], gaps: Vector) -> None:
        """Note gaps that are too large at the present time."""
        s, scales = self._state, self._indicators.scales
        for e, gap in zip(chosen, np.abs(gaps).tolist(), strict=True):
            name, (first, second) = self._plan.events[e].name, self._all[e].sets[0].pairs
            way = scales.largest_with_inputs(second[1]) * self._step**2 / 2
            largest, _ = s.gaps.get(name, (0.0, 0.0))
            if gap > max(largest, GAP * way, scales.negligible(*first)):
                s.gaps[name] = gap, s.time.seconds
