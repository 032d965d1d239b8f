"""Shapes in and behind local functions."""

from __future__ import annotations

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes.symbolic_inference import inferred

TEXT = """<ir_version: 10, opset_import: ["": 21, "own": 1]>
g (float[n,4] x, bool which) => (float[n,5,4] z) {
  a = own.shifted(x)
  b = If(which) <then_branch = t () => (p) { p = own.shifted(a) }, else_branch = e () => (q) { q = Identity(a) }>
  c = own.widened(b)
  z = Relu(c)
}
<domain: "own", opset_import: ["": 21]> shifted (s) => (r) { one = Constant<value_float=1.0>() r = Add(s, one) }
<domain: "own", opset_import: ["": 21, "own": 1]> widened (s) => (r) {
  m = own.shifted(s)
  one = Constant<value_ints = [1]>()
  axes = Constant<value_ints = [1]>()
  u = Unsqueeze(m, axes)
  many = Constant<value_ints = [5]>()
  sizes = Concat<axis = 0>(one, many, one)
  r = Expand(u, sizes)
}"""


def test_shapes_go_through_functions() -> None:
    made, note = inferred(from_text(TEXT))
    shapes = {value.name: str(value.shape) for node in made.graph for value in node.outputs}
    assert note is None
    assert shapes == {"a": "[n,4]", "b": "[n,4]", "c": "[n,5,4]", "z": "[n,5,4]"}
