"""Inputs with a meaning: impulses and forces of contacts (F21, M15), coefficients of polynomials (F16)."""

from __future__ import annotations

from dataclasses import replace

from driven import Driven
from fmu_under_test import Event
from simulated import run


class InputChecks(Driven):
    """Checks of what inputs do."""

    def contact(self, event: Event) -> None:
        """F21: an impulse changes the velocity, and a force the acceleration."""
        c = event.contact
        if c is None:
            return
        law = {c["parameter"]: float(c["value"])} if "parameter" in c else {}
        h = 1e-3 * self.h

        def velocity(impulse: float | None, force: float) -> tuple[float, float]:
            with run(self.fmu, self.experiment, self.quiet, law) as r:
                r.go_in_steps(self.h)
                r.set_inputs()
                r.set(c["force"], force)
                inverse = r.get(c["inverseMass"])
                if impulse is not None:
                    payload = dict(self.experiment.payload) | {c["impulse"]: impulse}
                    pairs = (*event.payload, ("", c["impulse"]))
                    r.experiment = replace(self.experiment, payload=payload)
                    r.trigger(replace(event, payload=pairs))
                r.go(r.time + h, inputs=False)
                return r.get(c["velocity"]), inverse

        free, inverse = velocity(None, 0.0)
        if not (inverse >= 0.0 and inverse < float("inf")):
            self.report.fail("M15", f"event '{event.name}': '{c['inverseMass']}' is {inverse}")
            return
        what, size = f"event '{event.name}'", max(abs(free), 1.0)
        for impulse in (0.0, size):
            change = velocity(impulse, 0.0)[0] - free
            expected = int(c["direction"]) * impulse * inverse
            told = f"{what}: an impulse of {impulse:g} changes '{c['velocity']}' by {change:.6g}, expected {expected:.6g}"
            self.report.judge("F21", abs(change - expected) <= 1e-2 * h + 1e-6 * size, told)
        force = size / h
        change, expected = velocity(None, force)[0] - free, int(c["direction"]) * size * inverse
        told = f"{what}: a force of {force:g} changes '{c['velocity']}' by {change:.6g} in {h:g} s, expected {expected:.6g}"
        self.report.judge("F21", abs(change - expected) <= 1e-2 * max(size * inverse, 1e-300), told)

    def polynomial(self, p: dict[str, str]) -> None:
        """F16: at the end of a step an input has the value of its polynomial."""
        law = {p["parameter"]: float(p["value"])} if "parameter" in p else {}
        h, name = 1e-3 * self.h, p["input"]
        array = self.fmu.variables.get(p["coefficients"])
        if array is not None:
            many = int(array.dimensions[0].start) if array.dimensions else 1
        else:
            many = sum(1 for n in self.fmu.variables if n.startswith(f"{p['coefficients']}["))
        value = float(self.experiment.set.get(name, self.fmu.variables[name].start or 0.0))
        moves = (
            [value, 1.0 / h, 0.0],
            [value + 1.0, -1.0 / h, 1.0 / h**2],
            [value - 1.0, 1.0 / h, 0.0],
        )
        if many < 3:
            moves = [value, 1.0 / h], [value + 1.0, 0.0], [value, 0.0]
        results = []
        for given in moves:
            coefficients = [*given, *[0.0] * (many - len(given))]
            with run(self.fmu, self.experiment, self.quiet, law) as r:
                if array is not None:
                    r.set(p["coefficients"], coefficients)
                else:
                    for k, c in enumerate(coefficients):
                        r.set(f"{p['coefficients']}[{k}]", c)
                r.go(h, inputs=False)
                results.append(r.read(self.names))
        one, same, other = results
        depending = [n for n in self.fmu.dependencies_of(name) if n in one]
        effect = max(depending, key=lambda n: abs(one[n] - other[n]), default=None)
        if effect is None or not abs(one[effect] - other[effect]) > 0.0:
            self.report.skip("F16", f"no output depends directly on '{name}'")
            return
        told = (
            f"two polynomials of '{name}' have the value {value + 1.0:g} and the same slope at the end of a step, but "
            f"'{effect}' is {one[effect]:.6g} and {same[effect]:.6g}"
        )
        allowed = 0.1 * abs(one[effect] - other[effect])
        self.report.judge("F16", abs(one[effect] - same[effect]) <= allowed, told)
