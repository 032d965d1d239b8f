"""Attributes and their defaults, and the forms that an operator has at different opsets."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import SPECIAL, Trap

F = np.float32
S = {"x": np.array(SPECIAL, F)}

TRAPS = {
    "a Transpose without perm, twice": Trap(
        "(float[2,3,4] x) => (float[2,3,4] y) { a = Transpose(x)\n b = Transpose(a)\n y = Neg(b) }",
    ),
    "a Transpose without perm and one with": Trap(
        """(float[2,3,4] x) => (float[a,b,c] y) { a = Transpose(x)\n b = Transpose<perm = [0, 2, 1]>(a)
        y = Neg(b) }""",
    ),
    "a Transpose without perm of unknown rank": Trap(
        """(float[6] v, int64[r] s) => (float[a,b] y) { x = Reshape(v, s)\n a = Transpose(x)\n b = Transpose(a)
        y = Neg(b) }""",
        [{"v": np.arange(6, dtype=F), "s": np.array([2, 3])}, {"v": np.arange(6, dtype=F), "s": np.array([6])}],
    ),
    "a Transpose that moves ones only": Trap(
        "(float[1,n,1] x) => (float[a,b,c] y) { a = Transpose<perm = [2, 1, 0]>(x)\n y = Neg(a) }",
    ),
    "a Transpose of a scalar": Trap(
        "(float x) => (float y) { a = Transpose(x)\n y = Neg(a) }",
        [{"x": np.array(3, F)}],
    ),
    "a permutation of three, three times": Trap(
        """(float[2,3,4] x) => (float[2,3,4] y) { a = Transpose<perm = [1, 2, 0]>(x)
        b = Transpose<perm = [1, 2, 0]>(a)\n c = Transpose<perm = [1, 2, 0]>(b)\n y = Neg(c) }""",
    ),
    "zeros in a Reshape": Trap(
        """(float[2,3,4] x) => (float[a,b] y) <int64[2] s = {0, 12}, int64[3] t = {0, 0, -1}> { a = Reshape(x, s)
        b = Reshape(a, s)\n y = Neg(b) }""",
    ),
    "a zero in a Reshape that copies another dimension": Trap(
        """(float[2,3,4] x) => (float[a,b,c] y) <int64[3] s = {3, 2, 4}, int64[3] t = {0, 0, 4}> { a = Reshape(x, s)
        b = Reshape(a, t)\n y = Neg(b) }""",
    ),
    "a chain of Reshapes whose second copies": Trap(
        """(float[n,6,4] x) => (float[a,b,c] y) <int64[2] s = {0, 24}, int64[3] t = {0, 2, -1}> { a = Reshape(x, s)
        b = Reshape(a, t)\n y = Neg(b) }""",
    ),
    "a chain of Reshapes whose second copies what the first made": Trap(
        """(float[4,6] x) => (float[a,b,c] y) <int64[3] s = {3, 8, 1}, int64[3] t = {0, 4, 2}> { a = Reshape(x, s)
        b = Reshape(a, t)\n y = Neg(b) }""",
    ),
    "a Reshape to nothing, with allowzero": Trap(
        """(float[0,3] x) => (float[a,b] y) <int64[2] s = {3, 0}> { a = Reshape<allowzero = 1>(x, s)\n b = Shape(a)
        c = Cast<to = 1>(b)\n d = ReduceSum<keepdims = 0>(c)\n y = Add(a, d) }""",
    ),
    "allowzero and a zero that would copy": Trap(
        """(float[0,3] x) => (int64[2] y) <int64[2] s = {0, 5}> { a = Reshape<allowzero = 1>(x, s)\n b = Shape(a)
        y = Neg(b) }""",
    ),
    "a chain of Reshapes, the first with allowzero": Trap(
        """(float[0,3] x) => (int64[2] y) <int64[2] s = {0, 5}, int64[2] t = {5, 0}> {
        a = Reshape<allowzero = 1>(x, s)\n b = Reshape<allowzero = 1>(a, t)\n c = Shape(b)\n y = Neg(c) }""",
    ),
    "a chain of Reshapes, the second with allowzero": Trap(
        """(float[n,6] x) => (float[a,b] y) <int64[2] s = {-1, 3}, int64[2] t = {-1, 2}> { a = Reshape(x, s)
        b = Reshape<allowzero = 1>(a, t)\n y = Neg(b) }""",
    ),
    "a chain of Reshapes with -1 at an empty size": Trap(
        """(float[n,6] x) => (float[a,b] y) <int64[2] s = {-1, 3}, int64[2] t = {-1, 6}> { a = Reshape(x, s)
        b = Reshape(a, t)\n y = Neg(b) }""",
        sizes=(0, 2),
    ),
    "an empty Reshape to a scalar": Trap(
        "(float[1,1] x) => (float y) <int64[0] s = {}> { a = Reshape(x, s)\n y = Neg(a) }",
    ),
    "a Cast to float8 that saturates and one that does not": Trap(
        """(float[16] x) => (float[16] y, float[16] z) { a = Cast<to = 17, saturate = 1>(x)
        b = Cast<to = 17, saturate = 0>(x)\n y = Cast<to = 1>(a)\n z = Cast<to = 1>(b) }""",
        [S],
    ),
    "constants cast to float8, both ways": Trap(
        """(float[2] x) => (float[2] y) <float[2] w = {1000, -1000}> { a = Cast<to = 17, saturate = 1>(w)
        b = Cast<to = 17, saturate = 0>(w)\n c = Cast<to = 1>(a)\n d = Cast<to = 1>(b)\n e = Add(x, c)
        y = Add(e, d) }""",
    ),
    "Casts that lose something on the way": Trap(
        """(float[16] x) => (float[16] y, float[16] z, float[16] w) { a = Cast<to = 10>(x)\n y = Cast<to = 1>(a)
        b = Cast<to = 16>(x)\n z = Cast<to = 1>(b)\n c = Cast<to = 9>(x)\n w = Cast<to = 1>(c) }""",
        [S],
    ),
    "Casts of integers that lose something on the way": Trap(
        """(int64[16] x) => (int64[16] y, int64[16] z, int64[16] w, int64[16] v) { a = Cast<to = 3>(x)
        y = Cast<to = 7>(a)\n b = Cast<to = 1>(x)\n z = Cast<to = 7>(b)\n c = Cast<to = 9>(x)
        w = Cast<to = 7>(c)\n d = Cast<to = 6>(x)\n v = Cast<to = 7>(d) }""",
        [{"x": np.array([2**53 + 1, 2**31, -(2**31) - 1, 300, -1, 0, 1, 2, 2**24 + 1, 5, 6, 7, 8, 9, 10, 255])}],
    ),
    "Casts of double to float and back": Trap(
        "(double[8] x) => (double[8] y) { a = Cast<to = 1>(x)\n y = Cast<to = 11>(a) }",
        [{"x": np.array([0.1, 1e300, -1e-300, 1, np.nan, np.inf, 2**24 + 1, 1 / 3])}],
    ),
    "Casts of uint8 through int8": Trap(
        """(uint8[8] x) => (uint8[8] y, int32[8] z) { a = Cast<to = 3>(x)\n y = Cast<to = 2>(a)
        z = Cast<to = 6>(a) }""",
        [{"x": np.array([0, 1, 127, 128, 129, 254, 255, 7], np.uint8)}],
    ),
    "CastLike in a chain": Trap(
        "(int32[4] x, float16[1] h) => (float[4] y) { a = CastLike(x, h)\n b = Cast<to = 1>(a)\n y = Neg(b) }",
        [{"x": np.array([70000, 2049, -1, 3], np.int32), "h": np.zeros(1, np.float16)}],
    ),
    "Softmax before opset 13 flattens": Trap(
        """(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) { a = Softmax(x)\n b = Softmax<axis = 2>(x)
        y = Neg(a)\n z = Neg(b) }""",
        opset=11,
    ),
    "Softmax since opset 13 does not": Trap(
        """(float[2,3,4] x) => (float[2,3,4] y, float[2,3,4] z) { a = Softmax(x)\n b = Softmax<axis = 1>(x)
        y = Neg(a)\n z = Neg(b) }""",
        opset=13,
    ),
    "axes as an attribute": Trap(
        """(float[1,2,1,3] x) => (float[a,b] y) { a = Squeeze<axes = [0, 2]>(x)\n b = Unsqueeze<axes = [0]>(a)
        c = Squeeze<axes = [0]>(b)\n y = ReduceSum<axes = [1], keepdims = 1>(c) }""",
        opset=11,
    ),
    "axes as an input": Trap(
        """(float[1,2,1,3] x) => (float[a,b] y) <int64[2] p = {0, 2}, int64[1] q = {0}, int64[1] r = {1}> {
        a = Squeeze(x, p)\n b = Unsqueeze(a, q)\n c = Squeeze(b, q)\n y = ReduceSum(c, r) }""",
    ),
    "reductions with axes as an attribute, ReduceMean until 18": Trap(
        """(float[2,3,4] x) => (float[a,b,c] y, float[d] z) { y = ReduceMean<axes = [-1]>(x)
        z = ReduceMax<axes = [0, 2], keepdims = 0>(x) }""",
        opset=17,
    ),
    "reductions over all": Trap(
        "(float[2,3,4] x) => (float y, float[a,b,c] z) { y = ReduceMean<keepdims = 0>(x)\n z = ReduceMax(x) }",
    ),
    "reductions over nothing": Trap(
        """(float[2,3] x) => (float[2,3] y) <int64[0] e = {}> { a = ReduceSum<noop_with_empty_axes = 1>(x, e)
        y = Neg(a) }""",
    ),
    "a Slice by attributes": Trap(
        """(float[4,5] x) => (float[a,b] y) { a = Slice<starts = [1], ends = [3], axes = [0]>(x)
        b = Slice<starts = [0, -2], ends = [9, 9]>(a)\n y = Neg(b) }""",
        opset=9,
    ),
    "a Slice by attributes that takes everything": Trap(
        "(float[4,n] x) => (float[a,b] y) { a = Slice<starts = [0, 0], ends = [4, 2147483647]>(x)\n y = Neg(a) }",
        opset=9,
    ),
    "a Pad by attributes": Trap(
        """(float[2,2] x) => (float[a,b] y) { a = Pad<pads = [0, 1, 0, 0], value = 2.0>(x)
        b = Pad<pads = [0, 0, 0, 0]>(a)\n y = Neg(b) }""",
        opset=9,
    ),
    "a Split by attributes": Trap(
        "(float[6] x) => (float[4] y) { a, b = Split<split = [2, 4]>(x)\n y = Neg(b) }",
        opset=11,
    ),
    "a Clip by attributes": Trap(
        "(float[16] x) => (float[16] y) { a = Clip<min = -1.0, max = 1.0>(x)\n b = Clip(a)\n y = Neg(b) }",
        [S], opset=9,
    ),
    "an Upsample": Trap(
        """(float[1,1,2,2] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 2, 2}> {
        a = Upsample<mode = "nearest">(x, s)\n y = Neg(a) }""",
        opset=9,
    ),
    "an Upsample by attribute": Trap(
        """(float[1,1,2,2] x) => (float[a,b,c,d] y) {
        a = Upsample<mode = "nearest", scales = [1.0, 1.0, 2.0, 2.0]>(x)\n y = Neg(a) }""",
        opset=8,
    ),
    "a Resize of opset 10 and one of opset 11": Trap(
        """(float[1,1,2,2] x) => (float[a,b,c,d] y) <float[4] s = {1, 1, 2, 2}> { a = Resize<mode = "nearest">(x, s)
        y = Neg(a) }""",
        opset=10,
    ),
    "a TopK by attribute": Trap("(float[5] x) => (float[2] y) { a, i = TopK<k = 2>(x)\n y = Neg(a) }", opset=9),
    "broadcasting by attribute, before opset 7": Trap(
        """(float[2,3] x) => (float[2,3] y) <float[3] w = {1, 1, 1}, float[2] v = {0, 0}> {
        a = Mul<broadcast = 1>(x, w)\n b = Add<broadcast = 1, axis = 0>(a, v)\n y = Neg(b) }""",
        opset=6, runs=False,
    ),
    "a Gemm that broadcasts by attribute, before opset 7": Trap(
        """(float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] c = {1,2,3,4}> {
        y = Gemm<broadcast = 1>(x, w, c) }""",
        opset=6, runs=False,
    ),
    "consumed_inputs, before opset 6": Trap(
        """(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { a = Add<consumed_inputs = [0, 0]>(x, w)
        b = Relu<consumed_inputs = [0]>(a)\n y = Neg(b) }""",
        opset=5, runs=False,
    ),
    "a Reshape by attribute, before opset 5": Trap(
        """(float[2,3] x) => (float[3,2] y) { a = Reshape<shape = [3, 2]>(x)\n b = Reshape<shape = [3, 2]>(a)
        y = Neg(b) }""",
        opset=4, runs=False,
    ),
    "an Identity of opset 1": Trap(
        "(float[2] x) => (float[2] y) { a = Identity(x)\n y = Neg(a) }",
        opset=1, runs=False,
    ),
    "a Cast by name, before opset 6": Trap(
        """(float[2] x) => (float[2] y) { a = Cast<to = "INT32">(x)\n b = Cast<to = "FLOAT">(a)\n y = Neg(b) }""",
        opset=5, runs=False,
    ),
    "a Concat without axis, before opset 4": Trap(
        "(float[1,2] x) => (float[a,b] y) { a = Concat(x, x)\n y = Neg(a) }",
        opset=3, runs=False,
    ),
    "the long name of ONNX's own domain": Trap(
        """<ir_version: 8, opset_import: ["ai.onnx": 17]> g (float[2] x) => (float[2] y) { a = ai.onnx.Identity(x)
        b = Neg(a)\n c = ai.onnx.Neg(b)\n y = Relu(c) }""",
    ),
    "both names of ONNX's own domain": Trap(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx": 17]> g (float[2] x) => (float[2] y) <float o = {1}> {
        a = ai.onnx.Identity(x)\n b = Mul(a, o)\n y = Relu(b) }""",
    ),
    "Flatten at several axes": Trap(
        """(float[2,3,4] x) => (float[a,b] y, float[c,d] z, float[e,f] w) { y = Flatten(x)\n z = Flatten<axis = 0>(x)
        w = Flatten<axis = -1>(x) }""",
    ),
    "Flatten of what is flat": Trap(
        """(float[n,3] x, float[n] v) => (float[n,3] y, float[a,b] z) { a = Flatten(x)\n y = Neg(a)\n b = Flatten(v)
        z = Neg(b) }""",
    ),
    "Gemm's factors": Trap(
        """(float[2,3] x)
        => (float[2,4] y, float[2,4] z) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, float[4] c = {1,2,3,4}> {
        y = Gemm<transB = 1, alpha = 0.5, beta = 0.0>(x, w, c)\n z = Gemm<transB = 1, alpha = 0.0>(x, w) }""",
    ),
    "a cumulative sum, exclusive and in reverse": Trap(
        """(float[4] x) => (float[4] y) <int64 a = {0}, float[4] w = {1,2,3,4}> {
        b = CumSum<exclusive = 1, reverse = 1>(w, a)\n c = CumSum(w, a)\n d = Sub(b, c)\n y = Add(x, d) }""",
    ),
    "gathers with negative indices": Trap(
        """(float[3,2] x) => (float[2] y, float[1,2] z) <int64 i = {-1}, int64[1] j = {-3}> { a = Gather(x, i)
        b = Gather(x, j)\n y = Neg(a)\n z = Neg(b) }""",
    ),
    "scatters of constants": Trap(
        """(float[4] x) => (float[4] y) <float[4] d = {1,2,3,4}, int64[2] i = {1,-1}, float[2] u = {9,8}> {
        a = ScatterElements(d, i, u)\n b = ScatterElements<reduction = "add">(d, i, u)\n c = Add(a, b)
        y = Add(x, c) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
