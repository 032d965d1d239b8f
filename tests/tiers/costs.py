"""Reads and writes `costs.txt`: the seconds that each test case takes.

The numbers are those of the machine that wrote the file first. A slower machine that renews the file divides its times
by how much slower it is, so that a case keeps its number.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

FILE = Path(__file__).parent / "costs.txt"
LISTED = 0.1
"""The cheapest case that is listed, in seconds. A choice: two thirds of all cases are below; the file stays short."""
UNLISTED = 0.02
"""Seconds of a case that is not listed: about the mean of those below `LISTED`."""
ROWS_LISTED = 1.0
"""The rows of a function that are below `LISTED` have one line together, `[*]`, if they take so many seconds."""
_CHANGED = 1.5
"""How much dearer or cheaper a case must be to get another number: two runs of one case differ by less."""
_COMMON = 30
"""The fewest cases that tell how fast a machine is. A choice."""
_HEAD = """\
# Seconds that a test case takes, on the machine that wrote this file first. Cases below 0.1 s are left out; [*] is the
# sum of a function's rows below that. Written by `make test-all`, for a part by `make test-costs TESTS=tests/graph`.
# `make test` runs what is cheap.
"""


def read(file: Path = FILE) -> dict[str, float]:
    """Returns the seconds of each listed case, by its node id."""
    found: dict[str, float] = {}
    path = ""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        if line.startswith("  "):
            seconds, _, name = line.strip().partition(" ")
            found[f"{path}::{name}"] = float(seconds)
        elif line and not line.startswith("#"):
            path = line
    return found


def write(costs: Mapping[str, float], file: Path = FILE) -> None:
    """Writes the cases that cost `LISTED` and more, by file, each with one or two digits."""
    lines, path = [_HEAD], ""
    for case, seconds in sorted(costs.items()):
        if seconds < LISTED:
            continue
        here, _, name = case.partition("::")
        if here != path:
            lines.append(f"{here}\n")
            path = here
        lines.append(f"  {seconds:.2g} {name}\n" if seconds < 10 else f"  {seconds:.0f} {name}\n")
    file.write_text("".join(lines), encoding="utf-8")


def renewed(old: Mapping[str, float], measured: Mapping[str, float], root: Path) -> dict[str, float]:
    """Returns the costs after a run that measured some cases. Cases whose function is gone are dropped."""
    factor = pace(old, measured)
    found = {case: seconds for case, seconds in old.items() if case in measured or _exists(case, root)}
    rows: Counter[str] = Counter()
    for case, seconds in measured.items():
        scaled = seconds * factor
        if "[" in case and scaled < LISTED:
            rows[f"{case.partition('[')[0]}[*]"] += scaled
    now = {case: seconds * factor for case, seconds in measured.items()}
    now |= {name: seconds if seconds >= ROWS_LISTED else 0.0 for name, seconds in rows.items()}
    for case, seconds in now.items():
        before = old.get(case, 0.0)
        if not before / _CHANGED <= seconds <= before * _CHANGED:
            found[case] = seconds
    return found


def prices(cases: Sequence[str], costs: Mapping[str, float]) -> dict[str, float]:
    """Returns the seconds of each case; those of a function's rows that are not listed are a share of their sum."""
    rows = Counter(case.partition("[")[0] for case in cases if case not in costs)
    found: dict[str, float] = {}
    for case in cases:
        function = case.partition("[")[0]
        if case in costs:
            found[case] = costs[case]
        else:
            together = costs.get(f"{function}[*]")
            found[case] = UNLISTED if together is None else together / rows[function]
    return found


def pace(old: Mapping[str, float], measured: Mapping[str, float]) -> float:
    """Returns the factor from this machine's times to those of the file: the median over the cases of both."""
    ratios = [old[case] / measured[case] for case in old.keys() & measured.keys() if measured[case] > LISTED]
    return statistics.median(ratios) if len(ratios) >= _COMMON else 1.0


def _exists(case: str, root: Path) -> bool:
    path, _, name = case.partition("::")
    file = root / path
    return file.exists() and f"def {function(name)}(" in file.read_text(encoding="utf-8")


def function(case: str) -> str:
    """Returns a case's name without the data of its row."""
    return case.partition("[")[0].rpartition("::")[2]
