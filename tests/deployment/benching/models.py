"""Models for the tests, as files."""

from __future__ import annotations

from pathlib import Path

from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text

HEAD = '<ir_version: 10, opset_import: ["": 20]> '

CHAIN = HEAD + "g (float[n,8] x) => (float[n,8] y) { a = Exp(x) b = Tanh(a) y = Neg(b) }"
SAME = HEAD + "g (float[n,8] x) => (float[n,8] y) { a = Exp(x) b = Tanh(a) c = Neg(b) d = Neg(c) y = Neg(d) }"
WRONG = HEAD + "g (float[n,8] x) => (float[n,8] y) { a = Exp(x) y = Neg(a) }"
TWO = HEAD + "g (float[n,8] x) => (float[n,8] y, float[n,8] z) { y = Exp(x) z = Neg(x) }"
MORE = HEAD + "g (float[n,8] x, float[n,8] w) => (float[n,8] y) { y = Add(x, w) }"
FIXED = HEAD + "g (float[2,8] x) => (float[2,8] y) { y = Exp(x) }"
TABLE = HEAD + "g (int64[n] x) => (float[n,2] y) <float[3,2] t = {1,2,3,4,5,6}> { y = Gather(t, x) }"
TEXTS = HEAD + "g (string[n] x) => (string[n] y) { y = Identity(x) }"
SEQUENCE = HEAD + "g (seq(float[n]) x) => (float[n] y) { i = Constant<value = int64 {0}>() y = SequenceAt(x, i) }"
ENDLESS = (
    HEAD
    + """g (float[n,8] x) => (float[n,8] y) {
  forever = Constant <value = int64 {9000000000000000}> ()
  yes = Constant <value = bool {1}> ()
  y = Loop (forever, yes, x) <body = b (int64 i, bool c, float[n,8] s) => (bool d, float[n,8] t)
    { d = Identity(c) t = Neg(s) }> }"""
)
HUGE = (
    HEAD
    + """g (float[n,8] x) => (float z) {
  s = Constant <value = int64[2] {1000000, 100000}> ()
  f = Constant <value = float {1}> ()
  w = Expand(f, s)
  z = ReduceSum <keepdims = 0> (w) }"""
)


def saved(folder: Path, text: str, name: str = "m.onnx") -> str:
    """The path of the model's file."""
    save(from_text(text), folder / name)
    return str(folder / name)
