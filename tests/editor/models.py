"""Small models to edit."""

from __future__ import annotations

from pathlib import Path

import onnxsmith
from onnxsmith.graph.files.text import from_text

NET = """<ir_version: 10, opset_import: ["": 21]>
net (float[n,4] x) => (float[n,4] y, float[n,4] z) <float[4] bias = {1,2,3,4}> {
  a = Relu(x)
  [add] c = Add(a, bias)
  [product] y = Mul(c, c)
  [gate] z = Sigmoid(a)
}"""
LOOP = """<ir_version: 10, opset_import: ["": 21]>
g (float[n,4] x, int64 k) => (float[n,4] y) <bool go = {1}> {
  a = Tanh(x)
  y = Loop(k, go, a) <body = b (int64 i, bool c, float[n,4] s) => (bool c2, float[n,4] s2) {
    c2 = Identity(c)
    inner = Mul(s, a)
    s2 = Add(inner, s)
  }>
}"""
WIDE = """<ir_version: 10, opset_import: ["": 21, "my": 1]>
g (float[n,6] x, float[6] w) => (float[n,3] first, int64[n,2] at, float[n,6] scaled)
  <int64[1] k = {2}, int64[2] parts = {3,3}, float16[6] h = {1,2,3,4,5,6}>
{
  [split] first, second = Split<axis = 1>(x, parts)
  [top] values, at = TopK<axis = 1>(second, k)
  [wide] hw = Cast<to = 1>(h)
  [scale] s = Mul(x, hw)
  [norm] t = my.Norm(s, w)
  [soft] scaled = Softmax<axis = 1>(t)
}
<domain: "my", opset_import: ["": 21]>
Norm (v, u) => (r) {
  [inside] q = Mul(v, u)
  r = Neg(q)
}"""


def saved(text: str, folder: Path) -> Path:
    """The model as a file."""
    path = folder / "model.onnx"
    onnxsmith.save(from_text(text), path)
    return path
