"""NaN, infinities, zeros with a sign, ties, and numbers at the edge of their dtype."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import SPECIAL, Trap

F = np.float32
S = {"x": np.array(SPECIAL, F)}

TRAPS = {
    "times zero": Trap("(float[16] x) => (float[16] y) <float z = {0}> { a = Mul(x, z)\n y = Neg(a) }", [S]),
    "times one and plus zero": Trap(
        """(float[16] x) => (float[16] y, float[16] w) <float z = {0}, float o = {1}> { a = Mul(x, o)\n b = Add(x, z)
        y = Reciprocal(a)\n w = Neg(b) }""",
        [S],
    ),
    "plus negative zero, minus zeros": Trap(
        """(float[16] x) => (float[16] y, float[16] w, float[16] v) <float z = {0}, float n = {-0.0}> { a = Add(x, n)
        b = Sub(x, z)\n c = Sub(x, n)\n y = Reciprocal(a)\n w = Reciprocal(b)\n v = Neg(c) }""",
        [S],
    ),
    "zero minus": Trap("(float[16] x) => (float[16] y) <float z = {0}> { a = Sub(z, x)\n y = Reciprocal(a) }", [S]),
    "divided by one, to the power of one and of zero": Trap(
        """(float[16] x) => (float[16] y, float[16] w, float[16] v) <float z = {0}, float o = {1}> { a = Div(x, o)
        b = Pow(x, o)\n c = Pow(x, z)\n y = Neg(a)\n w = Neg(b)\n v = Neg(c) }""",
        [S],
    ),
    "less itself, divided by itself": Trap(
        "(float[16] x) => (float[16] y, float[16] w) { a = Sub(x, x)\n b = Div(x, x)\n y = Neg(a)\n w = Neg(b) }",
        [S],
    ),
    "equal to itself": Trap(
        """(float[16] x) => (bool[16] y, bool[16] w) { a = Equal(x, x)\n b = LessOrEqual(x, x)\n y = Not(a)
        w = Not(b) }""",
        [S],
    ),
    "the larger of it and itself": Trap(
        """(float[16] x) => (float[16] y, float[16] w) { a = Max(x, x)\n b = Min(x, x)\n y = Reciprocal(a)
        w = Reciprocal(b) }""",
        [S],
    ),
    "the negative of the negative": Trap(
        "(float[16] x) => (float[16] y) { a = Neg(x)\n b = Neg(a)\n y = Reciprocal(b) }",
        [S],
    ),
    "one over one over": Trap(
        "(float[16] x) => (float[16] y) { a = Reciprocal(x)\n b = Reciprocal(a)\n y = Neg(b) }",
        [S],
    ),
    "the root of the square, the logarithm of the exponential": Trap(
        """(float[16] x) => (float[16] y, float[16] w, float[16] v) { a = Mul(x, x)\n b = Sqrt(a)\n c = Exp(x)
        d = Log(c)\n e = Log(x)\n f = Exp(e)\n y = Neg(b)\n w = Neg(d)\n v = Neg(f) }""",
        [S],
    ),
    "the logarithm of a softmax": Trap(
        """(float[2,3] x) => (float[2,3] y) <float[2,3] m = {1, 1, 0, 0, 0, 1}> { w = Log(m)\n a = Add(x, w)
        b = Softmax(a)\n y = Log(b) }""",
        [{"x": np.zeros((2, 3), F)}, {"x": np.array([[1, 200, 3], [0, -200, 1]], F)},
         {"x": np.full((2, 3), -np.inf, F)}],
    ),
    "the softmax of what is masked whole": Trap(
        """(float[2,3] x, bool[2,3] m) => (float[2,3] y) <float z = {0}> { n = Log(z)\n a = Where(m, x, n)
        b = Softmax(a)\n c = IsNaN(b)\n d = Not(c)\n e = Cast<to = 1>(d)\n y = Mul(b, e) }""",
        [{"x": np.ones((2, 3), F), "m": np.array([[0, 0, 0], [1, 0, 1]], bool)}],
    ),
    "constants that overflow when they are merged": Trap(
        "(float[16] x) => (float[16] y) <float a = {1e30}, float b = {1e30}> { c = Mul(x, a)\n y = Mul(c, b) }",
        [{"x": np.full(16, 1e-35, F)}],
    ),
    "constants that vanish when they are merged": Trap(
        "(float[16] x) => (float[16] y) <float a = {1e-30}, float b = {1e-30}> { c = Mul(x, a)\n y = Mul(c, b) }",
        [{"x": np.full(16, 1e35, F)}],
    ),
    "sums that overflow when they are merged": Trap(
        "(float[16] x) => (float[16] y) <float a = {3e38}, float b = {3e38}> { c = Add(x, a)\n y = Add(c, b) }",
        [{"x": np.full(16, -3e38, F)}],
    ),
    "a large number added and taken away": Trap(
        "(float[16] x) => (float[16] y) <float a = {1e20}> { c = Add(x, a)\n y = Sub(c, a) }",
        [S],
    ),
    "int8 additions that wrap around": Trap(
        "(int8[16] x) => (int8[16] y) <int8 a = {100}, int8 b = {100}> { c = Add(x, a)\n y = Add(c, b) }",
    ),
    "int8 products that wrap around": Trap(
        "(int8[16] x) => (int8[16] y) <int8 a = {16}, int8 b = {16}> { c = Mul(x, a)\n y = Mul(c, b) }",
    ),
    "uint8 differences that wrap around": Trap(
        "(uint8[16] x) => (uint8[16] y) <uint8 a = {200}, uint8 b = {100}> { c = Sub(x, a)\n y = Sub(c, b) }",
    ),
    "int64 constants that wrap around": Trap(
        """(int64[2] x) => (int64[2] y) <int64[2] a = {9223372036854775807, -9223372036854775808}, int64 o = {1}> {
        b = Add(a, o)\n c = Neg(b)\n d = Abs(c)\n y = Add(x, d) }""",
    ),
    "int32 constants multiplied and divided": Trap(
        """(int32[2] x) => (int32[2] y) <int32[2] a = {65536, -3}, int32 b = {65536}, int32 c = {-2}> { d = Mul(a, b)
        e = Div(d, c)\n y = Add(x, e) }""",
    ),
    "integer division of constants": Trap(
        """(int64[4] x) => (int64[4] y) <int64[4] a = {7, -7, 7, -7}, int64[4] b = {2, 2, -2, -2}> { d = Div(a, b)
        e = Mod(a, b)\n f = Mod<fmod = 1>(a, b)\n g = Add(d, e)\n h = Add(f, g)\n y = Add(x, h) }""",
    ),
    "integer division by a constant, and back": Trap(
        "(int64[16] x) => (int64[16] y) <int64 a = {2}> { c = Div(x, a)\n y = Mul(c, a) }",
    ),
    "bit shifts": Trap(
        """(uint8[16] x) => (uint8[16] y, uint8[16] z) <uint8 a = {3}, uint8 n = {0}> {
        b = BitShift<direction = "LEFT">(x, a)\n y = BitShift<direction = "RIGHT">(b, a)
        c = BitShift<direction = "RIGHT">(x, n)\n z = BitwiseNot(c) }""",
    ),
    "saturation after quantisation": Trap(
        """(float[16] x) => (float[16] y) <float s = {0.5}, uint8 z = {128}> { a = QuantizeLinear(x, s, z)
        b = DequantizeLinear(a, s, z)\n y = Neg(b) }""",
        [S],
    ),
    "a Clip in a Clip, the wrong way around": Trap(
        """(float[16] x)
        => (float[16] y, float[16] w) <float a = {-1}, float b = {1}, float c = {2}, float d = {3}> {
        e = Clip(x, a, b)\n f = Clip(e, c, d)\n y = Neg(f)\n g = Clip(x, d, a)\n w = Neg(g) }""",
        [S],
    ),
    "a Clip with NaN for a bound": Trap(
        "(float[16] x) => (float[16] y) <float z = {0}> { n = Div(z, z)\n a = Clip(x, n)\n y = Neg(a) }",
        [S],
    ),
    "Relu and Clip of special values": Trap(
        """(float[16] x) => (float[16] y) <float z = {0}, float s = {6}> { a = Relu(x)\n b = Relu(a)
        c = Clip(b, z, s)\n y = Exp(c) }""",
        [S],
    ),
    "rounding of halves": Trap(
        "(float[16] x) => (float[16] y) { a = Round(x)\n b = Round(a)\n c = Floor(b)\n y = Ceil(c) }",
        [S],
    ),
    "signs and absolute values": Trap(
        """(float[16] x) => (float[16] y) { a = Sign(x)\n b = Abs(x)\n c = Mul(a, b)\n d = Abs(b)\n e = Add(c, d)
        y = Neg(e) }""",
        [S],
    ),
    "Where of NaN": Trap(
        """(float[16] x) => (float[16] y) <float z = {0}> { n = IsNaN(x)\n a = Where(n, z, x)\n i = IsInf(a)
        y = Where(i, z, a) }""",
        [S],
    ),
    "the first of equal maxima": Trap(
        """(float[2,4] x) => (int64[2] y, int64[2] z) { a = ArgMax<axis = 1, keepdims = 0>(x)
        b = ArgMax<axis = 1, keepdims = 0, select_last_index = 1>(x)\n y = Neg(a)\n z = Neg(b) }""",
        [{"x": np.array([[1, 3, 3, 0], [2, 2, 2, 2]], F)}],
    ),
    "the first of equal maxima after what keeps the order": Trap(
        """(float[2,4] x) => (int64[2] y, int64[2] z, int64[2] w) { s = Softmax(x)
        a = ArgMax<axis = 1, keepdims = 0>(s)\n t = Sigmoid(x)\n b = ArgMax<axis = 1, keepdims = 0>(t)
        r = Relu(x)\n c = ArgMin<axis = 1, keepdims = 0>(r)\n y = Neg(a)\n z = Neg(b)\n w = Neg(c) }""",
        [{"x": np.array([[-1, 100, 101, 0], [-2, -3, -2, -200]], F)}],
    ),
    "equal numbers in TopK": Trap(
        "(float[6] x) => (float[3] v, int64[3] y) <int64[1] k = {3}> { v, i = TopK(x, k)\n y = Neg(i) }",
        [{"x": np.array([1, 3, 3, 0, 3, 1], F)}],
    ),
    "the maximum and the sum of nothing": Trap(
        """(float[0,3] x) => (float[3] y, float z) <int64[1] a = {0}> { y = ReduceSum<keepdims = 0>(x, a)
        z = ReduceProd<keepdims = 0>(x) }""",
    ),
    "the maximum with NaN": Trap(
        """(float[4,4] x) => (float[4] y, float z) <int64[1] a = {0}> { y = ReduceMax<keepdims = 0>(x, a)
        z = ReduceMin<keepdims = 0>(x) }""",
    ),
    "initializers of one value and two signs": Trap(
        """(float[2] x) => (float[2] y, float[2] z) <float[2] p = {0, 0}, float[2] n = {-0.0, -0.0}> { a = Mul(x, p)
        b = Mul(x, n)\n y = Reciprocal(a)\n z = Reciprocal(b) }""",
    ),
    "initializers of one value and two dtypes": Trap(
        """(float[2] x, double[2] z) => (float[2] y, double[2] w) <float[2] f = {1, 2}, double[2] d = {1, 2}> {
        y = Mul(x, f)\n w = Mul(z, d) }""",
    ),
    "initializers of the same bytes and two dtypes": Trap(
        """(float[1] x, int32[1] z) => (float[1] y, int32[1] w) <float[1] f = {1}, int32[1] i = {1065353216}> {
        y = Mul(x, f)\n w = Add(z, i) }""",
    ),
    "initializers of the same bytes and two shapes": Trap(
        """(float[2,2] x)
        => (float[2,2] y, float[2,2] z) <float[2] r = {3, 4}, float[2,1] c = {3, 4}, float[1,2] d = {3, 4}> {
        a = Mul(x, r)\n b = Mul(x, c)\n y = Add(a, d)\n z = Neg(b) }""",
    ),
    "a scalar and a vector of one": Trap(
        "(float x) => (float y, float[1] z) <float s = {3}, float[1] v = {3}> { y = Mul(x, s)\n z = Mul(x, v) }",
    ),
    "constants that are NaN": Trap(
        """(float[2] x) => (float[2] y) <float[2] z = {0, 0}> { n = Div(z, z)\n m = Div(z, z)\n k = Neg(n)
        a = Add(x, n)\n b = Add(x, m)\n c = Add(x, k)\n d = Add(a, b)\n y = Add(d, c) }""",
    ),
    "the power of constants": Trap(
        """(float[16] x)
        => (float[16] y, float[16] z, float[16] w) <float h = {0.5}, float t = {2}, float m = {-1}> {
        y = Pow(x, h)\n z = Pow(x, t)\n w = Pow(x, m) }""",
        [S],
    ),
    "a float16 product beyond its range": Trap(
        """(float16[4] x) => (float16[4] y) <float16 a = {300}, float16 b = {300}> { c = Mul(x, a)\n y = Mul(c, b) }""",
        [{"x": np.full(4, 0.001, np.float16)}],
    ),
    "a convolution whose factor overflows": Trap(
        """(float[1,1,2,2] x) => (float[1,1,2,2] y) <float[1,1,1,1] w = {1e30}, float f = {1e30}> { a = Conv(x, w)
        y = Mul(a, f) }""",
        [{"x": np.full((1, 1, 2, 2), 1e-35, F)}],
    ),
    "a normalisation whose variance is zero": Trap(
        """(float[1,1,2,2] x)
        => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] s = {1}, float[1] b = {0}, float[1] m = {0},
        float[1] v = {0}> { a = Conv(x, w)\n y = BatchNormalization<epsilon = 0.0>(a, s, b, m, v) }""",
    ),
    "a normalisation whose variance is negative": Trap(
        """(float[1,1,2,2] x)
        => (float[1,1,2,2] y) <float[1,1,1,1] w = {2}, float[1] s = {1}, float[1] b = {0}, float[1] m = {0},
        float[1] v = {-1}> { a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
