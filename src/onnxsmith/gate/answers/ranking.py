"""Compares scores by name: the names, their scores, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits, distance

_SHOWN = 3
"""The most names that a difference lists. A choice."""


class Ranking(Kind):
    rank = 20

    def fits(self, answer: Any) -> bool:
        return _scores(answer) is not None

    def differences(self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts) -> Iterator[Difference]:
        a, b = _scores(ours), _scores(theirs)
        assert a is not None
        assert b is not None
        limit = limits.of_scores * max((1.0, *(abs(one) for one in a.values() if np.isfinite(one))))
        for first, second, said in ((a, b, "first"), (b, a, "second")):
            # A list of the best names may end between two equal scores: then either may be the last.
            is_cut = isinstance(ours, Sequence) and len(first) == len(second)
            end = min(second.values()) if is_cut else -np.inf
            gone = [name for name, score in first.items() if name not in second and not abs(score - end) <= limit]
            if gone:
                names = ", ".join(map(repr, gone[:_SHOWN]))
                yield Difference(at, "names", f"{names}{', …' if len(gone) > _SHOWN else ''} in the {said} answer only")
        shared = [name for name in a if name in b]
        apart = {name: distance(a[name], b[name]) for name in shared}
        counts.add(len(shared), max((gap / limit for gap in apart.values() if gap <= limit), default=0.0))
        far = max(apart, key=lambda name: apart[name], default=None)
        if far is not None and apart[far] > limit:
            best = [max(scores, key=lambda name: scores[name]) for scores in (a, b)]
            turned = f"; the best is {best[0]!r} and {best[1]!r}" if best[0] != best[1] else ""
            beyond = sum(gap > limit for gap in apart.values())
            yield Difference(
                f"{at}[{far!r}]",
                "score",
                f"{a[far]:.4g} and {b[far]:.4g}, and {limit:.2g} is allowed; {beyond} of {len(shared)} scores are "
                f"beyond that{turned}",
            )


def _scores(answer: Any) -> dict[str, float] | None:
    """Returns scores by name: of a mapping from names to numbers, a list of pairs of a name and a number, or a list of
    mappings with `label` and `score`; None for other answers."""
    if isinstance(answer, Mapping):
        pairs = list(answer.items())
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        pairs = [_pair(one) for one in answer]
    else:
        return None
    is_ranking = len(pairs) > 1 and all(
        isinstance(name, str) and isinstance(score, float | np.floating) for name, score in pairs
    )
    names = {name for name, _ in pairs} if is_ranking else set()
    return {name: float(score) for name, score in pairs} if is_ranking and len(names) == len(pairs) else None


def _pair(one: Any) -> tuple[Any, Any]:
    if isinstance(one, Mapping) and set(one) >= {"label", "score"} and len(one) == 2:
        return one["label"], one["score"]
    return (one[0], one[1]) if isinstance(one, tuple | list) and len(one) == 2 else (None, None)
