"""The method of Dormand and Prince: its tables, and the lengths of its steps.

Source: Dormand and Prince (1980), A family of embedded Runge-Kutta formulae, RK5(4)7M; dense output: Shampine (1986); the
first step: Hairer, Norsett and Wanner (1993), Solving Ordinary Differential Equations I, II.4.
"""

from __future__ import annotations

from fmimaster.numerics import Doubles, Number

STAGES = 7

IDLE_STAGE = 1
"""It has no weight inside the step."""

STAGE_NODES = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)

STAGE_WEIGHTS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (1 / 5, 0.0, 0.0, 0.0, 0.0, 0.0),
    (3 / 40, 9 / 40, 0.0, 0.0, 0.0, 0.0),
    (44 / 45, -56 / 15, 32 / 9, 0.0, 0.0, 0.0),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0.0, 0.0),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0.0),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""Of each stage: weights of the stages before it; those of the last one give the result of order 5."""

ERROR_WEIGHTS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""Of the difference of the results of order 5 and 4."""

DENSE = (
    (1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799),
    (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
    (0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632),
    (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
    (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
)
"""Of each stage: coefficients of its weight as a polynomial inside the step, of order 4."""

SAFETY = 0.9

LEAST_FACTOR = 0.2
MOST_FACTOR = 10.0
"""Of one step length to the next."""

STRETCH = 1.1
"""A step that would leave less than a tenth of itself to the end goes to the end."""

FIRST_SHARE = 0.01
LEAST_NORM = 1e-5
SHORTEST_FIRST = 1e-6
"""Of the first step; the last one in s."""

SLACK = 1e-9
"""Fixed steps may be longer than the given size by this share, so that rounding does not add one."""

FEWEST_ULPS = 16 * 2.0**-52
"""A shorter step, relative to the time, is lost in rounding."""


def weighted_sum(weights: Doubles, n: int, slopes: Doubles, stride: int) -> Number:
    """Sum of the slopes of n stages, from the first to the last; those with the weight 0 are left out. Slopes are a stride
    apart."""
    total = weights[0] * slopes[0]
    for k in range(1, n):
        if weights[k] != 0.0:
            total += weights[k] * slopes[k * stride]
    return total


def dense_weight(stage: int, part: float, length: float) -> float:
    """Weight of a stage at a part of the last step, which had this length in s."""
    return length * (
        part
        * (
            DENSE[stage][0]
            + part * (DENSE[stage][1] + part * (DENSE[stage][2] + part * DENSE[stage][3]))
        )
    )


def first_length(states: float, slopes: float) -> float:
    """The first step in s, so short that it changes the states by a hundredth at most; both in units of the tolerance."""
    is_known = states > LEAST_NORM and slopes > LEAST_NORM
    return FIRST_SHARE * states / slopes if is_known else SHORTEST_FIRST


def next_length(rest: float, wanted: float) -> float:
    """The length of a step in s with that rest to the end: all of it, half of it, or what is wanted."""
    if rest <= STRETCH * wanted:
        return rest
    return 0.5 * rest if rest < 2.0 * wanted else wanted


def length_factor(error: float, most: float) -> float:
    """The factor on the length by the error of a step, in units of the tolerance."""
    return most if error == 0.0 else SAFETY * error**-0.2


def shorter_length(length: float, factor: float) -> float:
    """The length in s with which a step is tried again."""
    return length * max(LEAST_FACTOR, factor)


def is_lost(length: float, time: float, end: float) -> bool:
    """Whether a step is lost in rounding."""
    return length < FEWEST_ULPS * max(abs(time), abs(end))


def grown_length(length: float, wanted: float, factor: float, most: float) -> float:
    """The length in s that is wanted for the next step, after one of this length."""
    grown = length * min(max(LEAST_FACTOR, factor), most)
    return max(wanted, grown) if length < wanted else grown
