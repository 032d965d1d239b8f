"""Compares a record with the record of a second run, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnxsmith.gate.records.record_file import Record

_MEASURED = {"worst_abs", "worst_rel", "largest"}
"""Names the fields that hold a measured difference. Whether it is allowed, another field says."""
_ROUNDING = {"scale", "tolerance", "floor", "before", "after"}
"""Names the fields that depend on the rounding of a processor."""
_WORDS = {"why_tolerance", "notes", "reason", "where", "detail", "version", "untried"}
"""Names the fields with sentences, whose numbers or words differ between versions."""
_FACTOR = 2
"""Sets how far a number may be from the recorded one on another machine, and the number of planted faults if the time
limits it. A choice: rounding differs by less between processors."""
_LIMITED = "left out to save time"
"""Stands in the gaps of a verification whose time was limited."""


@dataclass(frozen=True)
class Change:
    """A field with another value than recorded. It is `explained` if another version, another machine or the time that
    a check may take explains it."""

    field: str
    recorded: str
    now: str
    explained: bool = False


def changes(record: Record, now: Record, *, elsewhere: bool) -> list[Change]:
    """Returns the fields that differ. `elsewhere` says that versions or the machine are others than recorded."""
    found = [
        Change(name, str(old), str(new))
        for name, old, new in (("verdict", record.verdict, now.verdict), ("seed", record.seed, now.seed))
        if old != new
    ]
    found += [
        Change(f"parents: {name}", record.parents.get(name, "not listed"), now.parents.get(name, "not read"))
        for name in sorted({*record.parents, *now.parents})
        if record.parents.get(name) != now.parents.get(name)
    ]
    old, new = _by_name(record.compared), _by_name(now.compared)
    is_limited = _LIMITED in str(record.compared) and _LIMITED in str(now.compared)
    for path in dict.fromkeys((*old, *new)):
        before, after = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if before != after:
            explained = _is_explained(path[-1], before, after, elsewhere=elsewhere, is_limited=is_limited)
            found.append(Change(".".join(path), _shown(before), _shown(after), explained))
    return found


_ABSENT = object()


def _shown(value: Any) -> str:
    return "absent" if value is _ABSENT else str(value)


def _is_explained(name: str, before: Any, after: Any, *, elsewhere: bool, is_limited: bool) -> bool:
    if is_limited and name in ("tried", "seen"):
        return _is_near(before, after)
    if is_limited and _LIMITED in str(before) and _LIMITED in str(after):
        return True
    if not elsewhere or _ABSENT in (before, after):
        return False
    base = name.partition("[")[0]
    return base in _MEASURED or base in _WORDS or (base in _ROUNDING and _is_near(before, after))


def _is_near(before: Any, after: Any) -> bool:
    numbers = [one for one in (before, after) if isinstance(one, int | float) and math.isfinite(one) and one > 0]
    return len(numbers) == 2 and max(numbers) <= _FACTOR * min(numbers)


def _by_name(parts: Any) -> dict[tuple[str, ...], Any]:
    """Returns the leaves of the data by their path: `verification`, `outputs[y]`, `tolerance`."""
    found: dict[tuple[str, ...], Any] = {}
    for number, part in enumerate(parts):
        kind = str(part.get("kind", number)) if isinstance(part, Mapping) else str(number)
        again = sum(isinstance(one, Mapping) and one.get("kind") == kind for one in parts[:number])
        found |= dict(_leaves(part, (f"{kind}[{again + 1}]" if again else kind,)))
    return found


def _leaves(data: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(data, list | tuple) and data:
        for number, one in enumerate(data):
            name = one.get("name") or one.get("target") if isinstance(one, Mapping) else None
            yield from _leaves(one, (*path[:-1], f"{path[-1]}[{number if name is None else name}]"))
    else:
        yield path, list(data) if isinstance(data, tuple) else data
