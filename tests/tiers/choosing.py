"""Decides which test cases `make test` runs, and which of them a shard of `make test-all` has."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tiers.costs import prices

SMOKE = Path(__file__).parent / "smoke.txt"
LIMIT = 0.1
"""The dearest case of the first tier, in seconds. Measured on 2026-11-29: some 10,600 of 20,600 cases are chosen, with
6% of the time."""
ROWS = 1.0
"""Seconds for the rows of one test function in the first tier; of more rows a sample is taken. A choice: what five of
the dearest take."""


def smoke() -> list[str]:
    """Returns the test functions and cases that stand in `smoke.txt`: those of a room that has no cheap ones."""
    lines = SMOKE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def first_tier(cases: Sequence[str], costs: Mapping[str, float], listed: Sequence[str], seed: str) -> set[str]:
    """Returns the cases of the first tier: the cheap ones, and a sample of the rows of a function where they add up.

    Of a function that is listed, at least one row is taken, however dear it is. A row that is listed is always taken,
    and every row if `[*]` is listed.
    """
    seconds = prices(cases, costs)
    rows: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        rows[case.partition("[")[0]].append(case)
    chosen: set[str] = set()
    for function, its in rows.items():
        asked = its if f"{function}[*]" in listed else [case for case in its if case in listed]
        cheap = [case for case in its if seconds[case] <= LIMIT and case not in asked]
        if not cheap and not asked and function in listed:
            cheap = its
        chosen.update(asked, _sample(cheap, seconds, f"{seed}/{function}"))
    return chosen


def _sample(rows: Sequence[str], seconds: Mapping[str, float], seed: str) -> list[str]:
    if sum(seconds[case] for case in rows) <= ROWS:
        return list(rows)
    taken: list[str] = []
    left = ROWS
    for case in random.Random(seed).sample(rows, len(rows)):
        left -= seconds[case]
        if taken and left < 0:
            break
        taken.append(case)
    return taken


def shard(cases: Sequence[str], costs: Mapping[str, float], number: int, of: int) -> set[str]:
    """Returns the cases of one of several shards that take about as long as each other. The cases of a file stay
    together, as they share what is made for them; those of a file that is longer than a shard do not."""
    files: dict[str, list[str]] = defaultdict(list)
    for case in cases:
        files[case.partition("::")[0]].append(case)
    seconds = prices(cases, costs)
    most = sum(seconds.values()) / of
    units: list[tuple[float, list[str]]] = []
    for its in files.values():
        price = sum(seconds[case] for case in its)
        units += [(price, its)] if price <= most else [(seconds[case], [case]) for case in its]
    loads, shards = [0.0] * of, [set[str]() for _ in range(of)]
    for price, its in sorted(units, key=lambda unit: (-unit[0], unit[1])):
        place = loads.index(min(loads))
        loads[place] += price
        shards[place].update(its)
    return shards[number - 1]
