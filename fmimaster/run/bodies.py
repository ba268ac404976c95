"""What the members of contacts publish about their bodies: velocities, rates, places, masses and restitutions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from fmimaster.program.indicator_set import ContactPlan, IndicatorSet, contact_plans
from fmimaster.run.failures import no_mass, no_restitution, other_velocity
from fmimaster.run.loop import Loop, LoopPart

PRESSED = 1e-6
"""A contact is pressed if it would close at a rate above this part of the largest one."""

AGREEMENT = 0.1
"""The velocities of the two bodies of a contact and its second indicator may differ by this part of the largest one: by
extrapolated inputs they do so by less, and by a wrong sign or variable in a manifest by more."""


Vector = NDArray[np.float64]


class Bodies(LoopPart):
    """The bodies of contacts as they are at present. Contacts are given by their events."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        plans = contact_plans(loop.plan, loop.indicators.sets, loop.programs.polynomial_inputs)
        self.contacts = {c.event: c for c in plans}

    def touching(self, hit: Sequence[int]) -> list[int]:
        """Contacts that these reach over bodies of other contacts that are closed."""
        touching = self._state.touching
        closed = {e for e in self.contacts if e in touching or self._is_closed(self.contacts[e])}
        found, new, values = set(hit), list(hit), self._indicators.present()
        while new:
            keys = {b.key for b in self.contacts[new.pop()].bodies if values[b.inverse_mass] != 0.0}
            for e in closed - found:
                if any(b.key in keys for b in self.contacts[e].bodies):
                    found.add(e)
                    new.append(e)
        return sorted(found)

    def _is_closed(self, contact: ContactPlan) -> bool:
        values = self._indicators.present()
        return any(self._indicators.is_closed(s, values) for s in self.known(contact))

    def known(self, contact: ContactPlan) -> list[IndicatorSet]:
        """Its sets of indicators, those first that show the present."""
        outdated = self._indicators.outdated
        return [s for s in contact.sets if s.number not in outdated] or [*contact.sets]

    def measured(self, chosen: Sequence[int]) -> tuple[Vector, Vector]:
        """The velocities at which contacts open, and their rates.

        Those of the bodies themselves are exact at each point; indicators depend on extrapolated inputs.
        """
        values, found = self._indicators.present(), []
        for e in chosen:
            _, dz = self.known(self.contacts[e])[0].pairs[1]
            bodies = self.contacts[e].bodies
            w = sum(b.direction * values[b.velocity] for b in bodies)
            has_rates = all(b.rate >= 0 for b in bodies)
            rate = sum(b.direction * values[b.rate] for b in bodies) if has_rates else values[dz]
            found.append((w, rate))
        return np.array([w for w, _ in found]), np.array([rate for _, rate in found])

    def places(self, chosen: Sequence[int]) -> list[float]:
        """The gaps, up to a constant: by the positions of the bodies, if they are published, otherwise by the indicator."""
        values, found = self._indicators.present(), []
        for e in chosen:
            bodies = self.contacts[e].bodies
            if all(b.position >= 0 for b in bodies):
                found.append(sum(b.direction * values[b.position] for b in bodies))
            else:
                found.append(values[self.known(self.contacts[e])[0].z[0]])
        return found

    def negligible(self, chosen: Sequence[int]) -> tuple[Vector, float]:
        """The velocities of contacts that are rounding, and the rates that press none of them."""
        pairs = [s.pairs[1] for e in chosen for s in self.contacts[e].sets]
        least = [self._indicators.scales.rest(self.contacts[e].sets[0].pairs[1][0]) for e in chosen]
        largest = max(self._indicators.scales.largest_with_inputs(dz) for _, dz in pairs)
        return np.array(least), PRESSED * largest

    def matrix(self, chosen: Sequence[int]) -> Vector:
        """The change of the velocities of contacts by impulses."""
        values, matrix = self._indicators.present(), np.zeros((len(chosen), len(chosen)))
        of_body: dict[tuple[int, str], list[tuple[int, float]]] = {}
        for k, e in enumerate(chosen):
            for body in self.contacts[e].bodies:
                inverse = values[body.inverse_mass]
                if not 0.0 <= inverse < inf:
                    raise no_mass(self._names[body.key[0]], self._plan.events[e].name, inverse)
                of_body.setdefault(body.key, []).append((k, body.direction))
                for other, direction in of_body[body.key]:
                    change = inverse * body.direction * direction
                    matrix[k, other] += change
                    matrix[other, k] += change if other != k else 0.0
        return matrix

    def restitutions(self, chosen: Sequence[int]) -> list[float]:
        """Their coefficients of restitution, by which both members must agree."""
        values, found = self._indicators.present(), []
        for e in chosen:
            of_bodies = [values[b.restitution] for b in self.contacts[e].bodies]
            if len({*of_bodies}) > 1 or not 0.0 <= of_bodies[0] <= 1.0:
                raise no_restitution(self._plan.events[e].name, of_bodies)
            found.append(of_bodies[0])
        return found

    def check_velocities(self, chosen: Sequence[int], w: Sequence[float]) -> None:
        """Raise if the velocities of bodies are not those of a contact by its second indicator."""
        values, outdated = self._indicators.present(), self._indicators.outdated
        for e, speed in zip(chosen, w, strict=True):
            for s in self.contacts[e].sets:
                z = s.z[1]
                size = AGREEMENT * self._indicators.scales.largest_with_inputs(z)
                if s.number not in outdated and abs(values[z] - speed) > size:
                    names = self._plan.events[e].name, self._names[s.instance]
                    raise other_velocity(*names, values[z], speed)

    def note_speeds(self, chosen: Sequence[int], speeds: Sequence[float]) -> None:
        """Velocities that bodies had between two impacts at one instant are among their largest ones."""
        largest = self._indicators.store.largest
        for e, speed in zip(chosen, speeds, strict=True):
            slots = [b.velocity for b in self.contacts[e].bodies]
            for k in [*slots, *(s.z[1] for s in self.contacts[e].sets)]:
                largest[k] = max(largest[k], speed)

    def names_of(self, chosen: Iterable[int]) -> list[str]:
        """The names of these contacts."""
        return [self._plan.events[e].name for e in chosen]
