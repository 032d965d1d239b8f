"""Reorderings that have to come out in the right order: pads that are computed, transposes, slices, concats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
TRAPS = {
    "pads as torch exports them": Trap(
        """(float[1,1,4,4] x)
        => (float[A,B,C,D] y) <int64[4] z = {0, 0, 0, 0}, int64[4] p = {1, 2, 3, 4}, int64[2] r = {-1, 2},
        int64[1] from = {-1}, int64[1] to = {-9223372036854775807}, int64[1] ax = {0}, int64[1] flat = {-1}> {
        c = Concat<axis = 0>(p, z)\n m = Reshape(c, r)\n s = Slice(m, from, to, ax, from)
        t = Transpose<perm = [1, 0]>(s)\n pads = Reshape(t, flat)\n y = Pad(x, pads) }""",
    ),
    "pads as torch exports them, of a symbolic size": Trap(
        """(float[1,1,h,w] x)
        => (float[A,B,C,D] y) <int64[4] z = {0, 0, 0, 0}, int64[4] p = {1, 2, 3, 4}, int64[2] r = {-1, 2},
        int64[1] from = {-1}, int64[1] to = {-9223372036854775807}, int64[1] ax = {0}, int64[1] flat = {-1}, int64
        two = {2}, int64[1] four = {4}> { sh = Shape(x)\n h = Gather(sh, two)\n m4 = Mod(h, four)
        e = Concat<axis = 0>(m4, from, m4, m4)\n q = Abs(e)\n c = Concat<axis = 0>(q, z)\n m = Reshape(c, r)
        s = Slice(m, from, to, ax, from)\n t = Transpose<perm = [1, 0]>(s)\n pads = Reshape(t, flat)
        y = Pad(x, pads) }""",
        sizes=(2, 5),
    ),
    "pads that reflect": Trap(
        """(float[1,4] x) => (float[A,B] y) <int64[4] p = {0, 2, 0, 1}> { a = Pad<mode = "reflect">(x, p)
        b = Pad<mode = "edge">(a, p)\n y = Neg(b) }""",
    ),
    "pads and a pool": Trap(
        """(float[1,1,4,4] x) => (float[A,B,C,D] y) <int64[8] p = {0,0,1,1,0,0,1,1}> { a = Pad(x, p)
        y = MaxPool<kernel_shape = [2, 2]>(a) }""",
    ),
    "pads of negative infinity and a pool": Trap(
        """(float[1,1,4,4] x) => (float[A,B,C,D] y) <int64[8] p = {0,0,1,1,0,0,1,1}, float z = {0}> { n = Log(z)
        a = Pad(x, p, n)\n y = MaxPool<kernel_shape = [2, 2]>(a) }""",
        runtimes="the reference",  # onnxruntime's largest is a NaN only where that is the first in its window
    ),
    "pads and a convolution": Trap(
        """(float[n,1,4,4] x) => (float[A,B,C,D] y) <int64[8] p = {0,0,1,2,0,0,3,4}, float[1,1,2,2] w = {1,2,3,4}> {
        a = Pad(x, p)\n y = Conv(a, w) }""",
    ),
    "pads of the channels and a convolution": Trap(
        """(float[n,1,4,4] x)
        => (float[A,B,C,D] y) <int64[8] p = {0,1,0,0,0,0,0,0}, float[1,2,2,2] w = {1,2,3,4,5,6,7,8}> {
        a = Pad(x, p)\n y = Conv(a, w) }""",
    ),
    "pads with a value and a convolution": Trap(
        """(float[n,1,4,4] x)
        => (float[A,B,C,D] y) <int64[8] p = {0,0,1,1,0,0,1,1}, float one = {1}, float[1,1,2,2] w = {1,2,3,4}> {
        a = Pad(x, p, one)\n y = Conv(a, w) }""",
    ),
    "pads and a padded convolution": Trap(
        """(float[n,1,4,4] x) => (float[A,B,C,D] y) <int64[8] p = {0,0,1,0,0,0,0,1}, float[1,1,2,2] w = {1,2,3,4}> {
        a = Pad(x, p)\n y = Conv<pads = [0,1,1,0]>(a, w) }""",
    ),
    "pads that cut and a convolution": Trap(
        """(float[n,1,4,4] x)
        => (float[A,B,C,D] y) <int64[8] p = {0,0,-1,0,0,0,0,-1}, float[1,1,2,2] w = {1,2,3,4}> { a = Pad(x, p)
        y = Conv(a, w) }""",
    ),
    "pads and an average that counts them": Trap(
        """(float[n,1,4,4] x) => (float[A,B,C,D] y, float[E,G,H,I] z) <int64[8] p = {0,0,1,1,0,0,1,1}> {
        a = Pad(x, p)\n y = AveragePool<kernel_shape = [2,2]>(a)
        z = AveragePool<kernel_shape = [2,2], pads = [1,1,1,1], count_include_pad = 1>(x) }""",
        runtimes="onnxruntime",  # the reference leaves NaN out of an average that does not count padding
    ),
    "a transpose through what works along an axis": Trap(
        "(float[2,3] x) => (float[2,3] y) { a = Transpose(x)\n b = Softmax<axis = 0>(a)\n y = Transpose(b) }",
    ),
    "a transpose through element-wise operators": Trap(
        "(float[2,3] x) => (float[2,3] y) { a = Transpose(x)\n b = Relu(a)\n c = Exp(b)\n y = Transpose(c) }",
    ),
    "a transpose through a sum with a constant": Trap(
        """(float[2,3] x) => (float[2,3] y) <float[2] w = {1, 2}> { a = Transpose(x)\n b = Add(a, w)
        y = Transpose(b) }""",
    ),
    "a transpose through a sum of two": Trap(
        "(float[2,3] x, float[3,2] z) => (float[2,3] y) { a = Transpose(x)\n b = Add(a, z)\n y = Transpose(b) }",
    ),
    "two transposed branches, added": Trap(
        """(float[2,3] x, float[2,3] z) => (float[2,3] y) { a = Transpose(x)\n b = Transpose(z)\n c = Add(a, b)
        y = Transpose(c) }""",
    ),
    "a transpose through a concat": Trap(
        """(float[2,3] x, float[2,3] z) => (float[a,b] y) { a = Transpose(x)\n b = Transpose(z)
        c = Concat<axis = 0>(a, b)\n y = Transpose(c) }""",
    ),
    "a transpose through a reduction": Trap(
        """(float[2,3,4] x) => (float[a,b] y) <int64[1] ax = {1}> { a = Transpose<perm = [2, 0, 1]>(x)
        y = ReduceMax<keepdims = 0>(a, ax) }""",
    ),
    "a transpose into a matrix product": Trap(
        "(float[n,3] x, float[n,2] z) => (float[3,2] y) { a = Transpose(x)\n y = MatMul(a, z) }",
    ),
    "a transpose into a Gemm": Trap(
        """(float[3,n] x) => (float[n,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] c = {1,2}> { a = Transpose(x)
        y = Gemm(a, w, c) }""",
    ),
    "a transposed weight": Trap(
        "(float[n,3] x) => (float[n,2] y) <float[2,3] w = {1,2,3,4,5,6}> { a = Transpose(w)\n y = MatMul(x, a) }",
    ),
    "a transposed weight that is read as it is, too": Trap(
        """(float[n,3] x) => (float[n,2] y, float[2,3] z) <float[2,3] w = {1,2,3,4,5,6}> { a = Transpose(w)
        y = MatMul(x, a)\n z = Neg(w) }""",
    ),
    "attention heads, split and joined": Trap(
        """(float[b,t,6] x) => (float[b,t,6] y) <int64[4] s = {0,0,2,3}, int64[3] r = {0,0,6}> { a = Reshape(x, s)
        c = Transpose<perm = [0,2,1,3]>(a)\n d = Softmax(c)\n e = Transpose<perm = [0,2,1,3]>(d)
        y = Reshape(e, r) }""",
        sizes=(0, 1, 2),
    ),
    "a transpose and a reshape that could be swapped by size but not by order": Trap(
        "(float[2,2] x) => (float[2,2] y) <int64[2] s = {2,2}> { a = Transpose(x)\n y = Reshape(a, s) }",
    ),
    "a transpose between two reshapes": Trap(
        """(float[4,6] x) => (float[4,6] y) <int64[4] s = {2,2,3,2}, int64[2] t = {4,6}> { a = Reshape(x, s)
        b = Transpose<perm = [1,0,3,2]>(a)\n y = Reshape(b, t) }""",
    ),
    "channel shuffle": Trap(
        """(float[n,4,2,2] x) => (float[n,4,2,2] y) <int64[5] s = {0,2,2,2,2}, int64[4] t = {0,4,2,2}> {
        a = Reshape(x, s)\n b = Transpose<perm = [0,2,1,3,4]>(a)\n y = Reshape(b, t) }""",
        sizes=(0, 1, 2),
    ),
    "pixel shuffle, and depth to space": Trap(
        """(float[n,4,2,2] x)
        => (float[n,1,4,4] y, float[n,1,4,4] z, float[n,1,4,4] w) <int64[6] s = {0,1,2,2,2,2}, int64[4] t =
        {0,1,4,4}> { a = Reshape(x, s)\n b = Transpose<perm = [0,1,4,2,5,3]>(a)\n y = Reshape(b, t)
        z = DepthToSpace<blocksize = 2>(x)\n w = DepthToSpace<blocksize = 2, mode = "CRD">(x) }""",
    ),
    "space to depth by slices": Trap(
        """(float[n,1,4,4] x)
        => (float[n,4,2,2] y) <int64[2] a = {2,3}, int64[2] s = {2,2}, int64[2] oo = {0,0}, int64[2] oi = {0,1},
        int64[2] io = {1,0}, int64[2] ii = {1,1}, int64[2] e = {9,9}> { p = Slice(x, oo, e, a, s)
        q = Slice(x, io, e, a, s)\n r = Slice(x, oi, e, a, s)\n t = Slice(x, ii, e, a, s)
        y = Concat<axis = 1>(p, q, r, t) }""",
    ),
    "slices in a row": Trap(
        """(float[8,n] x)
        => (float[a,n] y) <int64[1] o = {1}, int64[1] e = {7}, int64[1] z = {0}, int64[1] t = {2}, int64[1] m =
        {-1}> { a = Slice(x, o, e, z)\n b = Slice(a, o, m, z, t)\n y = Neg(b) }""",
    ),
    "slices in a row that reach beyond": Trap(
        """(float[8,n] x) => (float[a,n] y) <int64[1] f = {5}, int64[1] e = {100}, int64[1] z = {0}> {
        a = Slice(x, f, e, z)\n b = Slice(a, f, e, z)\n y = Neg(b) }""",
    ),
    "a concat that is split again": Trap(
        """(float[2,n] x, float[3,n] z) => (float[2,n] y, float[3,n] w) <int64[2] p = {2,3}> {
        a = Concat<axis = 0>(x, z)\n b, c = Split<axis = 0>(a, p)\n y = Neg(b)\n w = Neg(c) }""",
        opset=17,
    ),
    "a concat that is split elsewhere": Trap(
        """(float[2,n] x, float[3,n] z) => (float[3,n] y, float[2,n] w) <int64[2] p = {3,2}> {
        a = Concat<axis = 0>(x, z)\n b, c = Split<axis = 0>(a, p)\n y = Neg(b)\n w = Neg(c) }""",
        opset=17,
    ),
    "a split that is joined again in another order": Trap(
        """(float[4,n] x) => (float[4,n] y) { a, b = Split<axis = 0, num_outputs = 2>(x)
        y = Concat<axis = 0>(b, a) }""",
    ),
    "a split that is joined again": Trap(
        """(float[4,n] x) => (float[4,n] y) { a, b = Split<axis = 0, num_outputs = 2>(x)\n c = Concat<axis = 0>(a, b)
        y = Neg(c) }""",
    ),
    "an uneven split": Trap(
        """(float[7,n] x) => (float[a,n] y, float[b,n] z) { a, b, c = Split<axis = 0, num_outputs = 3>(x)
        y = Neg(a)\n z = Neg(c) }""",
    ),
    "a gather of every index": Trap(
        """(float[3,n] x) => (float[3,n] y, float[3,n] z) <int64[3] i = {0,1,2}, int64[3] j = {2,1,0}> {
        a = Gather(x, i)\n b = Gather(x, j)\n y = Neg(a)\n z = Neg(b) }""",
    ),
    "rotation of halves": Trap(
        """(float[b,4] x)
        => (float[b,4] y) <int64[1] z = {0}, int64[1] h = {2}, int64[1] e = {9223372036854775807}, int64[1] ax =
        {-1}> { a = Slice(x, z, h, ax)\n c = Slice(x, h, e, ax)\n d = Neg(c)\n y = Concat<axis = -1>(d, a) }""",
        sizes=(0, 1, 2),
    ),
    "a causal mask of a symbolic length": Trap(
        """(float[t,t] x)
        => (float[t,t] y) <int64 zero = {0}, int64 one = {1}, float o = {1}, int64[1] ax = {0}, int64[1] ay = {1},
        float m = {-1000}> { s = Shape(x)\n n = Gather(s, zero)\n r = Range(zero, n, one)\n p = Unsqueeze(r, ax)
        q = Unsqueeze(r, ay)\n k = LessOrEqual(p, q)\n y = Where(k, x, m) }""",
        sizes=(0, 1, 3),
    ),
    "a triangle of ones": Trap(
        """(float[3,3] x) => (float[3,3] y) <float[3,3] o = {1,1,1,1,1,1,1,1,1}> { a = Trilu<upper = 0>(o)
        b = Trilu(x)\n y = Mul(a, b) }""",
    ),
    "a one-hot of constants": Trap(
        """(float[2,3] x) => (float[2,3] y) <int64[2] i = {0,-1}, int64 d = {3}, float[2] v = {0,5}> {
        a = OneHot(i, d, v)\n y = Add(x, a) }""",
    ),
    "a meshgrid": Trap(
        """(float[h,w] x)
        => (float[2,h,w] y) <int64 zero = {0}, int64 one = {1}, int64[1] a0 = {0}, int64[1] a1 = {1}> {
        s = Shape(x)\n h = Gather(s, zero)\n w = Gather(s, one)\n p = Range(zero, h, one)
        q = Range(zero, w, one)\n pf = Cast<to = 1>(p)\n qf = Cast<to = 1>(q)\n pu = Unsqueeze(pf, a1)
        qu = Unsqueeze(qf, a0)\n pe = Expand(pu, s)\n qe = Expand(qu, s)\n pp = Unsqueeze(pe, a0)
        qq = Unsqueeze(qe, a0)\n y = Concat<axis = 0>(pp, qq) }""",
        sizes=(0, 1, 3),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
