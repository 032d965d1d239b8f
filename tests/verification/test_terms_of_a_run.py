"""Sums whose length only a run shows: how many terms are counted, and which differences that explains."""

from __future__ import annotations

import numpy as np
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.allowance import Allowance
from onnxsmith.verification.explore import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.rounding import asked, roundings
from onnxsmith.verification.rounding_terms import UNKNOWN, own

_HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
_NORM = (
    "g (float[n, 4, {size}] x, float[4] s, float[4] b) => (float[n, 4, {size}] y) "
    "{{ y = InstanceNormalization(x, s, b) }}"
)
_U = 2.0**-24


@pytest.mark.parametrize(
    ("text", "sizes", "terms"),
    [
        (_NORM.format(size="d, h"), {}, UNKNOWN),
        (_NORM.format(size="d, h"), {"d": 64, "h": 128}, 64 * 128),
        (_NORM.format(size="d, h"), {"d": 4, "h": 4}, UNKNOWN),
        (_NORM.format(size="d, h"), {"d": 64}, UNKNOWN),
        (_NORM.format(size="64, 64"), {}, 64 * 64),
        ("g (float[n, k] x) => (float[n, 1] y) { y = ReduceMean(x) }", {"n": 3, "k": 5000}, 5000),
        ("g (float[n, k] x) => (float[n, k] y) { y = Softmax(x) }", {"k": 5000}, 5000),
        ("g (float[n, k] x, float[k, m] w) => (float[n, m] y) { y = MatMul(x, w) }", {"k": 5000}, 5000),
    ],
)
def test_terms_follow_from_the_sizes_of_the_run(text: str, sizes: dict[str, int], terms: int) -> None:
    model = from_text(_HEAD + text)
    (node,) = model.graph
    assert own(node, model, sizes) == (terms, 1)


def _judged(length: int, off: float, *, tolerance: float | None = None, sized: bool = True) -> tuple[str, float]:
    model = from_text(_HEAD + _NORM.format(size="length"))
    values = np.random.default_rng(0).standard_normal((1, 4, length)).astype(np.float32)
    moved = values.copy()
    moved[0, 0, 0] += off
    run = Run(Feed("f", {"n": 1, "length": length}, {"x": values}), {"y": values})
    counted = {"y": asked(tolerance)} if tolerance else roundings(model)
    allowance = Allowance(counted, sized=(lambda sizes: roundings(model, sizes=sizes)) if sized else None)
    found, allowed = allowance.judged(run, "y", moved)
    return found.reason, allowed.worst


def test_a_long_sum_may_differ_by_its_own_rounding() -> None:
    """A volume of 2^16 elements: the bound is 8·(√65536 + 1)·u, about eight times the bound of 1024 terms."""
    off = 8 * 100 * _U
    assert _judged(2**16, off, sized=False)[0]
    reason, worst = _judged(2**16, off)
    assert not reason
    assert worst == pytest.approx(8 * (256 + 1) * _U, rel=0.01)


def test_a_difference_beyond_the_count_of_the_run_is_refused() -> None:
    assert _judged(2**16, 8 * 1000 * _U)[0]
    assert _judged(2**10, 8 * 100 * _U)[0]  # a short sum keeps the bound of the file


def test_a_tolerance_that_was_asked_for_stays() -> None:
    assert _judged(2**16, 8 * 100 * _U, tolerance=1e-6)[0]
