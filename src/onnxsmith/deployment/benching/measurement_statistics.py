"""Computes statistics of a measurement: quantiles, ratios and their confidence intervals.

Runs, and blocks of runs, are not independent: a run follows other runs, and a process keeps its memory layout for its
whole life. Rounds are independent, because each has new processes. An interval is therefore computed over rounds, from
one number for each round (Kalibera and Jones, Rigorous benchmarking in reasonable time, ISMM 2013, section 5).

Other processes can only make a run longer, so this number is taken from the least disturbed runs (Chen and Revels,
Robust benchmarking in noisy environments, 2016, who take the minimum). Some rounds are disturbed as a whole. The
estimate is therefore the median over the rounds, with the interval of the sign test, which assumes no distribution.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LOW = 0.1
"""Names the quantile of a round's runs that represents the round. A choice: the minimum is a single run, and the median
run on a busy machine is disturbed."""
_INSIDE = 0.99
"""Sets the confidence with which a 95% interval is computed. Measuring stops when the interval is narrow. An interval
that is too narrow by chance stops it earlier, so an interval computed for 95% would contain the true ratio less often.
A choice, tested with simulated rounds."""
LEAST_ROUNDS = 8
"""Counts the rounds that a ranking needs: with fewer rounds, the smallest and the largest value do not enclose the
median with 99% confidence."""
FLOOR = 0.005
"""Sets the least half width of an interval. Link order and environment move a program's time by such amounts, which are
the same in all rounds (Mytkowicz et al., Producing wrong data without doing anything obviously wrong, ASPLOS 2009; they
saw more). A choice."""
BUSY_FLOOR = 0.02
"""Sets the least half width of an interval on a machine that is busy with other processes. A choice."""


@dataclass(frozen=True)
class Interval:
    """Holds a ratio of times and its confidence interval; 1.2 means slower by a fifth."""

    ratio: float
    low: float
    high: float

    @property
    def decided(self) -> bool:
        """Whether 1 lies outside the interval."""
        return not self.low <= 1.0 <= self.high

    @property
    def half_width(self) -> float:
        """Returns half the width, relative to the ratio: 0.02 is 2%."""
        return (math.log(self.high) - math.log(self.low)) / 2


def low(times: Sequence[float]) -> float:
    """Returns the time that represents a round."""
    return float(np.quantile(np.asarray(times, dtype=float), LOW))


def of_rounds(logs: Sequence[float], *, floor: float = FLOOR) -> Interval | None:
    """Returns the ratio from its logarithm in each round: the median, and the order statistics that enclose the median
    with the required confidence (the interval of the sign test: David and Nagaraja, Order Statistics, 7.1). The k-th
    smallest and k-th largest of n values miss the median with the probability 2 P(X < k), X binomial with n and 1/2.
    Returns None if there are too few rounds."""
    count = len(logs)
    k, missed = 0, 0.0
    while missed + 2 * math.comb(count, k) / 2**count <= 1 - _INSIDE:
        missed += 2 * math.comb(count, k) / 2**count
        k += 1
    if count < LEAST_ROUNDS or not k:
        return None
    ordered = sorted(logs)
    return _interval(statistics.median(logs), ordered[k - 1], ordered[-k], floor)


def between(now: Sequence[float], before: Sequence[float], *, floor: float = FLOOR) -> Interval | None:
    """Returns the ratio of times from separate sessions, computed from the logarithms of the times in each round: the
    median of all differences, and the interval of the rank sum test (Hodges and Lehmann 1963; Hollander and Wolfe,
    Nonparametric Statistical Methods, 4.3). Returns None if a session has too few rounds."""
    if min(len(now), len(before)) < LEAST_ROUNDS:
        return None
    differences = sorted(a - b for a in now for b in before)
    ways = _rank_sums(len(now), len(before))
    total, k, missed = sum(ways), 0, 0.0
    while missed + 2 * ways[k] / total <= 1 - _INSIDE:
        missed += 2 * ways[k] / total
        k += 1
    return _interval(statistics.median(differences), differences[k - 1], differences[-k], floor)


def _rank_sums(m: int, n: int) -> list[int]:
    """Counts the orders of m and n values in which a value of the first kind exceeds a value of the second kind exactly
    0, 1, 2 … times. The counts are the coefficients of the Gaussian binomial (Mann and Whitney 1947)."""
    ways = [1] + [0] * (m * n)
    for step in range(1, m + 1):
        for at in range(m * n, n + step - 1, -1):  # times 1 - q^(n + step)
            ways[at] -= ways[at - n - step]
        for at in range(step, m * n + 1):  # divided by 1 - q^step
            ways[at] += ways[at - step]
    return ways


def _interval(centre: float, low: float, high: float, floor: float) -> Interval:
    return Interval(math.exp(centre), math.exp(min(low, centre - floor)), math.exp(max(high, centre + floor)))


def percentiles(values: Sequence[float], wanted: Sequence[float]) -> list[float | None]:
    """Returns quantiles (Hyndman and Fan 1996, type 7, numpy's default). A quantile is None if there are too few values
    beyond it: p99 says nothing about 20 runs. A choice: a quantile needs two values beyond it."""
    array = np.asarray(values, dtype=float)
    return [
        float(np.quantile(array, share)) if len(array) * (1 - share) >= 2 or share <= 0.5 else None for share in wanted
    ]


def steady(medians: Sequence[float], *, windows: int = 3, within: float = 0.05) -> bool:
    """Whether the last windows agree, which ends a warm-up. Windows agree if the largest of their medians is at most 5%
    above the smallest. The rule follows Georges, Buytaert and Eeckhout, Statistically rigorous Java performance
    evaluation, OOPSLA 2007, who use the coefficient of variation of the last runs. This function uses medians of
    windows, because a single run on a shared machine may take any time. Number and share are choices."""
    last = medians[-windows:]
    return len(last) == windows and max(last) <= (1 + within) * min(last)
