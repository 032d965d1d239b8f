"""Models whose weights are stored as integers count as quantised, in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import onnxsmith
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.precision.integer_weights import integer_weights
from tests.precision.test_score_power import model

WIDTH = 64
DRAW = np.random.default_rng(0)
Q = DRAW.integers(-127, 128, (WIDTH, WIDTH)).astype(np.int8)
SCALE = np.full((1, WIDTH), 1e-3, np.float32)
ZERO = np.zeros((1, WIDTH), np.float32)
W = (DRAW.standard_normal((WIDTH, WIDTH)) / 8).astype(np.float32)
IN = f"float[n,{WIDTH}] x, int8[{WIDTH},{WIDTH}] q, float[1,{WIDTH}] s"
OUT = f"float[n,{WIDTH}] y"

FORMS = {
    "Cast, Mul": "{ f = Cast<to=1>(q) w = Mul(f, s) y = MatMul(x, w) }",
    "Cast, Sub, Mul": "{ f = Cast<to=1>(q) c = Sub(f, z) w = Mul(c, s) y = MatMul(x, w) }",
    "Transpose, Cast, Div": "{ t = Transpose(q) f = Cast<to=1>(t) w = Div(f, s) y = MatMul(x, w) }",
    "the product is scaled": "{ f = Cast<to=1>(q) p = MatMul(x, f) y = Mul(p, s) }",
    "rows": "{ i = Cast<to=7>(x) g = Gather(q, i) f = Cast<to=1>(g) r = ReduceSum<keepdims=0>(f, a) y = Mul(r, s) }",
}


def made(body: str) -> ir.Model:
    also = f", float[1,{WIDTH}] z" if "z)" in body else ""
    also += ", int64[1] a" if "a)" in body else ""
    given: dict[str, Any] = {"q": Q, "s": SCALE, "z": ZERO, "a": np.array([1])}
    return model(f"({IN}{also}) => ({OUT}) {body}", **given)


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str) -> None:
    assert [value.name for value in integer_weights(made(FORMS[form]))] == ["q"]


@pytest.mark.parametrize("form", list(FORMS)[:3])
@pytest.mark.parametrize("verb", ["quantize", "prune"])
def test_a_model_of_integer_weights_is_refused(verb: str, form: str, tmp_path: Path) -> None:
    with pytest.raises(OnnxsmithError) as caught:
        getattr(onnxsmith, verb)(made(FORMS[form]), tmp_path / "m.onnx")
    assert caught.value.problem.id == f"{verb}/quantised"
    assert "1 weight" in caught.value.problem.why
    assert not list(tmp_path.iterdir())


def test_a_model_with_a_few_integer_weights_is_quantised(tmp_path: Path) -> None:
    body = "{ f = Cast<to=1>(q) w = Mul(f, s) a = MatMul(x, w) b = Relu(a) y = MatMul(b, v) }"
    given = model(f"({IN}, float[{WIDTH},{WIDTH}] v) => ({OUT}) {body}", q=Q, s=SCALE, v=W)
    found = onnxsmith.quantize(given, tmp_path / "m.onnx", to="int8-dynamic", measure_time=False)
    assert "turn into floats: 1 weight" in str((found.report.headline, *found.report.parts, *found.report.notes))


def test_integers_that_no_scale_multiplies_are_no_weights() -> None:
    table = model(f"(int64[n] i, int8[{WIDTH},{WIDTH}] q) => ({OUT}) {{ g = Gather(q, i) y = Cast<to=1>(g) }}", q=Q)
    assert not list(integer_weights(table))
