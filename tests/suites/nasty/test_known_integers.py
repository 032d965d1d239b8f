"""Sizes that are followed through arithmetic before anything runs: what wraps, rounds, or is not known yet."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
FOUR = np.ones((4, 4), F)

TRAPS = {
    "a division of floats, rounded up": Trap(
        """(float[7] x) => (int64[1] y) <int64[1] two = {2}> {
        s = Shape(x)\n a = Cast<to = 1>(s)\n b = Cast<to = 1>(two)
        c = Div(a, b)\n d = Ceil(c)\n e = Cast<to = 7>(d)\n y = Neg(e) }"""
    ),
    "a division of floats, rounded down, of a symbol": Trap(
        """(float[n] x) => (int64[1] y) <int64[1] two = {2}> {
        s = Shape(x)\n a = Cast<to = 1>(s)\n b = Cast<to = 1>(two)
        c = Div(a, b)\n d = Floor(c)\n e = Cast<to = 7>(d)\n y = Neg(e) }"""
    ),
    "a size as bool": Trap(
        "(float[7] x) => (int64[1] y) { s = Shape(x)\n b = Cast<to = 9>(s)\n i = Cast<to = 7>(b)\n y = Neg(i) }"
    ),
    "a size as int8": Trap(
        "(float[300] x) => (int64[1] y) { s = Shape(x)\n b = Cast<to = 3>(s)\n i = Cast<to = 7>(b)\n y = Neg(i) }"
    ),
    "a symbolic size as uint8": Trap(
        "(float[n] x) => (int64[1] y) { s = Shape(x)\n b = Cast<to = 2>(s)\n i = Cast<to = 7>(b)\n y = Neg(i) }",
        [{"x": np.ones(300, F)}],
    ),
    "a size as float16": Trap(
        "(float[2049] x) => (int64[1] y) { s = Shape(x)\n b = Cast<to = 10>(s)\n i = Cast<to = 7>(b)\n y = Neg(i) }"
    ),
    "a product that wraps around in int32": Trap(
        """(float[1,2] x) => (int64[1] y) <int32[1] big = {65536}> { s = Shape<start = 0, end = 1>(x)
        a = Cast<to = 6>(s)\n b = Mul(a, big)\n c = Mul(b, big)\n d = Div(c, big)
        e = Cast<to = 7>(d)\n y = Neg(e) }"""
    ),
    "a product that wraps around in int64": Trap(
        """(float[4,2] x) => (int64[1] y) <int64[1] big = {4611686018427387904}> {
        s = Shape<start = 0, end = 1>(x)\n b = Mul(s, big)\n c = Mul(b, s)\n d = Add(c, s)\n y = Neg(d) }"""
    ),
    "a difference below zero, unsigned": Trap(
        """(float[1,2] x) => (int64[1] y) <uint8[1] three = {3}> { s = Shape<start = 0, end = 1>(x)
        a = Cast<to = 2>(s)\n b = Sub(a, three)\n c = Div(b, three)\n d = Cast<to = 7>(c)\n y = Neg(d) }"""
    ),
    "integer division rounds towards zero": Trap(
        """(float[3,2] x) => (int64[1] y) <int64[1] ten = {-10}> { s = Shape<start = 0, end = 1>(x)
        a = Div(ten, s)\n y = Neg(a) }"""
    ),
    "integer division of a difference rounds towards zero": Trap(
        """(float[a] x, float[b] z) => (int64[1] y) <int64[1] two = {2}> { s = Shape(x)\n t = Shape(z)\n d = Sub(s, t)
        e = Div(d, two)\n y = Neg(e) }""",
        [{"x": np.ones(2, F), "z": np.ones(5, F)}],
    ),
    "the remainder of a negative number": Trap(
        """(float[3,2] x) => (int64[1] y, int64[1] z) <int64[1] ten = {-10}> { s = Shape<start = 0, end = 1>(x)
        a = Mod(ten, s)\n b = Mod<fmod = 1>(ten, s)\n y = Neg(a)\n z = Neg(b) }"""
    ),
    "division by a size of zero": Trap(
        """(float[0,2] x) => (float[2] y) <int64[1] ten = {10}> { s = Shape<start = 1>(x)\n y = ConstantOfShape(s) }"""
    ),
    "rows of a matrix of sizes": Trap(
        """(float[2,3,4,5] x) => (int64[2] y) <int64[2] two = {2, 2}, int64 one = {1}> { s = Shape(x)
        m = Reshape(s, two)\n r = Gather(m, one)\n y = Neg(r) }"""
    ),
    "rows of a matrix of symbolic sizes": Trap(
        """(float[a,b,c,d] x) => (float[p,q] y) <int64[2] two = {2, 2}, int64 one = {1}, int64[1] zero = {0},
        int64[1] four = {4}> { s = Shape(x)\n m = Reshape(s, two)\n r = Gather(m, one)\n t = ConstantOfShape(r)
        y = Neg(t) }"""
    ),
    "columns and rows of sizes, added": Trap(
        """(float[2,3] x) => (int64[4] y) <int64[2] column = {2, 1}, int64[2] row = {1, 2}, int64[1] flat = {-1}> {
        s = Shape(x)\n a = Reshape(s, column)\n b = Reshape(s, row)\n c = Add(a, b)\n d = Reshape(c, flat)
        y = Neg(d) }"""
    ),
    "a choice that is wider than what is chosen": Trap(
        """(float[2,3] x, bool[4] m) => (int64[4] y) <int64[1] five = {5}> { a = Where(m, five, five)\n y = Neg(a) }"""
    ),
    "a choice between equal sizes": Trap(
        """(float[n,n] x, bool[3] m) => (int64[3] y) { a = Shape<start = 0, end = 1>(x)\n b = Shape<start = 1>(x)
        c = Where(m, a, b)\n y = Neg(c) }"""
    ),
    "sizes in reverse": Trap(
        """(float[2,3,4,5] x) => (int64[4] y) <int64[1] s = {-1}, int64[1] e = {-5}, int64[1] a = {0}> { h = Shape(x)
        c = Slice(h, s, e, a, s)\n y = Neg(c) }"""
    ),
    "every other size in reverse": Trap(
        """(float[2,3,4,5] x) => (int64[2] y) <int64[1] s = {-1}, int64[1] e = {-9223372036854775808},
        int64[1] a = {-1}, int64[1] t = {-2}> { h = Shape(x)\n c = Slice(h, s, e, a, t)\n y = Neg(c) }"""
    ),
    "sizes up to the smallest number": Trap(
        """(float[4,5] x) => (int64[1] y) <int64[1] s = {0}, int64[1] e = {-9223372036854775808}> { h = Shape(x)
        d = Slice(h, s, e)\n y = ReduceSum(d) }"""
    ),
    "sizes from before the first": Trap(
        """(float[4,5] x) => (int64[2] y) <int64[1] s = {-7}, int64[1] e = {2}> { h = Shape(x)\n d = Slice(h, s, e)
        y = Neg(d) }"""
    ),
    "backwards to the largest number": Trap(
        """(float[2,3,4,5] x) => (int64[4] z) <int64[1] s = {1}, int64[1] e = {9223372036854775807}, int64[1] a = {0},
        int64[1] t = {-1}> { d = Slice(x, s, e, a, t)\n f = Shape(d)\n z = Neg(f) }"""
    ),
    "the last size, counted from the end": Trap(
        "(float[a,b,c] x) => (int64 y) <int64 last = {-1}> { s = Shape(x)\n d = Gather(s, last)\n y = Neg(d) }"
    ),
    "Shape from and to": Trap(
        """(float[2,3,4,5] x) => (int64[2] a, int64[1] b, int64[0] c, int64[4] d, int64[3] e) {
        p = Shape<start = 1, end = -1>(x)\n q = Shape<start = -1>(x)\n r = Shape<start = 3, end = 1>(x)
        s = Shape<start = -9, end = 9>(x)\n t = Shape<end = 3>(x)
        a = Neg(p)\n b = Neg(q)\n c = Neg(r)\n d = Neg(s)\n e = Neg(t) }"""
    ),
    "Shape before start and end came": Trap(
        "(float[2,3,4] x) => (int64[3] y) { s = Shape(x)\n y = Neg(s) }", opset=13
    ),
    "Size of a scalar and of nothing": Trap(
        "(float x, float[0,3] z) => (int64 y, int64 w) { s = Size(x)\n t = Size(z)\n y = Neg(s)\n w = Neg(t) }"
    ),
    "Size of symbols": Trap("(float[a,b] x) => (int64 y) { s = Size(x)\n y = Neg(s) }", sizes=(0, 1, 3)),
    "parts that are an input": Trap(
        """(float[6] x, int64[2] s) => (int64[1] y, int64[1] z) { a, b = Split<axis = 0>(x, s)\n c = Shape(a)
        d = Shape(b)\n y = Neg(c)\n z = Neg(d) }""",
        [{"x": np.ones(6, F), "s": np.array([2, 4])}, {"x": np.ones(6, F), "s": np.array([6, 0])}],
        opset=17,
    ),
    "axes of a Squeeze that are an input": Trap(
        "(float[1,1,3] x, int64[1] a) => (int64[r] y) { b = Squeeze(x, a)\n c = Shape(b)\n y = Neg(c) }",
        [{"x": np.ones((1, 1, 3), F), "a": np.array([0])}],
    ),
    "axes of a Slice that are an input": Trap(
        """(float[4,4] x, int64[1] a) => (int64[2] y) <int64[1] s = {1}, int64[1] e = {3}> { b = Slice(x, s, e, a)
        c = Shape(b)\n y = Neg(c) }""",
        [{"x": FOUR, "a": np.array([1])}, {"x": FOUR, "a": np.array([-2])}],
    ),
    "steps of a Slice that are an input": Trap(
        """(float[4,4] x, int64[1] t) => (int64[2] y) <int64[1] s = {0}, int64[1] e = {4}, int64[1] a = {1}> {
        b = Slice(x, s, e, a, t)\n c = Shape(b)\n y = Neg(c) }""",
        [{"x": FOUR, "t": np.array([2])}],
    ),
    "axes of a reduction that are an input": Trap(
        """(float[2,3] x, int64[1] a) => (int64[2] y) { b = ReduceSum(x, a)\n c = Shape(b)\n y = Neg(c) }""",
        [{"x": np.ones((2, 3), F), "a": np.array([1])}, {"x": np.ones((2, 3), F), "a": np.array([0])}],
    ),
    "axes of a reduction that are an input, dropped": Trap(
        "(float[2,3] x, int64[k] a) => (int64[r] y) { b = ReduceMax<keepdims = 0>(x, a)\n c = Shape(b)\n y = Neg(c) }",
        [{"x": np.ones((2, 3), F), "a": np.array([1])}, {"x": np.ones((2, 3), F), "a": np.array([0, 1])}],
    ),
    "no axes, and noop_with_empty_axes": Trap(
        """(float[2,3] x, int64[k] a) => (int64[r] y) { b = ReduceSum<noop_with_empty_axes = 1>(x, a)\n c = Shape(b)
        y = Neg(c) }""",
        [{"x": np.ones((2, 3), F), "a": np.array([], np.int64)}, {"x": np.ones((2, 3), F), "a": np.array([0])}],
    ),
    "pads that are an input": Trap(
        "(float[2] x, int64[2] p) => (int64[1] y) { b = Pad(x, p)\n c = Shape(b)\n y = Neg(c) }",
        [{"x": np.ones(2, F), "p": np.array([1, 2])}, {"x": np.ones(2, F), "p": np.array([-1, 0])}],
    ),
    "k of a TopK that is an input": Trap(
        "(float[5] x, int64[1] k) => (int64[1] y) { v, i = TopK(x, k)\n c = Shape(i)\n y = Neg(c) }",
        [{"x": np.arange(5, dtype=F), "k": np.array([2])}],
    ),
    "repeats that are an input": Trap(
        "(float[2,3] x, int64[2] r) => (int64[2] y) { b = Tile(x, r)\n c = Shape(b)\n y = Neg(c) }",
        [{"x": np.ones((2, 3), F), "r": np.array([2, 0])}],
    ),
    "a depth that is an input": Trap(
        """(int64[2] i, int64 d) => (int64[2] y) <int64[2] v = {0, 1}> { b = OneHot(i, d, v)\n c = Shape(b)
        y = Neg(c) }""",
        [{"i": np.array([0, 1]), "d": np.array(3)}],
    ),
    "a range of floats": Trap(
        """(float[2] x) => (int64[1] y) <float a = {0}, float b = {1}, float c = {0.1}> { r = Range(a, b, c)
        s = Shape(r)\n y = Neg(s) }"""
    ),
    "a range that goes down, and one that is empty": Trap(
        """(float[2] x) => (int64[1] y, int64[1] z) <int64 a = {9}, int64 b = {2}, int64 c = {-3}, int64 d = {3}> {
        r = Range(a, b, c)\n q = Range(a, b, d)\n s = Shape(r)\n t = Shape(q)\n y = Neg(s)\n z = Neg(t) }"""
    ),
    "scales that float rounds up": Trap(
        """(float[1,1,10,10] x) => (int64[4] y) <float[4] s = {1, 1, 0.7, 0.6}> { r = Resize<mode = "nearest">(x, "", s)
        t = Shape(r)\n y = Neg(t) }"""
    ),
    "sizes that only bound the result": Trap(
        """(float[1,1,4,6] x) => (int64[4] y) <int64[2] s = {3, 3}> {
        r = Resize<mode = "nearest", keep_aspect_ratio_policy = "not_larger", axes = [2, 3]>(x, "", "", s)
        t = Shape(r)\n y = Neg(t) }"""
    ),
    "a last window that starts in the padding": Trap(
        """(float[1,1,h,w] x) => (int64[4] y) {
        p = MaxPool<kernel_shape = [1, 1], strides = [2, 2], pads = [0, 0, 0, 0], ceil_mode = 1>(x)
        q = AveragePool<kernel_shape = [2, 2], strides = [3, 3], pads = [1, 1, 1, 1], ceil_mode = 1>(p)
        s = Shape(q)\n y = Neg(s) }""",
        sizes=(2, 3, 4, 5, 8),
    ),
    "same padding again and again": Trap(
        """(float[1,1,h,w] x, float[1,1,3,3] k) => (int64[4] y) {
        a = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, k)
        b = Conv<auto_pad = "SAME_LOWER", strides = [2, 2]>(a, k)
        c = MaxPool<kernel_shape = [2, 2], auto_pad = "SAME_UPPER", strides = [3, 1]>(b)
        s = Shape(c)\n y = Neg(s) }""",
        sizes=(1, 5, 8, 13),
    ),
    "unique rows": Trap(
        """(int64[3,2] x) => (int64[2] y, int64[1] z) { u, i, v, c = Unique<axis = 0>(x)\n s = Shape(u)\n t = Shape(v)
        y = Neg(s)\n z = Neg(t) }"""
    ),
    "what is not zero": Trap(
        "(float[n] x) => (int64[2] y) { u = NonZero(x)\n s = Shape(u)\n y = Neg(s) }"
    ),
    "half of a symbol, twice": Trap(
        """(float[n] x) => (int64[1] y) <int64[1] two = {2}> { s = Shape(x)\n a = Div(s, two)\n b = Mul(a, two)
        y = Neg(b) }""",
        sizes=(1, 2, 5),
    ),
    "a symbol less another, cut at zero": Trap(
        """(float[n] x, float[m] z) => (int64[1] y) <int64[1] zero = {0}> { s = Shape(x)\n t = Shape(z)\n d = Sub(s, t)
        c = Max(d, zero)\n y = Neg(c) }""",
        [{"x": np.ones(2, F), "z": np.ones(5, F)}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
