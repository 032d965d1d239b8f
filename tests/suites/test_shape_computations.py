"""Random shape computations, simplified, give what they gave, at sizes from 0 to 7; see `benchmarks/judging`."""

from __future__ import annotations

import pytest

from benchmarks.judging.shape_computations import judge, judged
from onnxsmith.graph.shapes import bounds

SAMPLE, WHOLE = 60, 2_000


def test_random_shape_computations(whole: bool) -> None:
    count = WHOLE if whole else SAMPLE
    answers = dict(judged(iter(range(count)), 1))
    assert len(answers) == count
    assert not {seed: answer for seed, answer in answers.items() if answer.startswith(("wrong", "invalid"))}
    assert sum(answer == "right" for answer in answers.values()) > 0.9 * count


def test_a_wrong_simplification_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """With every size taken to be 1 or more, as it once was, some of these graphs come out wrong."""
    real = bounds._bound_of_factor

    def optimistic(atom: object, *, low: bool) -> int | None:
        return 1 if low and isinstance(atom, str) else real(atom, low=low)  # type: ignore[arg-type]

    monkeypatch.setattr(bounds, "_bound_of_factor", optimistic)
    answers = [judge(seed, frozenset(), lambda *_: None) for seed in (1, 10, 23, 33)]
    assert any(answer.startswith("wrong") for answer in answers)
