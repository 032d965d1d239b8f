"""Shapes that a file declares and its operators do not give: left over from another size, or hoped for.

What inputs declare is a promise, except that one name at two places of the inputs means one size: no runtime refuses
inputs that differ there.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from tests.suites.agreement import Trap, assert_harmless, read

F = np.float32

TRAPS = {
    "a value in the middle at the batch of the export": Trap(
        "(float[n,3] x) => (int64[2] z) <float[1,3] a> { a = Relu(x)\n s = Shape(a)\n z = Neg(s) }"
    ),
    "a reshape to the batch of the export": Trap(
        """(float[n,3] x) => (float[n,3] y) <float[1,3] a, float[1,3] b, int64[2] k = {-1, 3}> {
        a = Relu(x)\n s = Shape(a)\n b = Reshape(a, s)\n y = Neg(b) }"""
    ),
    "an expand to the batch of the export": Trap(
        """(float[n,3] x) => (float[m,3] y) <float[1,3] a, float[1,3] w = {1, 2, 3}> {
        a = Relu(x)\n s = Shape(a)\n b = Expand(w, s)\n y = Neg(b) }"""
    ),
    "an output at the batch of the export": Trap(
        "(float[n,3] x) => (float[1,3] a, int64[2] z) { a = Relu(x)\n s = Shape(a)\n z = Neg(s) }"
    ),
    "an output of the wrong rank": Trap(
        "(float[n,3] x) => (float[n] a, int64[k] z) { a = Relu(x)\n s = Shape(a)\n z = Neg(s) }"
    ),
    "an output that is said to have the input's size": Trap(
        """(float[batch,3] x) => (float[batch,3] y, int64[1] z, int64[1] w) {
        y = Concat<axis = 0>(x, x)\n s = Shape<start = 0, end = 1>(y)\n t = Shape<start = 0, end = 1>(x)
        w = Neg(t)\n z = Neg(s) }"""
    ),
    "half the output, which is said to have the input's size": Trap(
        """(float[batch,3] x) => (float[batch,3] y, float[batch,3] z) <int64[2] k = {-1, 3}, int64[1] two = {2},
        int64[1] three = {3}> {
        y = Concat<axis = 0>(x, x)\n s = Shape<start = 0, end = 1>(y)\n h = Div(s, two)\n t = Concat<axis = 0>(h, three)
        a = Abs(x)\n b = Reshape(a, t)\n z = Neg(b) }"""
    ),
    "a data-dependent output that is said to have the input's size": Trap(
        """(float[n] x) => (int64[1,n] a, float[n] z, int64[1] w) <int64[1] f = {-1}> {
        a = NonZero(x)\n b = Reshape(a, f)\n c = Gather(x, b)\n s = Shape(c)\n d = Reshape(c, s)\n z = Neg(d)
        t = Shape(x)\n u = Sub(s, t)\n w = Neg(u) }""",
        [{"x": np.array([0, 1, 0, 2], F)}],
    ),
    "a branch that is said to keep the size": Trap(
        """(float[n] x, bool c) => (float[n] y, int64[1] z) {
        y = If(c) <then_branch = t () => (float[n] p) { p = Concat<axis = 0>(x, x) },
                   else_branch = e () => (float[n] q) { q = Neg(x) }>
        s = Shape(y)\n t = Shape(x)\n u = Sub(s, t)\n z = Neg(u) }"""
    ),
    "a loop whose body is said to keep the size": Trap(
        """(float[2] x, int64 k) => (float[n] y, int64[1] z) <bool t = {1}, float[1] o = {5}> {
        y = Loop(k, t, x) <body = b (int64 i, bool c, v) => (bool d, float[2] u) {
            d = Identity(c)\n u = Concat<axis = 0>(v, o) }>
        s = Shape(y)\n z = Neg(s) }""",
        [{"x": np.ones(2, F), "k": np.array(3)}],
    ),
    "a foreign operator's declared shape": Trap(
        """<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
        g (float[2,3] x) => (int64[2] z) <float[9,9] a> {
        a = com.microsoft.Gelu(x)\n s = Shape(a)\n z = Neg(s) }"""
    ),
    "a stale size of a convolution": Trap(
        """(float[n,1,h,w] x, float[2,1,3,3] k) => (int64[4] z) <float[1,2,30,30] a, float[1,2,30,30] b> {
        a = Conv(x, k)\n b = Relu(a)\n s = Shape(b)\n z = Neg(s) }""",
        sizes=(3, 4),
    ),
    "a stale size in a function": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]>
        g (float[n,3] x) => (int64[2] z) <float[1,3] a> { a = f.twice(x)\n s = Shape(a)\n z = Neg(s) }
        <domain: "f", opset_import: ["": 20]> twice (x) => (y) { y = Add(x, x) }"""
    ),
    "two inputs of one name that differ, added": Trap(
        "(float[n] x, float[n] z) => (float[n] y, int64[1] w) { y = Add(x, z)\n s = Shape(y)\n w = Neg(s) }",
        [{"x": np.ones(1, F), "z": np.ones(5, F)}, {"x": np.ones(5, F), "z": np.ones(1, F)}],
    ),
    "an input expanded to another": Trap(
        "(float[n] x, float[m] z) => (float[m] y) { s = Shape(z)\n e = Expand(x, s)\n y = Neg(e) }",
        [{"x": np.ones(1, F), "z": np.ones(5, F)}],
    ),
    "an input reshaped to another": Trap(
        """(float[n,2] x, float[m,3] z) => (float[m,r] y) <int64[1] m = {-1}> {
        s = Shape<start = 0, end = 1>(z)\n t = Concat<axis = 0>(s, m)\n e = Reshape(x, t)\n y = Neg(e) }""",
        [{"x": np.ones((6, 2), F), "z": np.ones((4, 3), F)}],
    ),
    "two inputs of one name that differ, their sizes": Trap(
        """(float[n] x, float[n] z) => (int64[1] y, int64[1] w) {
        s = Shape(x)\n t = Shape(z)\n y = Neg(s)\n w = Neg(t) }""",
        [{"x": np.ones(1, F), "z": np.ones(5, F)}],
    ),
    "two inputs of one name that differ, concatenated": Trap(
        """(float[n] x, float[n] z) => (float[m] y) <int64[1] m = {-1}, int64[1] two = {2}> {
        c = Concat<axis = 0>(x, z)\n s = Shape(x)\n t = Mul(s, two)\n d = Reshape(c, t)\n y = Neg(d) }""",
        [{"x": np.ones(1, F), "z": np.ones(5, F)}],
    ),
    "two axes of one name that differ": Trap(
        "(float[n,n] x) => (int64[2] y, float[n,n] w) { s = Shape(x)\n y = Neg(s)\n t = Transpose(x)\n w = Neg(t) }",
        [{"x": np.arange(6, dtype=F).reshape(2, 3)}],
    ),
    "a size of 1 in the file and another at run time": Trap(
        "(float[1,3] x, float[n,3] z) => (float[n,3] y) { s = Shape(z)\n e = Expand(x, s)\n y = Add(e, z) }"
    ),
    "names that the engine makes itself": Trap(
        """(float[_d0,_d1] x, float[_d2] z) => (int64[2] y, int64[2] w) {
        a = NonZero(z)\n s = Shape(a)\n t = Shape(x)\n y = Neg(s)\n w = Neg(t) }"""
    ),
    "an output that is said to be a scalar": Trap(
        "(float[n,3] x) => (float y) { s = Shape(x)\n a = Reshape(x, s)\n y = Mul(a, a) }"
    ),
    "a value of unknown rank": Trap(
        """(float[6] v, int64[r] s) => (float[a,b] y, int64 z) { x = Reshape(v, s)\n t = Shape(x)
        a = Reshape(x, t)\n y = Mul(a, a)\n u = Size(x)\n z = Neg(u) }""",
        [{"v": np.arange(6, dtype=F), "s": np.array([2, 3])}, {"v": np.arange(6, dtype=F), "s": np.array([6])}],
    ),
    "an output without a shape": Trap("(float[2,3] x) => (float y) { y = ReduceMean<keepdims = 0>(x) }"),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()


def test_a_dimension_that_is_an_expression() -> None:
    model = read("(float[m] x, float[n] z) => (int64[1] y) <int64[1] two = {2}> {\n s = Shape(x)\n t = Shape(z)\n"
                 " u = Mul(t, two)\n d = Sub(s, u)\n y = Neg(d) }")  # fmt: skip
    model.graph.inputs[0].shape = ir.Shape(["2*n"])
    assert_harmless(model, [{"x": np.ones(6, F), "z": np.ones(3, F)}])
