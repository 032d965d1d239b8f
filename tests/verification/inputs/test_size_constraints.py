"""The cost of a run counts what the loops of a graph compute."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.verification.inputs.size_constraints import numbers

LOOP = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[n] x) => (float[n] y) {
  turns = Constant <value_int = 3> ()
  y = Loop (turns, , x) <body = b1 (int64 i, bool c, float[n] u) => (bool d, float[n] w) {
    d = Identity (c)
    INNER
  }>
}
"""
NESTED = """w = Loop (turns, , u) <body = b2 (int64 j, bool e, float[n] v) => (bool f, float[n] z) {
      f = Identity (e)
      z = Neg (v)
    }>"""


def cost(inner: str, size: int) -> int:
    model = ir.from_onnx_text(LOOP.replace("INNER", inner))
    return numbers(inferred(model)[0]).elements({"n": size})


def test_loops_in_loops_count_their_turns() -> None:
    assert cost("w = Neg (u)", 50) == 2 * 50
    assert cost(NESTED, 50) == 2 * 50 + 50 * 50
