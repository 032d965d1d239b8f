"""Which outputs a node has, and what an output of the graph is."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnxsmith.graph.files.load import load
from tests.suites.agreement import Trap, assert_harmless

F = np.float32

TRAPS = {
    "the first part is not used": Trap("(float[4] x) => (float[2] b) { a, b = Split<axis = 0, num_outputs = 2>(x) }"),
    "the middle part is not used": Trap(
        "(float[6] x) => (float[2] d) { a, b, c = Split<axis = 0, num_outputs = 3>(x)\n d = Sub(c, a) }",
    ),
    "the indices alone": Trap("(float[5] x) => (int64[2] i) <int64[1] k = {2}> { v, i = TopK(x, k) }"),
    "the values alone": Trap("(float[5] x) => (float[2] w) <int64[1] k = {2}> { v, i = TopK(x, k)\n w = Neg(v) }"),
    "a Dropout whose mask nobody reads": Trap("(float[4] x) => (float[4] y) { a, m = Dropout(x)\n y = Neg(a) }"),
    "a Dropout whose mask alone is read": Trap("(float[4] x) => (bool[4] w) { a, m = Dropout(x)\n w = Not(m) }"),
    "a Dropout whose mask is an output": Trap("(float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout(x) }"),
    "a Dropout that has nothing to drop from": Trap("(float[0] x) => (float[0] y) { a = Dropout(x)\n y = Neg(a) }"),
    "a left-out first output": Trap(
        """(float[3,2,4] x, float[1,9,4] w, float[1,9,3] r) => (float[1,2,3] h) {
        "", h = GRU<hidden_size = 3>(x, w, r) }""",
    ),
    "left-out outputs of an LSTM": Trap(
        """(float[3,2,4] x, float[1,12,4] w, float[1,12,3] r) => (float[1,2,3] c) {
        "", "", c = LSTM<hidden_size = 3>(x, w, r) }""",
    ),
    "left-out inputs of an LSTM": Trap(
        """(float[3,2,4] x, float[1,12,4] w, float[1,12,3] r, float[1,2,3] h) => (float[3,1,2,3] y) {
        y = LSTM<hidden_size = 3>(x, w, r, "", "", h) }""",
    ),
    "left-out bounds of a Clip": Trap(
        """(float[4] x) => (float[4] y, float[4] z, float[4] w) <float b = {1}> { y = Clip(x, "", b)\n z = Clip(x)
        w = Clip(x, b) }""",
    ),
    "equal nodes but for a left-out input": Trap(
        """(float[4] x) => (float[4] y) <float b = {1}> { a = Clip(x, "", b)\n c = Clip(x, b)\n y = Sub(a, c) }""",
    ),
    "left-out inputs of a Resize": Trap(
        """(float[1,1,2,2] x) => (float[1,1,4,4] y) <int64[4] s = {1, 1, 4, 4}> {
        y = Resize<mode = "nearest">(x, "", "", s) }""",
    ),
    "a Pad without a value but with axes": Trap(
        """(float[2,2] x) => (float[2,4] y) <int64[2] p = {1, 1}, int64[1] a = {1}> { y = Pad(x, p, "", a) }""",
    ),
    "an output that is an input": Trap("(float[2] x) => (float[2] x, float[2] y) { y = Neg(x) }"),
    "an output that is an input, through an Identity": Trap("(float[2] x) => (float[2] y) { y = Identity(x) }"),
    "two outputs that are one input": Trap(
        "(float[2] x) => (float[2] y, float[2] z) { y = Identity(x)\n z = Identity(x) }",
    ),
    "an output that is an initializer": Trap(
        "(float[2] x) => (float[2] w, float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
    ),
    "an output that is an initializer which folds elsewhere": Trap(
        "(float[2] x) => (float[2] w, float[2] y) <float[2] w = {1, 4}> { a = Sqrt(w)\n y = Add(x, a) }",
    ),
    "two outputs that are equal initializers": Trap(
        """(float[2] x) => (float[2] w, float[2] v, float[2] y) <float[2] w = {1, 2}, float[2] v = {1, 2}> {
        y = Add(x, w) }""",
    ),
    "an output that folds": Trap(
        "(float[2] x) => (float[2] z, float[2] y) <float[2] w = {1, 4}> { z = Sqrt(w)\n y = Add(x, z) }",
    ),
    "all outputs fold": Trap("() => (float[2] z) <float[2] w = {1, 4}> { a = Sqrt(w)\n z = Neg(a) }"),
    "an output in the middle": Trap(
        "(float[2] x) => (float[2] a, float[2] y) { a = Exp(x)\n b = Identity(a)\n y = Neg(b) }",
    ),
    "an output in the middle of what fuses": Trap(
        """(float[n,1,4,4] x) => (float[n,1,4,4] a, float[n,1,4,4] y) <float[1,1,1,1] w = {2}, float f = {3}> {
        a = Conv(x, w)\n y = Mul(a, f) }""",
    ),
    "outputs at both ends of two transposes": Trap(
        "(float[2,3] x) => (float[3,2] a, float[2,3] y) { a = Transpose(x)\n y = Transpose(a) }",
    ),
    "outputs at both ends of two casts": Trap(
        "(int32[2] x) => (int64[2] a, float[2] y) { a = Cast<to = 7>(x)\n y = Cast<to = 1>(a) }",
    ),
    "outputs at both ends of two reshapes": Trap(
        """(float[2,3] x) => (float[6] a, float[3,2] y) <int64[1] s = {6}, int64[2] t = {3, 2}> { a = Reshape(x, s)
        y = Reshape(a, t) }""",
    ),
    "equal nodes, both outputs": Trap("(float[2] x) => (float[2] a, float[2] b) { a = Exp(x)\n b = Exp(x) }"),
    "equal nodes, the second an output": Trap(
        "(float[2] x) => (float[2] b, float[2] c) { a = Exp(x)\n b = Exp(x)\n c = Neg(a) }",
    ),
    "equal nodes of several results, one output each": Trap(
        """(float[4] x) => (float[2] a, float[2] d) { a, b = Split<axis = 0, num_outputs = 2>(x)
        c, d = Split<axis = 0, num_outputs = 2>(x) }""",
    ),
    "equal nodes of several results, all outputs": Trap(
        """(float[4] x) => (float[2] a, float[2] b, float[2] c, float[2] d) {
        a, b = Split<axis = 0, num_outputs = 2>(x)\n c, d = Split<axis = 0, num_outputs = 2>(x) }""",
    ),
    "a chain of Identities between outputs": Trap(
        "(float[2] x) => (float[2] a, float[2] b, float[2] c) { a = Neg(x)\n b = Identity(a)\n c = Identity(b) }",
    ),
    "an output whose name a new value would take": Trap(
        """(float[n,1,4,4] x)
        => (float[n,1,4,4] y, float[1,1,1,1] w_folded) <float[1,1,1,1] w = {2}, float f = {3}, float[1,1,1,1]
        w_folded = {9}> { a = Conv(x, w)\n y = Mul(a, f) }""",
    ),
    "values with the names that a rule makes up": Trap(
        """(float[2,3,4] x)
        => (float[a,b] y, int64[2] t_known) <int64[1] z = {0}, int64[1] m = {12}, int64[2] k = {5, 6}> {
        s = Shape(x)\n g = Gather(s, z)\n t = Concat<axis = 0>(g, m)\n y = Reshape(x, t)\n t_known = Neg(k) }""",
    ),
    "values with the names that folding makes up": Trap(
        """(float[2] x, float[2] a_folded) => (float[2] y) <float[2] w = {1, 4}> { a = Sqrt(w)\n b = Add(x, a)
        y = Add(b, a_folded) }""",
    ),
    "nodes with one name": Trap(
        """(float[2] x) => (float[2] y) { [same]\n a = Exp(x) [same]\n b = Neg(a) [same]\n c = Neg(b) [same]
        y = Abs(c) }""",
    ),
    "an unused input": Trap("(float[2] x, float[n] unused) => (float[2] y) { y = Neg(x) }"),
    "no inputs and nothing that folds": Trap(
        "() => (float[2] y) { y = RandomUniform<shape = [2], seed = 1.0>() }",
        random=True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()


@pytest.mark.parametrize("value", ["x", "w", "a", "y"])
def test_an_output_twice(value: str) -> None:
    """ONNX text has no word for it."""
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["a"]), onnx.helper.make_node("Identity", ["a"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])],
        [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in (value, "y", value)],
        [onnx.numpy_helper.from_array(np.array([1, 2], F), "w")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    assert_harmless(load(model))
