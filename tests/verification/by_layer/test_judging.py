"""Which operation is named: the one that the outputs are wrong by, not the first that errs by a little."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx_ir as ir

import onnxsmith
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.graph.files.text import from_text

CHAIN = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,32] x) => (float[n,32] y) {
    a = Mul(x, s)
    b = Tanh(a)
    c = Mul(b, t)
    d = Sin(c)
    y = Add(d, x)
}
"""


def chain(text: str = CHAIN, **factors: float) -> ir.Model:
    """The graph with the factors `s`, `t` and others in it."""
    known = {"s": 0.5, "t": 2.0} | factors
    made = "".join(f"    {name} = Constant<value_float = {value:.9f}>()\n" for name, value in known.items())
    return from_text(text.replace("    a = Mul", f"{made}    a = Mul"))


def layers_of(a: ir.Model, b: ir.Model) -> tuple[Layers, Any]:
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((8, 32)).astype(np.float32)}
    result = onnxsmith.compare(a, b, inputs=feeds, generate=False, per_layer=True)
    return result.report.part(Layers), result


def test_a_slight_error_is_no_headline_before_a_large_one() -> None:
    """0.5 moved by 2e-6 of itself is beyond the allowance; a factor of 2.4 in the place of 2 is what is wrong."""
    found, result = layers_of(chain(), chain(s=0.5 * (1 + 2e-6), t=2.4))
    assert found.culprits[0] == "c"
    assert result.report.verdict is Verdict.DIFFERENT
    assert "a" not in found.culprits
    assert found.left is not None
    assert found.left[1] < 1e-4 < found.left[0]


def test_a_large_error_far_smaller_than_another_is_named_after_it() -> None:
    found, _ = layers_of(chain(), chain(s=0.5 * (1 + 1e-4), t=2.4))
    assert found.culprits == ("c", "a")


HIDDEN = CHAIN.replace("d = Sin(c)", "low = Constant<value_float = -1000.0>()\n    k = Div(c, low)\n    d = Round(k)")


def test_a_slight_error_that_no_output_shows_is_a_note() -> None:
    found, result = layers_of(chain(HIDDEN), chain(HIDDEN, t=2.0 * (1 + 3e-6)))
    assert result.ok
    assert found.culprits == ()
    assert found.layer("c").verdict == "own error, slight"
    assert any("slightly more than is allowed" in note for note in found.notes)


def test_a_huge_error_that_nothing_shows_is_named() -> None:
    """Round takes whatever small number it is given to 0: a factor of 100 too much in front of it moves no output."""
    found, result = layers_of(chain(HIDDEN), chain(HIDDEN, t=200.0))
    assert found.culprits == ("c",)
    assert result.report.verdict is Verdict.DIFFERENT


REWRITTEN = CHAIN.replace("d = Sin(c)", "k = Mul(c, u)\n    d = Sin(k)")


def test_what_is_scaled_and_made_up_for_is_not_named() -> None:
    """Both Muls by the same operator, both called as they were: the next undoes what the first does."""
    found, result = layers_of(chain(REWRITTEN, u=1.0), chain(REWRITTEN, t=8.0, u=0.25))
    assert result.ok
    assert found.culprits == ()
    assert found.layer("c").verdict == "computed otherwise"


def test_behind_what_is_made_up_for_a_fault_is_still_found() -> None:
    text = REWRITTEN.replace("y = Add(d, x)", "e = Mul(d, v)\n    y = Add(e, x)")
    found, _ = layers_of(chain(text, u=1.0, v=3.0), chain(text, t=8.0, u=0.25, v=3.1))
    assert found.culprits == ("e",)


HALF = """
<ir_version: 10, opset_import: ["": 21]>
g (int64[n] i, float[n,4] x) => (float[n,4] y) { a = Gather(table, i) y = Add(a, x) }
"""


def test_a_table_in_float16_beside_itself_in_float32_is_rounding() -> None:
    table = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    models = []
    for dtype, body in ((np.float32, HALF), (np.float16, HALF.replace("a = Gather(table, i)", CASTED))):
        model = from_text(body.replace("float[n,4] x)", f"float[n,4] x, {NAMES[dtype]}[8,4] table)"))
        value = model.graph.inputs[2]
        value.const_value = ir.tensor(table.astype(dtype), name="table")
        model.graph.inputs.remove(value)
        model.graph.register_initializer(value)
        models.append(model)
    feeds = {"i": np.array([0, 3, 7]), "x": np.ones((3, 4), np.float32)}
    result = onnxsmith.compare(*models, inputs=feeds, generate=False, per_layer=True)
    assert result.report.part(Layers).culprits == ()


NAMES = {np.float32: "float", np.float16: "float16"}
CASTED = "h = Gather(table, i) a = Cast<to = 1>(h)"


def test_a_tensor_that_absorbed_the_next_operation_is_no_fault() -> None:
    """`c` of the candidate holds what `e` holds in the reference, and no output shows a difference."""
    apart = HIDDEN.replace("k = Div(c, low)", "e = Mul(c, u)\n    k = Div(e, low)")
    for ours, theirs in ((chain(apart, u=3.0), chain(HIDDEN, t=6.0)), (chain(HIDDEN, t=6.0), chain(apart, u=3.0))):
        found, result = layers_of(ours, theirs)
        assert found.culprits == ()
        assert result.report.verdict is not Verdict.DIFFERENT


ATTENDING = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,32] x) => (float[n,32] y) {
    r = Constant<value_float = 0.5>()
    s = Constant<value_float = 0.7>()
    t = Constant<value_float = -1.1>()
    h = Tanh(x)
    q = Mul(h, r)
    k = Mul(h, s)
    kt = Transpose<perm = [1, 0]>(k)
    w = MatMul(q, kt)
    p = Softmax(w)
    v = Mul(h, t)
    o = MatMul(p, v)
    z = Add(o, h)
    z1 = Sin(z)
    z2 = Sigmoid(z1)
    z3 = Cos(z2)
    z4 = Elu(z3)
    z5 = Tanh(z4)
    z6 = Sin(z5)
    z7 = Softplus(z6)
    z8 = Cos(z7)
    y = Tanh(z8)
}
"""
"""Three tensors of one shape and operator, whose names a tool may exchange."""


def test_exchanged_names_are_no_fault() -> None:
    exchanged = {"q": "v", "v": "k", "k": "q"}
    other = re.sub(r"\b([qkv])\b", lambda found: exchanged[found[1]], ATTENDING)
    found, result = layers_of(from_text(ATTENDING), from_text(other))
    assert found.culprits == ()
    assert result.ok
    assert {one.paired_by for one in found.layers if one.name in exchanged} == {"name"}, "the pairs were wrong"
