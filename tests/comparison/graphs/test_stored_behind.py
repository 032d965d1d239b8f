"""A weight that one model reads as it is, and the other through a Cast or the like: the row says what became of it."""

from __future__ import annotations

import numpy as np
import pytest

import onnxsmith
from onnxsmith.base.report.parts.model_changes import WeightChange, WeightChanges
from onnxsmith.graph.files.text import from_text
from tests.comparison.graphs.test_diff import report_of

WEIGHT = "{0.1,0.2,0.3,0.4,0.5,0.6}"
PLAIN = f"""<ir_version: 10, opset_import: ["": 20]>
g (float[N,3] x) => (float[N,2] y) <float[3,2] W = {WEIGHT}> {{ y = MatMul(x, W) }}"""
BODY = """<ir_version: 10, opset_import: ["": 20]>
g (float[4,4] x, int64 k) => (float[4,4] y)
  <bool go = {1}, float[4,4] W = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,VALUE}>
{
  y = Loop(k, go, x) <body = b (int64 i, bool c, float[4,4] s) => (bool c2, float[4,4] s2)
    <float[4,4] inner = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,OTHER}> {
    c2 = Identity(c)
    p = MatMul(s, W)
    q = MatMul(p, inner)
    s2 = Tanh(q)
  }>
}"""


def rows(report: object) -> tuple[WeightChange, ...]:
    return report.part(WeightChanges).rows  # type: ignore[attr-defined,no-any-return]


def test_a_weight_that_cast_stores_narrower() -> None:
    with onnxsmith.edit(from_text(PLAIN)) as m:
        m.cast("float16")
    assert m.result is not None
    assert m.result.model is not None
    report = report_of(from_text(PLAIN), m.result.model)
    (row,) = rows(report)
    weight = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.float32)
    lost = np.abs(weight - weight.astype(np.float16).astype(np.float32))
    assert (row.name, row.dtype, row.new_dtype, row.form, row.readers) == ("W", "float", "float16", "cast", ("-> y",))
    assert row.max_abs == pytest.approx(lost.max())
    assert "1 converted weight" in report.headline
    (back,) = rows(report_of(m.result.model, from_text(PLAIN)))
    assert (back.dtype, back.new_dtype, back.max_abs) == ("float16", "float", row.max_abs)


@pytest.mark.parametrize(
    ("declared", "chain", "form"),
    [
        ("float[2,3] W = {0.1,0.3,0.5,0.2,0.4,0.6}", "t = Transpose(W)", "transposed (1, 0)"),
        (f"float[6] W = {WEIGHT}, int64[2] to = {{3,2}}", "t = Reshape(W, to)", "reshaped"),
        (f"double[3,2] W = {WEIGHT}", "a = Identity(W) t = Cast<to = 1>(a)", "cast"),
    ],
)
def test_other_forms(declared: str, chain: str, form: str) -> None:
    other = PLAIN.replace(f"float[3,2] W = {WEIGHT}", declared).replace("y = MatMul(x, W)", f"{chain} y = MatMul(x, t)")
    (row,) = rows(report_of(PLAIN, other))
    assert row.form == form


def test_a_changed_weight_of_the_outer_graph_is_not_said_to_be_in_the_body() -> None:
    def filled(value: str, other: str) -> str:
        return BODY.replace("VALUE", value).replace("OTHER", other)

    found = {row.name: row.path for row in rows(report_of(filled("16", "16"), filled("17", "18")))}
    assert found == {"W": "", "inner": "y/body"}
