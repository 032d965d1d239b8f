"""What two files hold otherwise, and no input reaches, is not called equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith import compare
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.surgery.weights_as_inputs import Weight
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.input_search import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.unseen_differences import _apart, _changes, _is_seen_with, places

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((64, 4)).astype(np.float32)
TEXT = (
    '<ir_version: 10, opset_import: ["": 20]> g (float[n] x, float[64,4] table) => (float[n,4] y) '
    "{ h = Clip(x, low, high) i = Cast<to = 7>(h) y = Gather(table, i) }"
)


def model(table: np.ndarray, high: float = 31.0) -> ir.Model:  # type: ignore[type-arg]
    """A table of which the upper half is never read."""
    made = from_text(TEXT.replace("{ h =", f"<float low = {{0.0}}, float high = {{{high}}}> {{ h ="))
    value = made.graph.inputs.pop()
    value.const_value = ir.tensor(table, name="table")
    made.graph.register_initializer(value)
    return made


def changed(*rows: int) -> np.ndarray:  # type: ignore[type-arg]
    table = TABLE.copy()
    table[list(rows)] *= 2
    return table


def test_a_row_that_no_input_reads_is_named() -> None:
    report = compare(model(TABLE), model(changed(50)), inputs={"x": np.arange(32, dtype=np.float32)}).report
    assert report.verdict is Verdict.CANNOT_TELL
    assert "weight 'table' differs in 4 elements, but no input shows this" in report.headline


def test_a_row_that_is_read_is_different() -> None:
    given = {"x": np.arange(32, dtype=np.float32)}
    assert compare(model(TABLE), model(changed(20)), inputs=given).report.verdict is Verdict.DIFFERENT


def test_equal_tables_are_equal() -> None:
    given = {"x": np.arange(32, dtype=np.float32)}
    assert compare(model(TABLE), model(TABLE.copy()), inputs=given).report.verdict is Verdict.DONE


def test_a_weight_that_is_made_up_for_elsewhere_is_equal() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,2] x) => (float[n,2] y) '
        "<float[2] w = {%s}, float[2] v = {%s}> { a = Mul(x, w) y = Mul(a, v) }"
    )
    a, b = from_text(text % ("2, 2", "1, 3")), from_text(text % ("1, 4", "2, 1.5"))
    assert compare(a, b).report.verdict is Verdict.DONE


def test_a_zero_point_that_no_input_shows_is_named() -> None:
    text = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,2] x) => (bool[n,2] y) '
        "<float s = {0.1}, uint8 z = {%d}, float far = {1000}> "
        "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) y = Less(d, far) }"
    )
    report = compare(from_text(text % 3), from_text(text % 4)).report
    assert report.verdict is Verdict.CANNOT_TELL
    shown = text.replace("bool[n,2] y", "float[n,2] y").replace("y = Less(d, far)", "y = Neg(d)")
    assert compare(from_text(shown % 3), from_text(shown % 100)).report.verdict is Verdict.DIFFERENT


@pytest.mark.parametrize(
    ("own", "wanted", "apart"),
    [
        # the root mean square is 1: 64 roundoffs of 2^-24 are 2^-18
        (np.float32([1 + 2**-18, 1]), np.float32([1, 1]), [False, False]),
        (np.float32([1 + 2**-17, 1]), np.float32([1, 1]), [True, False]),
        (np.float32([np.nan, np.inf, 1]), np.float32([np.nan, np.inf, 1]), [False, False, False]),
        (np.float32([np.nan, np.inf, np.inf]), np.float32([1, 1, -np.inf]), [True, True, True]),
        (np.float32([np.inf]), np.float32([np.nan]), [True]),
        (np.int64([3, 4]), np.int64([3, 5]), [False, True]),
    ],
)
def test_places_differ_by_more_than_64_roundings(own: Any, wanted: Any, apart: list[bool]) -> None:
    assert list(places(own, wanted)) == apart


@pytest.mark.parametrize(
    ("differing", "tried"),
    [
        ([3], [[3]]),
        ([1, 3, 5], [[1], [3], [5]]),
        (range(16), [[row] for row in range(0, 16, 2)]),  # eight of them
        (range(9), [[row] for row in range(0, 9, 2)]),
        (range(17), [list(range(17))]),  # more than half: all at once
    ],
)
def test_a_few_rows_are_replaced_one_by_one(differing: Sequence[int], tried: list[list[int]]) -> None:
    own, wanted = np.zeros((32, 2)), np.zeros((32, 2))
    wanted[list(differing), 1] = 1.0
    found = list(_changes(own, wanted, own != wanted))
    assert [list(np.flatnonzero(one.any(axis=1))) for one in found] == tried
    assert not own.any()


def test_a_vector_is_replaced_as_a_whole() -> None:
    own, wanted = np.zeros(8), np.eye(8)[3]
    (found,) = _changes(own, wanted, own != wanted)
    assert found is wanted


class _Constant(Probe):
    """A probe that answers with the weight."""

    def __init__(self) -> None:
        pass

    def plain(self, feed: Feed) -> Outputs | None:
        return {"y": np.zeros(2)}

    def replaced(self, feed: Feed, weight: Weight, value: Any) -> Outputs | None:
        return {"y": value} if feed.label != "refused" else None


@pytest.mark.parametrize(
    ("label", "value", "is_seen"),
    [
        ("any", [0.0, 0.0], False),
        ("any", [0.0, 1e-30], True),
        ("any", [0.0, np.nan], True),
        ("refused", [1.0, 1.0], False),
    ],
)
def test_any_difference_tells_another_weight(label: str, value: list[float], is_seen: bool) -> None:
    runs = [Run(Feed(label, {}, {}), {})]
    weight = Weight("w", ir.tensor([0.0]), 1)
    assert _is_seen_with(_Constant(), runs, weight, np.array(value), _apart) == is_seen
    assert _apart(runs[0], {"y": np.array([1, 2])}, {"y": np.array([1, 3])})
