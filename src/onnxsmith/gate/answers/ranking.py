"""Compares scores by name: the names, their scores, and the order of a list."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits, distance
from onnxsmith.gate.plain_answers import is_list, plain

_SHOWN = 3
"""The most names that a difference lists. A choice."""
_SMALL = 0.1
"""The largest score below which all scores are small. A choice: the limit is then 1% of the largest."""
_HOW = "scores are compared by name"


class Ranking(Kind):
    rank = 20

    def fits(self, answer: Any) -> bool:
        return _scores(answer) is not None

    def differences(self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts) -> Iterator[Difference]:
        a, b = _scores(ours), _scores(theirs)
        assert a is not None
        assert b is not None
        are_lists = is_list(ours) and is_list(theirs)
        unit = _unit(a, b, limits)
        gone = [[name for name in first if name not in second] for first, second in ((a, b), (b, a))]
        if not (are_lists and _is_cut_at_a_tie(a, b, gone, unit)):
            for names, said in zip(gone, ("first", "second"), strict=True):
                if names:
                    text = f"{', '.join(map(repr, names[:_SHOWN]))}{', …' if len(names) > _SHOWN else ''}"
                    yield Difference(at, "names", f"{text} in the {said} answer only", _HOW)
        shared = [name for name in a if name in b]
        apart = {name: distance(a[name], b[name]) for name in shared}
        allowed = {name: _limit(a[name], unit) for name in shared}
        within = [apart[name] / allowed[name] for name in shared if 0 < apart[name] <= allowed[name]]
        counts.add(len(shared), max(within, default=0.0))
        beyond = [name for name in shared if apart[name] > allowed[name]]
        if beyond:
            far = max(beyond, key=lambda name: apart[name])
            best = [max(scores, key=lambda name: scores[name]) for scores in (a, b)]
            turned = f"; the best names are {best[0]!r} and {best[1]!r}" if best[0] != best[1] else ""
            yield Difference(
                f"{at}[{far!r}]",
                "score",
                f"{a[far]:.4g} and {b[far]:.4g}, but the allowed difference is {allowed[far]:.2g}; {len(beyond)} of "
                f"{len(shared)} scores exceed this limit{turned}",
                _HOW,
            )
        elif are_lists and not any(gone):
            yield from _order(a, b, at, unit)


def _order(a: dict[str, float], b: dict[str, float], at: str, unit: float) -> Iterator[Difference]:
    """Yields the first place at which two lists have names that are not tied."""
    for place, (name, other) in enumerate(zip(a, b, strict=True)):
        if distance(a[name], a[other]) > 2 * _limit(a[name], unit):
            yield Difference(f"{at}[{place}]", "order", f"{name!r} and {other!r}: the lists have another order", _HOW)
            return


def _is_cut_at_a_tie(a: dict[str, float], b: dict[str, float], gone: list[list[str]], unit: float) -> bool:
    """Whether two lists of the best names end with either of two names that have equal scores. Probabilities that add
    up to 1 are all there are, so nothing was cut."""
    if len(a) != len(b) or len(a) < 2 or [len(names) for names in gone] != [1, 1]:
        return False
    last = [scores[names[0]] for scores, names in zip((a, b), gone, strict=True)]
    limit = _limit(last[0], unit)
    is_last = all(end <= min(scores.values()) + limit for end, scores in zip(last, (a, b), strict=True))
    is_all = any(abs(math.fsum(scores.values()) - 1) <= unit for scores in (a, b))
    return is_last and distance(*last) <= limit and not is_all


def _unit(a: dict[str, float], b: dict[str, float], limits: Limits) -> float:
    """Returns how far scores up to 1 may be off. If all are small, it is a share of the largest: with the usual limit
    nothing could be told of them."""
    if limits.tolerance is not None:
        return limits.of_scores
    largest = max((abs(one) for one in (*a.values(), *b.values()) if math.isfinite(one)), default=1.0)
    return limits.of_scores * min(1.0, largest / _SMALL)


def _limit(score: float, unit: float) -> float:
    """Returns how far a score may be off: of a score above 1, such as a logit, a share of it."""
    return unit * (max(1.0, abs(score)) if math.isfinite(score) else 1.0)


def _scores(answer: Any) -> dict[str, float] | None:
    """Returns scores by name: of a mapping from two or more names to numbers, a list of pairs of a name and a number,
    or a list of mappings with `label` and `score`; None for other answers."""
    if isinstance(answer, Mapping):
        pairs = [(name, _scalar(score)) for name, score in answer.items()] if len(answer) > 1 else []
    elif is_list(answer):
        pairs = [_pair(plain(one)) for one in answer]
    else:
        return None
    is_ranking = bool(pairs) and all(isinstance(name, str) and isinstance(score, float) for name, score in pairs)
    found = dict(pairs) if is_ranking else {}
    return found if found and len(found) == len(pairs) else None


def _pair(one: Any) -> tuple[Any, Any]:
    if isinstance(one, Mapping) and len(one) == 2:
        return (one["label"], _scalar(one["score"])) if set(one) == {"label", "score"} else (None, None)
    return (one[0], _scalar(one[1])) if isinstance(one, tuple | list) and len(one) == 2 else (None, None)


def _scalar(score: Any) -> Any:
    """Returns a number of numpy or torch as a Python float, and everything else as it is."""
    if isinstance(score, float):
        return float(score)
    is_number = isinstance(score, np.floating) or getattr(score, "shape", None) == ()
    number = plain(score) if is_number else None
    return float(number) if isinstance(number, np.floating | np.ndarray) and number.dtype.kind == "f" else score
