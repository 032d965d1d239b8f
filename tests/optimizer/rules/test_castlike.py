"""algebra/castlike: known dtypes, and functions, whose dtypes their callers decide."""

from __future__ import annotations

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.verification.sessions import verify_models
from tests.refusals import refuses
from tests.rewrites import assert_rewritten

RULE = "algebra/castlike"


def test_the_same_dtype_is_nothing() -> None:
    text = "g (float[N] x, float like) => (float[N] y) { a = CastLike(x, like)\n y = Neg(a) }"
    assert_rewritten(RULE, "Neg", text)


def test_a_constant_to_be_like() -> None:
    text = "g (int64[N] x) => (float[N] y) <float one = {1}> { a = CastLike(x, one)\n y = Neg(a) }"
    assert not assert_rewritten(RULE, "Cast Neg", text).graph.initializers


@refuses(RULE, 1)
def test_a_function_that_is_called_with_two_dtypes() -> None:
    model = from_text(
        """
        <ir_version: 10, opset_import: ["": 20, "f": 1]>
        g (float[N] x, int64[N] z) => (float[N] y, int64[N] q) { y = f.halve(x)\n q = f.halve(z) }
        <domain: "f", opset_import: ["": 20]>
        halve (x) => (y) { two = Constant<value = int64 {2}>()\n c = CastLike(two, x)\n y = Div(x, c) }
        """
    )
    result, part = simplified(model)
    assert not [entry for entry in part.fired if entry.rule == RULE]
    assert any("dtype" in entry.why_not for entry in part.refused if entry.rule == RULE)
    assert verify_models(model, result, Verify(runtime="reference")).equal
