"""Random systems of two masses, to test event methods on systems that were not used for their development.

Every system has its own longest communication step, in which the phase of the fastest mode changes by 0.2 to 0.7 rad.
It is run at that step size and at all shorter ones. Half of the systems collide rarely, the other half often.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np

from fmimaster import reference_path
from fmimaster.studies.demos.two_mass import Blocks, TwoMassReference

SEED = 9
SIZES = (0.02, 0.05, 0.1, 0.2, 0.3)
"""[s] Communication step sizes."""
VERSIONS = ("fmi2", "fmi3", "mixed")
EVENTS = {False: (4, 15), True: (16, 60)}
"""Least and largest number of events of a system that collides rarely, or often."""

_STEPS = 200
"""Longest steps until the end: as long as the benchmark B3 at 0.1 s."""
_CHANGE = 1e-4
"""Relative change of the start values to measure the sensitivity of the events."""
_GAPS = {False: (0.1, 0.7), True: (0.6, 0.98)}
"""Heights of the blocks, relative to their distance at rest."""


@dataclass(frozen=True, slots=True)
class RandomSystem:
    """A system of two masses and its exact solution."""

    number: int
    blocks: Blocks
    longest: float
    """[s] Largest step size: the fastest frequency times it is at most 0.7."""
    fastest: float
    """[rad/s] Largest absolute value of an eigenvalue."""
    stop_time: float
    """[s]"""
    version: str
    """One of ``VERSIONS``."""
    exact: TwoMassReference

    @property
    def sizes(self) -> tuple[float, ...]:
        """Step sizes in s at which it is run."""
        return tuple(size for size in SIZES if size <= self.longest)

    @property
    def start_values(self) -> dict[str, float]:
        """For the reference system of two masses; both FMUs get all parameters that they have."""
        b = self.blocks
        x1, v1, x2, v2 = b.start
        both = {"m1": b.m1, "m2": b.m2, "k2": b.k2, "d2": b.d2, "g": b.g, "dx": b.dx}
        upper = {**both, "k1": b.k1, "d1": b.d1, "x": x1, "v": v1}
        lower = {**both, "x": x2, "v": v2}
        return {f"upper.{n}": v for n, v in upper.items()} | {
            f"lower.{n}": v for n, v in lower.items()
        }


@cache
def random_system(number: int, seed: int = SEED) -> RandomSystem:
    """The system of that number, from 0. Its longest step, version and density of events follow from the number.

    Systems are drawn until one has a suitable number of events, none of them in its last step, and does not depend on
    its start values so strongly that a change by 1e-4 shifts an event by more than half of its longest step.
    """
    longest = SIZES[number % len(SIZES)]
    is_dense = bool(number // len(SIZES) % 2)
    version = VERSIONS[number // (2 * len(SIZES)) % len(VERSIONS)]
    chance = np.random.default_rng([seed, number])
    stop_time = _STEPS * longest
    while True:
        blocks, fastest = _draw(chance, longest, is_dense)
        exact = _suitable(blocks, stop_time, longest, is_dense)
        if exact is not None:
            return RandomSystem(number, blocks, longest, fastest, stop_time, version, exact)


def _draw(chance: np.random.Generator, longest: float, is_dense: bool) -> tuple[Blocks, float]:
    """Blocks and their fastest frequency in rad/s."""

    def between(low: float, high: float) -> float:
        return float(chance.uniform(low, high))

    def spread(low: float, high: float) -> float:
        return float(np.exp(chance.uniform(np.log(low), np.log(high))))

    m1, m2, ratio = between(0.5, 5.0), between(0.5, 5.0), spread(1 / 3, 3.0)
    damping = spread(0.002, 0.2), spread(0.002, 0.2)  # of each spring and its mass alone
    d = damping[0] * sqrt(m1), damping[1] * sqrt(ratio * m2)
    slow = Blocks(m1, m2, 1.0, ratio, *d)
    fastest = between(0.2, 0.7) / longest
    faster = fastest / float(np.abs(np.linalg.eigvals(slow.matrix())).max())  # the time scale
    k1, k2 = faster**2, ratio * faster**2
    gap = m2 * slow.g / k2  # between the middles of the blocks at rest
    blocks = replace(
        slow,
        k1=k1,
        k2=k2,
        d1=d[0] * faster,
        d2=d[1] * faster,
        dx=between(*_GAPS[is_dense]) * gap / 2,
    )
    x1, _, x2, _ = map(float, blocks.rest())
    speed = gap * sqrt(k2 / m2)
    start = (
        x1 * between(0.5, 1.5),
        speed * between(-1.0, 1.0),
        x2 * between(0.7, 1.3),
        speed * between(-1.0, 1.0),
    )
    return replace(blocks, start=start), fastest


def _suitable(
    blocks: Blocks, stop_time: float, longest: float, is_dense: bool
) -> TwoMassReference | None:
    """The exact solution, if the system is one that can be scored."""
    x1, _, x2, _ = blocks.start
    if x1 > -blocks.dx or x1 - x2 < 2 * blocks.dx:  # they are in each other, or in the ceiling
        return None
    least, most = EVENTS[is_dense]
    exact = TwoMassReference(stop_time, blocks=blocks, most_events=most + 1)
    times = [e.time for e in exact.events]
    if not least <= len(times) <= most or times[-1] > stop_time - longest:
        return None
    for sign in (-1.0, 1.0):
        x1, v1, x2, v2 = blocks.start
        changed = (x1 * (1 + sign * _CHANGE), v1, x2, v2 * (1 - sign * _CHANGE))
        other = TwoMassReference(
            stop_time, blocks=replace(blocks, start=changed), most_events=most + 1
        )
        if [e.name for e in other.events] != [e.name for e in exact.events]:
            return None
        if max(abs(e.time - t) for e, t in zip(other.events, times, strict=True)) > longest / 2:
            return None
    return exact


def held_systems(folder: Path) -> Path:
    """Copies of the systems whose FMUs have no input polynomial; with ``inputOrder`` 0 they hold their inputs."""
    for version in VERSIONS:
        source = reference_path(f"systems/two-mass-b3-{version}.ssp")
        rewrite(source, folder / source.name, without_polynomial)
    return folder


def without_polynomial(name: str, content: bytes) -> bytes:
    """A member of an FMU, with a manifest that declares no input polynomial."""
    if name.endswith("fmi-ls-manifest.xml"):
        return re.sub(rb"<InputPolynomial.*?/>", b"", content, flags=re.DOTALL)
    return content


def rewrite(source: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Write a copy of an archive, and of the FMUs in it, in which each file is what ``change`` makes of it; without those
    of which it makes None."""
    with tempfile.TemporaryDirectory() as text, zipfile.ZipFile(source) as read:
        folder = Path(text)
        with zipfile.ZipFile(folder / "written", "w") as write:
            for name in read.namelist():
                content = change(name, read.read(name))
                if content is None:
                    continue
                if name.endswith(".fmu"):
                    (folder / "inner").write_bytes(content)
                    rewrite(folder / "inner", folder / "changed", change)
                    content = (folder / "changed").read_bytes()
                write.writestr(read.getinfo(name), content)
        shutil.copy(folder / "written", target)
