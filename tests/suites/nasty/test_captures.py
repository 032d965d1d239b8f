"""What branches and bodies read from outside, and names that stand in several graphs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnxsmith.graph.files.load import load
from tests.suites.agreement import Trap, assert_harmless

F = np.float32

TRAPS = {
    "a node that only a branch reads": Trap(
        """(float[n] x, bool c) => (float[n] y) { a = Exp(x)\n b = Neg(a)
        y = If(c) <then_branch = t () => (float[p] p) { p = Abs(b) }, else_branch = e () => (float[q] q) {
        q = Sin(x) }> }""",
    ),
    "a node that only a branch in a branch reads": Trap(
        """(float[n] x, bool c) => (float[n] y) { a = Exp(x)\n y = If(c) <then_branch = t () => (float[p] p) {
        p = If(c) <then_branch = u () => (float[r] r) { r = Abs(a) }, else_branch = v () => (float[s] s) {
        s = Neg(x) }> }, else_branch = e () => (float[q] q) { q = Sin(x) }> }""",
    ),
    "an Identity that only a branch reads": Trap(
        """(float[n] x, bool c) => (float[n] y) { a = Identity(x)\n y = If(c) <then_branch = t () => (float[p] p) {
        p = Abs(a) }, else_branch = e () => (float[q] q) { q = Identity(a) }> }""",
    ),
    "an initializer that only a branch reads": Trap(
        """(float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> { y = If(c) <then_branch = t ()
        => (float[2] p) { p = Add(x, w) }, else_branch = e () => (float[2] q) { q = Identity(w) }> }""",
    ),
    "an initializer that folds, and a branch that reads what it was": Trap(
        """(float[2] x, bool c) => (float[2] y, float[2] z) <float[2] w = {1, 4}> { k = Sqrt(w)\n z = Add(x, k)
        y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, w) }, else_branch = e () => (float[2] q) {
        q = Mul(k, w) }> }""",
    ),
    "equal initializers, one of which a branch reads": Trap(
        """(float[2] x, bool c) => (float[2] y, float[2] z) <float[2] v = {1, 4}, float[2] w = {1, 4}> {
        z = Add(x, v)\n y = If(c) <then_branch = t () => (float[2] p) { p = Add(x, w) }, else_branch = e ()
        => (float[2] q) { q = Mul(v, w) }> }""",
    ),
    "equal nodes, one of which a branch reads": Trap(
        """(float[2] x, bool c) => (float[2] y, float[2] z) { a = Exp(x)\n b = Exp(x)\n z = Neg(a)
        y = If(c) <then_branch = t () => (float[2] p) { p = Abs(b) }, else_branch = e () => (float[2] q) {
        q = Mul(a, b) }> }""",
    ),
    "a fused node's inner result that a branch reads": Trap(
        """(float[n,1,4,4] x, bool c)
        => (float[n,1,4,4] y, float[n,1,4,4] z) <float[1,1,1,1] w = {2}, float f = {3}> { a = Conv(x, w)
        z = Mul(a, f)\n y = If(c) <then_branch = t () => (float[p1,p2,p3,p4] p) { p = Abs(a) }, else_branch = e ()
        => (float[q1,q2,q3,q4] q) { q = Sin(x) }> }""",
    ),
    "a transposed value that a branch reads too": Trap(
        """(float[2,3] x, bool c) => (float[a,b] y, float[2,3] z) { t = Transpose(x)\n r = Relu(t)\n z = Transpose(r)
        y = If(c) <then_branch = p () => (float[p1,p2] p) { p = Abs(r) }, else_branch = q () => (float[q1,q2] q) {
        q = Neg(t) }> }""",
    ),
    "a branch's initializers with the names of outer ones": Trap(
        """(float[2] x, bool c) => (float[2] y, float[2] z) <float[2] w = {1, 4}> { z = Add(x, w)
        y = If(c) <then_branch = t () => (float[2] p) <float[2] v = {5, 6}> { p = Add(x, v) }, else_branch = e ()
        => (float[2] q) <float[2] v = {7, 8}> { q = Mul(x, v) }> }""",
    ),
    "the same inner names in two Ifs, both taken": Trap(
        """(float[2] x) => (float[2] y) <bool c = {1}> { a = If(c) <then_branch = t ()
        => (float[2] p) <float[2] v = {5, 6}> { o = Exp(x)\n p = Add(o, v) }, else_branch = e () => (float[2] q) {
        q = Neg(x) }> y = If(c) <then_branch = t () => (float[2] p) <float[2] v = {7, 8}> { o = Sin(a)
        p = Mul(o, v) }, else_branch = e () => (float[2] q) { q = Neg(a) }> }""",
    ),
    "a taken branch whose names a body has as well": Trap(
        """(float[2] x) => (float[2] y) <bool c = {1}, int64 n = {2}> { a = If(c) <then_branch = t ()
        => (float[2] p) <float[2] v = {5, 6}> { o = Exp(x)\n p = Add(o, v) }, else_branch = e () => (float[2] q) {
        q = Neg(x) }> y = Loop(n, c, a) <body = b (int64 i, bool g, float[2] s)
        => (bool d, float[2] p) <float[2] v = {7, 8}> { d = Identity(g)\n o = Sin(s)\n p = Mul(o, v) }> }""",
    ),
    "a body that captures what another body made": Trap(
        """(float[2] x) => (float[2] y) <bool c = {1}, int64 n = {2}> {
        a = Loop(n, c, x) <body = b (int64 i, bool g, float[2] s) => (bool d, float[2] p) { d = Identity(g)
        p = Add(s, x) }> y = Loop(n, c, x) <body = b (int64 i, bool g, float[2] s) => (bool d, float[2] p) {
        d = Identity(g)\n p = Mul(s, a) }> }""",
    ),
    "a constant outside and one inside that are equal": Trap(
        """(float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> { k = Add(x, w)\n y = If(c) <then_branch = t ()
        => (float[2] p) { v = Constant<value = float[2] {1, 2}>()\n p = Add(k, v) }, else_branch = e ()
        => (float[2] q) { q = Sub(k, w) }> }""",
    ),
    "an If that is inlined and captured another If's result": Trap(
        """(float[2] x, bool live) => (float[2] y) <bool c = {0}> { a = If(live) <then_branch = t ()
        => (float[2] p) { p = Exp(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }>
        y = If(c) <then_branch = t () => (float[2] p) { p = Abs(x) }, else_branch = e () => (float[2] q) {
        r = Identity(a)\n q = Add(r, x) }> }""",
    ),
    "a dead Loop that read everything": Trap(
        """(float[2] x) => (float[2] y) <bool c = {1}, int64 n = {2}, float[2] w = {1, 2}> { k = Exp(x)
        a = Loop(n, c, x) <body = b (int64 i, bool g, float[2] s) => (bool d, float[2] p) { d = Identity(g)
        h = Add(s, k)\n p = Mul(h, w) }> y = Neg(x) }""",
    ),
    "a computed reshape whose data a branch reads": Trap(
        """(float[n,2] x, bool c) => (float[n,2] y) <int64[2] m = {-1, 2}> { a = Reshape(x, m)
        y = If(c) <then_branch = t () => (float[p1,p2] p) { s = Shape(a)\n p = Reshape(x, s) }, else_branch = e ()
        => (float[q1,q2] q) { q = Neg(a) }> }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()


def shadowing(inner: str) -> onnx.ModelProto:
    """A loop whose body's input has the name `inner`, which may be that of an outer value that is not read inside."""
    body = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Identity", ["go"], ["on"]),
            onnx.helper.make_node("Add", [inner, "k"], ["next"]),
        ],
        "body",
        [
            onnx.helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            onnx.helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            onnx.helper.make_tensor_value_info(inner, onnx.TensorProto.FLOAT, [2]),
        ],
        [
            onnx.helper.make_tensor_value_info("on", onnx.TensorProto.BOOL, []),
            onnx.helper.make_tensor_value_info("next", onnx.TensorProto.FLOAT, [2]),
        ],
    )
    nodes = [
        onnx.helper.make_node("Identity", ["x"], ["a"]),
        onnx.helper.make_node("Exp", ["a"], ["k"]),
        onnx.helper.make_node("Loop", ["n", "t", "k"], ["b"], body=body),
        onnx.helper.make_node("Add", ["b", "a"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])],
        [
            onnx.numpy_helper.from_array(np.array(2, np.int64), "n"),
            onnx.numpy_helper.from_array(np.array(True), "t"),
        ],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("inner", ["s", "a", "y", "b"])
def test_a_body_that_hides_an_outer_name(inner: str) -> None:
    """The reference evaluator takes the outer one."""
    assert_harmless(load(shadowing(inner)), runtimes="onnxruntime")
