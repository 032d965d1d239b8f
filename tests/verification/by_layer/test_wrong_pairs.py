"""Pairs that do not belong together, and tensors that differ: two graphs cut at their common tensors."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.by_layer.part_comparison import Parts
from onnxsmith.verification.by_layer.part_verification import Sorted, sorted_out

HEAD = (
    '<ir_version: 8, opset_import: ["": 17]> g (float[4] x) => (float[4] y) <float two = {2.0}, float three = {3.0}> '
)
GRAPH = HEAD + "{ a = Mul(x, two)  b = Add(a, three)  c = Neg(b)  s = Sign(c)  y = Relu(s) }"
"""Behind `c`, the sign hides by how much it differs."""
OTHERWISE = HEAD + "{ t = Mul(x, two)  a = Add(t, three)  b = Identity(a)  c = Neg(b)  s = Sign(c)  y = Relu(s) }"
"""`a` holds what `b` holds; all else is equal."""
WRONG = HEAD + "{ a = Mul(x, two)  b = Add(a, two)  c = Neg(b)  s = Sign(c)  y = Relu(s) }"
"""`b` is wrong, and no output shows it."""


def found(candidate: str) -> Sorted:
    feeds = {"x": np.array([0.5, 1.0, 4.0, 8.0], np.float32)}
    pairs = tuple(Pair(name, name, "name") for name in ("a", "b", "c", "s"))
    with ExitStack() as stack:
        ours, theirs = (
            stack.enter_context(OnnxTap(from_text(text), runtimes.get("reference").preparer(), Options(), "m"))
            for text in (GRAPH, candidate)
        )
        return sorted_out(Parts(ours, theirs, pairs, (Pair("y", "y", "port"),), (feeds, feeds)))


def test_equal_graphs_are_cut_everywhere() -> None:
    assert found(GRAPH) == Sorted(("a", "b", "c", "s"), (), {})


def test_a_tensor_that_holds_something_else_is_no_cut() -> None:
    said = found(OTHERWISE)
    assert said.otherwise == ("a",)
    assert said.kept == ("b", "c", "s")
    assert not said.apart


def test_a_tensor_that_differs_is_no_wrong_pair() -> None:
    said = found(WRONG)
    assert said.apart.keys() == {"b"}
    assert "further apart" in said.apart["b"]
