"""Shapes that meet: ranks that rise, dimensions that would be pinned, sizes of zero and one, scalars."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
Z = (0, 1, 2)

TRAPS = {
    "a factor of one of higher rank": Trap(
        "(float[n] x) => (float[1,n] y) <float[1,1] o = {1}> { a = Mul(x, o)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a factor of one that is wider": Trap(
        "(float[n] x) => (float[m] y) <float[3] o = {1,1,1}> { a = Mul(x, o)\n y = Neg(a) }",
        [{"x": np.ones(1, F)}, {"x": np.ones(3, F)}],
    ),
    "a factor of one that fits": Trap(
        "(float[n,3] x) => (float[n,3] y) <float[3] o = {1,1,1}> { a = Mul(x, o)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a factor of one as wide as two axes": Trap(
        "(float[n,3] x) => (float[n,3] y) <float[2,3] o = {1,1,1,1,1,1}> { a = Mul(x, o)\n y = Neg(a) }",
        [{"x": np.ones((1, 3), F)}, {"x": np.ones((2, 3), F)}],
    ),
    "nothing, times ones": Trap("(float[1] x) => (float[0] y) <float[0] o = {}> { a = Mul(x, o)\n y = Neg(a) }"),
    "a power of one of higher rank": Trap(
        "(float[n] x) => (float[1,n] y) <float[1,1] o = {1}> { a = Pow(x, o)\n y = Neg(a) }",
    ),
    "an expand to what is there": Trap(
        "(float[2,3] x) => (float[2,3] y) <int64[2] s = {2,3}> { a = Expand(x, s)\n y = Neg(a) }",
    ),
    "an expand to ones": Trap(
        "(float[n,3] x) => (float[n,3] y) <int64[2] s = {1,1}> { a = Expand(x, s)\n y = Neg(a) }",
        sizes=Z,
    ),
    "an expand to ones of higher rank": Trap(
        "(float[n,3] x) => (float[a,n,3] y) <int64[3] s = {1,1,1}> { a = Expand(x, s)\n y = Neg(a) }",
        sizes=Z,
    ),
    "an expand to one dimension, fewer than there are": Trap(
        "(float[n,3] x) => (float[n,3] y) <int64[1] s = {3}> { a = Expand(x, s)\n y = Neg(a) }",
        sizes=Z,
    ),
    "an expand of a symbol to a number": Trap(
        "(float[n] x) => (float[m] y) <int64[1] s = {3}> { a = Expand(x, s)\n y = Neg(a) }",
        [{"x": np.ones(1, F)}, {"x": np.ones(3, F)}],
    ),
    "an expand of ones to nothing": Trap(
        "(float[1,3] x) => (float[a,b] y) <int64[2] s = {0,3}> { a = Expand(x, s)\n y = Neg(a) }",
    ),
    "an expand to its own computed shape": Trap(
        "(float[n,m] x) => (float[n,m] y) { s = Shape(x)\n a = Expand(x, s)\n y = Neg(a) }",
        sizes=Z,
    ),
    "an expand to the other's shape": Trap(
        "(float[n] x, float[m] z) => (float[k] y) { s = Shape(z)\n a = Expand(x, s)\n y = Neg(a) }",
        [{"x": np.ones(1, F), "z": np.ones(4, F)}, {"x": np.ones(4, F), "z": np.ones(1, F)}],
    ),
    "an expand and the sum with what it was expanded to": Trap(
        "(float[1,m] x, float[n,m] z) => (float[n,m] y) { s = Shape(z)\n a = Expand(x, s)\n y = Add(a, z) }",
        sizes=Z,
    ),
    "the sum of two expands": Trap(
        """(float[1,m] x, float[n,1] z, float[n,m] w) => (float[n,m] y) { s = Shape(w)\n a = Expand(x, s)
        b = Expand(z, s)\n y = Add(a, b) }""",
        sizes=Z,
    ),
    "a Where whose condition is wider": Trap(
        "(bool[n] c, float x) => (float[n] y) <float o = {1}> { a = Where(c, x, o)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a Where on a constant": Trap(
        "(float[n] x) => (float[m] y) <bool[3] c = {1,1,1}, float o = {1}> { a = Where(c, x, o)\n y = Neg(a) }",
        [{"x": np.ones(1, F)}, {"x": np.ones(3, F)}],
    ),
    "a Where on a constant scalar": Trap(
        "(float[n] x, float[m] z) => (float[k] y) <bool c = {1}> { a = Where(c, x, z)\n y = Neg(a) }",
        [{"x": np.ones(1, F), "z": np.ones(4, F)}, {"x": np.ones(4, F), "z": np.ones(1, F)}],
    ),
    "a reshape to the data's own computed shape": Trap(
        "(float[n,m] x) => (float[n,m] y) { s = Shape(x)\n a = Reshape(x, s)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a reshape that pins nothing": Trap(
        """(float[n,4,6] x) => (float[a,b] y) <int64[1] z = {0}, int64[1] l = {24}> { s = Shape(x)\n n = Gather(s, z)
        t = Concat<axis = 0>(n, l)\n y = Reshape(x, t) }""",
        sizes=Z,
    ),
    "a reshape with two symbols": Trap(
        """(float[n,m,6] x) => (float[a,b,c,d] y) <int64[2] z = {0,1}, int64[2] l = {2,3}> { s = Shape(x)
        n = Gather(s, z)\n t = Concat<axis = 0>(n, l)\n y = Reshape(x, t) }""",
        sizes=Z,
    ),
    "a reshape with two symbols in the other order": Trap(
        """(float[n,m] x) => (float[a,b] y) <int64[2] z = {1,0}> { s = Shape(x)\n t = Gather(s, z)
        y = Reshape(x, t) }""",
        sizes=Z,
    ),
    "a reshape to a product": Trap(
        """(float[n,m,3] x)
        => (float[a,b] y) <int64 zero = {0}, int64 one = {1}, int64[1] l = {3}, int64[1] ax = {0}> { s = Shape(x)
        n = Gather(s, zero)\n m = Gather(s, one)\n p = Mul(n, m)\n q = Unsqueeze(p, ax)
        t = Concat<axis = 0>(q, l)\n y = Reshape(x, t) }""",
        sizes=Z,
    ),
    "a reshape to a quotient": Trap(
        """(float[n,8] x)
        => (float[a,b] y) <int64 zero = {0}, int64 two = {2}, int64[1] l = {16}, int64[1] ax = {0}> { s = Shape(x)
        n = Gather(s, zero)\n h = Div(n, two)\n q = Unsqueeze(h, ax)\n t = Concat<axis = 0>(q, l)
        y = Reshape(x, t) }""",
        sizes=(0, 2, 3, 4),
    ),
    "a reshape to a quotient and its rest": Trap(
        """(float[n] x) => (float[a,b] y) <int64[1] two = {2}> { s = Shape(x)\n h = Div(s, two)
        t = Concat<axis = 0>(h, two)\n y = Reshape(x, t) }""",
        sizes=(0, 2, 3, 4),
    ),
    "a reshape to a difference that may be zero": Trap(
        """(float[n,8] x) => (float[a,b] y) <int64[1] zero = {0}, int64[1] two = {2}, int64[1] m = {-1}> {
        s = Shape(x)\n n = Gather(s, zero)\n d = Sub(n, two)\n t = Concat<axis = 0>(d, m)\n y = Reshape(x, t) }""",
        sizes=(1, 2, 3, 4),
    ),
    "a reshape of nothing with -1": Trap(
        "(float[n,4] x) => (float[a,b] y) <int64[2] t = {-1, 4}> { a = Reshape(x, t)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a reshape of a product to its factors": Trap(
        """(float[n,6] x, float[k] z) => (float[a,b,c] y) <int64[1] three = {3}, int64[1] two = {2}> { s = Shape(z)
        t = Concat<axis = 0>(s, three, two)\n y = Reshape(x, t) }""",
        sizes=Z,
    ),
    "flattening and back": Trap(
        """(float[n,m,k] x) => (float[n,m,k] y) <int64[1] f = {-1}> { a = Reshape(x, f)\n s = Shape(x)
        b = Reshape(a, s)\n y = Neg(b) }""",
        sizes=Z,
    ),
    "merging two axes and splitting them again": Trap(
        """(float[n,m,k] x) => (float[a,b,c] y) <int64[2] f = {0, -1}> { a = Reshape(x, f)\n e = Exp(a)
        s = Shape(x)\n b = Reshape(e, s)\n y = Neg(b) }""",
        sizes=Z,
    ),
    "a squeeze of what may be one": Trap(
        "(float[n,1,m] x) => (float[n,m] y) <int64[1] a = {1}> { b = Squeeze(x, a)\n y = Neg(b) }",
        sizes=Z,
    ),
    "a squeeze without axes": Trap("(float[1,n,1,2] x) => (float y) { b = Squeeze(x)\n y = Neg(b) }", sizes=Z),
    "a squeeze and an unsqueeze": Trap(
        """(float[n,1] x) => (float[n,1] y) <int64[1] a = {1}> { b = Squeeze(x, a)\n c = Unsqueeze(b, a)
        y = Neg(c) }""",
        sizes=Z,
    ),
    "two unsqueezes": Trap(
        """(float[n] x) => (float[a,b,c] y) <int64[1] a = {0}, int64[1] d = {-1}> { b = Unsqueeze(x, a)
        c = Unsqueeze(b, d)\n y = Neg(c) }""",
        sizes=Z,
    ),
    "a tile of one": Trap(
        "(float[n,2] x) => (float[n,2] y) <int64[2] r = {1,1}> { a = Tile(x, r)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a tile of zero": Trap(
        "(float[n,2] x) => (float[n,a] y) <int64[2] r = {1,0}> { a = Tile(x, r)\n y = Neg(a) }",
        sizes=Z,
    ),
    "a concat with nothing": Trap(
        """(float[n,2] x) => (float[n,2] y) <float[0,2] e = {}> { a = Concat<axis = 0>(x, e)
        b = Concat<axis = 0>(e, a)\n y = Neg(b) }""",
        sizes=Z,
    ),
    "a concat of one": Trap("(float[n,2] x) => (float[n,2] y) { a = Concat<axis = -1>(x)\n y = Neg(a) }", sizes=Z),
    "a slice that takes everything": Trap(
        """(float[n,4] x) => (float[n,4] y) <int64[2] s = {0,0}, int64[2] e = {9223372036854775807, 4}> {
        a = Slice(x, s, e)\n y = Neg(a) }""",
        sizes=Z,
    ),
    "a slice that takes nearly everything": Trap(
        """(float[n,4] x) => (float[a,b] y) <int64[2] s = {0,0}, int64[2] e = {100, 3}> { a = Slice(x, s, e)
        y = Neg(a) }""",
        [{"x": np.ones((101, 4), F)}], sizes=Z,
    ),
    "a slice of the first, which may not be there": Trap(
        """(float[n,4] x) => (float[a,b] y) <int64[1] s = {0}, int64[1] e = {1}, int64[1] ax = {0}> {
        a = Slice(x, s, e, ax)\n y = Neg(a) }""",
        sizes=Z,
    ),
    "a slice backwards": Trap(
        """(float[n] x) => (float[n] y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775807}, int64[1] ax = {0}> {
        a = Slice(x, s, e, ax, s)\n b = Slice(a, s, e, ax, s)\n y = Neg(b) }""",
        sizes=Z,
    ),
    "a slice backwards by two": Trap(
        """(float[5,n] x)
        => (float[a,n] y) <int64[1] s = {3}, int64[1] e = {-6}, int64[1] ax = {0}, int64[1] t = {-2}> {
        a = Slice(x, s, e, ax, t)\n y = Neg(a) }""",
        sizes=Z,
    ),
    "a slice of nothing": Trap(
        """(float[4,n] x) => (float[a,n] y) <int64[1] s = {3}, int64[1] e = {1}, int64[1] ax = {0}> {
        a = Slice(x, s, e, ax)\n y = Neg(a) }""",
        sizes=Z,
    ),
    "a slice along an axis, counted from the end": Trap(
        """(float[n,4] x) => (float[n,a] y) <int64[1] s = {-3}, int64[1] e = {-1}, int64[1] ax = {-1}> {
        a = Slice(x, s, e, ax)\n y = Neg(a) }""",
        sizes=Z,
    ),
    "a pad of zeros and one that cuts": Trap(
        """(float[n,4] x) => (float[a,b] y) <int64[4] p = {0,0,0,0}, int64[4] q = {0,-1,0,-1}> { a = Pad(x, p)
        b = Pad(a, q)\n y = Neg(b) }""",
        sizes=Z,
    ),
    "scalars": Trap(
        """(float x, float z) => (float y) <int64[1] a = {0}> { b = Unsqueeze(x, a)\n c = Concat<axis = 0>(b, b)
        d = ReduceSum<keepdims = 0>(c)\n y = Mul(d, z) }""",
    ),
    "a sum of nothing with one": Trap("(float[0] x, float[1] z) => (float[0] y) { a = Add(x, z)\n y = Neg(a) }"),
    "a matmul of nothing": Trap(
        """(float[n,0] x) => (float[n,3] y) <float[0,3] w = {}, float[3] c = {1,2,3}> { a = MatMul(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a matmul of vectors": Trap(
        """(float[3] x)
        => (float[2] y, float z) <float[3,2] w = {1,2,3,4,5,6}, float[2] c = {1,2}, float[3] v = {1,2,3}> {
        a = MatMul(x, w)\n y = Add(a, c)\n z = MatMul(x, v) }""",
    ),
    "a matmul and a sum of higher rank": Trap(
        """(float[n,2] x) => (float[a,n,2] y) <float[2,2] w = {1,2,3,4}, float[1,1,2] c = {1,2}> { a = MatMul(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a matmul and a sum with more rows": Trap(
        """(float[n,2] x) => (float[k,2] y) <float[2,2] w = {1,2,3,4}, float[3,2] c = {1,2,3,4,5,6}> {
        a = MatMul(x, w)\n y = Add(a, c) }""",
        [{"x": np.ones((1, 2), F)}, {"x": np.ones((3, 2), F)}],
    ),
    "a matmul and a sum that is wider": Trap(
        """(float[n,2] x) => (float[n,k] y) <float[2,1] w = {1,2}, float[3] c = {1,2,3}> { a = MatMul(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a matmul of three dimensions and a sum": Trap(
        """(float[b,n,2] x) => (float[b,n,2] y) <float[2,2] w = {1,2,3,4}, float[2] c = {1,2}> { a = MatMul(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a matmul of unknown rank and a sum": Trap(
        """(float[12] v, int64[r] s) => (float[a] y) <float[2,2] w = {1,2,3,4}, float[2] c = {1,2}> {
        x = Reshape(v, s)\n a = MatMul(x, w)\n y = Add(a, c) }""",
        [{"v": np.arange(12, dtype=F), "s": np.array(s)} for s in ([6, 2], [3, 2, 2])],
    ),
    "a matmul whose constant comes first": Trap(
        """(float[2,n] x) => (float[2,n] y) <float[2,2] w = {1,2,3,4}, float[2,1] c = {1,2}> { a = MatMul(w, x)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a convolution and a sum that raises the rank": Trap(
        """(float[n,1,3] x) => (float[a,b,c,d] y) <float[1,1,1] w = {2}, float[1,1,1,1] c = {3}> { a = Conv(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a convolution and a sum for each position": Trap(
        """(float[n,1,3] x) => (float[n,b,3] y) <float[1,1,1] w = {2}, float[3] c = {3,4,5}> { a = Conv(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a convolution and a sum for each of a batch": Trap(
        """(float[n,1,3] x) => (float[k,b,3] y) <float[1,1,1] w = {2}, float[2,1,1] c = {3,4}> { a = Conv(x, w)
        y = Add(a, c) }""",
        [{"x": np.ones((1, 1, 3), F)}, {"x": np.ones((2, 1, 3), F)}],
    ),
    "a convolution and a sum that makes more channels": Trap(
        """(float[n,1,3] x) => (float[n,b,3] y) <float[1,1,1] w = {2}, float[1,4,1] c = {3,4,5,6}> { a = Conv(x, w)
        y = Add(a, c) }""",
        sizes=Z,
    ),
    "a convolution and a factor that makes more channels": Trap(
        """(float[n,1,3] x) => (float[n,b,3] y) <float[1,1,1] w = {2}, float[1,4,1] c = {3,4,5,6}> { a = Conv(x, w)
        y = Mul(a, c) }""",
        sizes=Z,
    ),
    "a padded convolution and a factor": Trap(
        """(float[n,1,3] x) => (float[n,1,5] y) <float[1,1,1] w = {2}, float[1] b = {1}, float c = {3}> {
        a = Conv<pads = [1,1]>(x, w, b)\n y = Mul(a, c) }""",
        sizes=Z,
    ),
    "grouped convolution and factors": Trap(
        """(float[n,2,3] x) => (float[n,4,3] y) <float[4,1,1] w = {1,2,3,4}, float[4,1] c = {3,4,5,6}> {
        a = Conv<group = 2>(x, w)\n y = Mul(c, a) }""",
        sizes=Z,
    ),
    "a convolution used twice": Trap(
        """(float[n,1,3] x) => (float[n,1,3] y, float[n,1,3] z) <float[1,1,1] w = {2}, float c = {3}> {
        a = Conv(x, w)\n y = Mul(a, c)\n z = Add(a, c) }""",
        sizes=Z,
    ),
    "two convolutions that share weights and bias": Trap(
        """(float[n,1,3] x)
        => (float[n,1,3] y, float[n,1,3] z) <float[1,1,1] w = {2}, float[1] b = {5}, float c = {3}> {
        a = Conv(x, w, b)\n d = Neg(x)\n e = Conv(d, w, b)\n y = Mul(a, c)\n z = Mul(e, c) }""",
        sizes=Z,
    ),
    "a convolution whose weights are read elsewhere": Trap(
        """(float[n,1,3] x) => (float[n,1,3] y) <float[1,1,1] w = {2}, float c = {3}> { a = Conv(x, w)
        b = Mul(a, c)\n y = Add(b, w) }""",
        sizes=Z,
    ),
    "a transposed convolution and a factor": Trap(
        """(float[n,2,3] x) => (float[n,3,3] y) <float[2,3,1] w = {1,2,3,4,5,6}, float[3,1] c = {3,4,5}> {
        a = ConvTranspose(x, w)\n y = Mul(a, c) }""",
        sizes=Z,
    ),
    "softmax over one": Trap(
        "(float[n,1] x) => (float[n,1] y) { a = Softmax<axis = 1>(x)\n y = Neg(a) }",
        [{"x": np.array([[np.inf], [np.nan], [3]], F)}], sizes=Z,
    ),
    "a mean over one": Trap(
        "(float[n,1] x) => (float[n,1] y) <int64[1] a = {1}> { b = ReduceMean(x, a)\n y = Neg(b) }",
        sizes=Z,
    ),
    "a normalisation with statistics of higher rank": Trap(
        """(float[n,2] x) => (float[1,n,2] y) <float two = {2}, float e = {0.00001}, float[1,1,2] s = {2,3}> {
        m = ReduceMean<axes = [-1]>(x)\n d = Sub(x, m)\n q = Pow(d, two)\n v = ReduceMean<axes = [-1]>(q)
        w = Add(v, e)\n r = Sqrt(w)\n k = Div(d, r)\n y = Mul(k, s) }""",
        opset=17,
    ),
    "a normalisation with an epsilon that raises the rank": Trap(
        """(float[n,2] x) => (float[1,n,2] y) <float two = {2}, float[1,1,1] e = {0.00001}> {
        m = ReduceMean<axes = [-1]>(x)\n d = Sub(x, m)\n q = Pow(d, two)\n v = ReduceMean<axes = [-1]>(q)
        w = Add(v, e)\n r = Sqrt(w)\n y = Div(d, r) }""",
        opset=17,
    ),
    "a gelu with constants that raise the rank": Trap(
        """(float[n] x) => (float[a,n] y) <float r = {1.4142135}, float[1,1] o = {1}, float h = {0.5}> {
        a = Div(x, r)\n b = Erf(a)\n c = Add(b, o)\n d = Mul(x, c)\n y = Mul(d, h) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
