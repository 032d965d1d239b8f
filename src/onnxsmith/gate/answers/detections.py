"""Compares detections: boxes are paired by their overlap, whatever their order, then compared in all that is said of
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxsmith.base.words import several
from onnxsmith.gate import box_pairs
from onnxsmith.gate.answers.base import Counts, Difference, Kind, Limits, Part, by_key, only_in
from onnxsmith.gate.box_forms import ABSENT, Array, Found, found
from onnxsmith.gate.plain_answers import plain

_SAME_PLACE = 0.5
"""The overlap from which a box without a partner is said to have moved. A choice, as in most measures of detectors."""
_HOW = "boxes are paired by their overlap, in any order"
_FORMS = {
    "list": "a list of entries with one box each",
    "mapping": "a mapping of arrays",
    "object": "an object with arrays",
}


class Detections(Kind):
    rank = 10

    def fits(self, answer: Any) -> bool:
        return found(answer) is not None

    def differences(
        self, ours: Any, theirs: Any, at: str, limits: Limits, counts: Counts
    ) -> Iterator[Difference | Part]:
        a, b = found(ours), found(theirs)
        assert a is not None
        assert b is not None
        if (a.form == "list") != (b.form == "list"):
            yield Difference(at, "type", f"{_FORMS[a.form]} and {_FORMS[b.form]}", _HOW)
        else:
            yield from _Pairing.of(a, b, at, limits).differences(counts)


@dataclass(frozen=True)
class _Pairing:
    """Two detections, the overlaps of their boxes [N, M], and the pairs of their boxes."""

    a: Found
    b: Found
    at: str
    limits: Limits
    shares: Array
    pairs: list[tuple[int, int]]
    is_far: Array
    """Which scores are too far apart, [N, M]."""

    @classmethod
    def of(cls, a: Found, b: Found, at: str, limits: Limits) -> _Pairing:
        """Pairs boxes that overlap and have equal labels."""
        shares = box_pairs.overlaps(a.boxes, b.boxes)
        may = box_pairs.near(a.boxes, b.boxes, shares, limits, are_whole=a.is_whole and b.is_whole)
        if a.labels and b.labels and a.labels.is_like(b.labels):
            may &= box_pairs.equal_labels(a.labels.values, b.labels.values)
        is_far = np.zeros(shares.shape, bool)
        if a.scores and b.scores and a.scores.is_like(b.scores):
            is_far = box_pairs.far_scores(a.scores.values, b.scores.values, limits)
        return cls(a, b, at, limits, shares, box_pairs.pairs(shares, may, is_far), is_far)

    def differences(self, counts: Counts) -> Iterator[Difference | Part]:
        """Yields missing keys, boxes without a partner, other scores, and the further parts of the pairs."""
        limit = self.limits.overlap
        shares = [float(self.shares[pair]) for pair in self.pairs]
        used = ((1 - share) / (1 - limit) for share in shares if limit < 1 and share >= limit)
        counts.add(len(self.pairs), max(used, default=0.0))
        if self.a.form != "list":
            for key in dict.fromkeys((*self.a.values, *self.b.values)):
                if key not in self.a.values or key not in self.b.values:
                    owner = self.a if key in self.a.values else self.b
                    yield only_in(owner.place(self.at, key), is_first=owner is self.a)
        if self.a.corners != self.b.corners:
            named = [", ".join(one.corners) or "none" for one in (self.a, self.b)]
            yield Difference(f"{self.at}[0]['box']", "keys", f"the names of the corners are {' and '.join(named)}")
        yield from self._boxes()
        done = {self.a.key} if self.a.key == self.b.key else set()
        if self.a.labels and self.a.labels.is_like(self.b.labels):
            done.add(self.a.labels.key)
        if self.a.scores and self.a.scores.is_like(self.b.scores):
            done.add(self.a.scores.key)
            yield from self._scores(self.a.scores.values, self.b.scores.values if self.b.scores else ())
        for key in [key for key in dict.fromkeys((*self.a.values, *self.b.values)) if key not in done]:
            yield from self._rows(key) if self.a.form == "list" else self._field(key)

    def _boxes(self) -> Iterator[Difference]:
        a, b = self.a, self.b
        lost = sorted({*range(len(a.boxes))} - {m for m, _ in self.pairs})
        extra = sorted({*range(len(b.boxes))} - {n for _, n in self.pairs})
        if len(a.boxes) != len(b.boxes):
            yield Difference(
                self.at,
                "count",
                f"{several(len(a.boxes), 'box', 'boxes')} in the first answer, {len(b.boxes)} in the second",
                _HOW,
            )
        for one in lost:
            nearest = extra[int(np.argmax(self.shares[one, extra]))] if extra else None
            if nearest is not None and self.shares[one, nearest] >= _SAME_PLACE:
                extra.remove(nearest)
                what = _moved(a, b, one, nearest, float(self.shares[one, nearest]))
            else:
                what = f"{_said(a, one)} is in the first answer only"
            yield Difference(self._row(a, one), "box", what, _HOW)
        for other in extra:
            yield Difference(self._row(b, other), "box", f"{_said(b, other)} is in the second answer only", _HOW)

    def _scores(self, ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> Iterator[Difference]:
        assert self.a.scores is not None
        for m, n in self.pairs:
            if self.is_far[m, n]:
                place = self.a.place(self.at, self.a.scores.key, m)
                yield Difference(
                    place, "score", f"the scores {ours[m]:.4g} and {theirs[n]:.4g} of {_said(self.a, m)}", _HOW
                )

    def _rows(self, key: Any) -> Iterator[Difference | Part]:
        """Yields what the mappings of paired boxes have under a key."""
        for m, n in self.pairs:
            ours, theirs = (
                one.values[key][row] if key in one.values else ABSENT for one, row in ((self.a, m), (self.b, n))
            )
            if ours is not ABSENT and theirs is not ABSENT:
                yield Part(self.a.place(self.at, key, m), ours, theirs, _HOW)
            elif ours is not theirs:
                yield only_in(self.a.place(self.at, key, m), is_first=theirs is ABSENT)

    def _field(self, key: Any) -> Iterator[Difference | Part]:
        """Yields what both answers have under a key: for paired boxes if it is about single boxes, else as it is."""
        if key not in self.a.values or key not in self.b.values:
            return
        boxes = self.a.more_boxes(key), self.b.more_boxes(key)
        if boxes[0] is not None and boxes[1] is not None:
            yield from self._more_boxes(key, boxes[0], boxes[1])
        else:
            yield from self._paired(key, Part(self.a.place(self.at, key), self.a.values[key], self.b.values[key]))

    def _paired(self, key: Any, whole: Part) -> Iterator[Difference | Part]:
        """Yields the parts of what `key` says, in the order of the paired boxes if it is about single boxes. In a
        mapping, each key may be."""
        place = whole.at
        inner = plain(whole.ours), plain(whole.theirs)
        if isinstance(inner[0], Mapping) and isinstance(inner[1], Mapping):
            for one, name in zip(by_key(inner[0], inner[1], place), dict.fromkeys((*inner[0], *inner[1])), strict=True):
                yield from self._paired(name, one) if isinstance(one, Part) else (one,)
            return
        ours, theirs = self.a.of_boxes(key, inner[0]), self.b.of_boxes(key, inner[1])
        if ours is None or theirs is None:
            yield whole
        elif len(self.pairs) < len(ours):
            yield from (Part(f"{place}[{m}]", ours[m], theirs[n], _HOW) for m, n in self.pairs)
        else:
            rows = [n for _, n in self.pairs]
            is_array = isinstance(theirs, np.ndarray)
            yield Part(place, ours, theirs[rows] if is_array else [theirs[n] for n in rows], _HOW)

    def _more_boxes(self, key: Any, ours: Array, theirs: Array) -> Iterator[Difference]:
        shares = box_pairs.overlaps(ours, theirs)
        may = box_pairs.near(ours, theirs, shares, self.limits, are_whole=self.a.is_whole and self.b.is_whole)
        for m, n in self.pairs:
            if not may[m, n]:
                what = f"{_numbers(ours[m])} and {_numbers(theirs[n])} overlap by {shares[m, n]:.3f}"
                yield Difference(self.a.place(self.at, key, m), "box", what, _HOW)

    def _row(self, of: Found, row: int) -> str:
        return f"{self.at}[{row}]" if of.form == "list" else of.place(self.at, of.key, row)


def _numbers(box: Array) -> str:
    return f"[{', '.join(f'{number:.5g}' for number in box)}]"


def _said(of: Found, row: int) -> str:
    label = f" {of.labels.values[row]!r}" if of.labels else ""
    score = f" with score {of.scores.values[row]:.3g}" if of.scores else ""
    return f"box{label} {_numbers(of.boxes[row])}{score}"


def _moved(a: Found, b: Found, one: int, other: int, overlap: float) -> str:
    if a.labels and a.labels.is_like(b.labels) and b.labels and a.labels.values[one] != b.labels.values[other]:
        return f"the labels {a.labels.values[one]!r} and {b.labels.values[other]!r} of {_said(a, one)}"
    return f"{_said(a, one)} and {_said(b, other)} overlap by {overlap:.3f}"
