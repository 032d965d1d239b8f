"""Dtypes that are rare, strings, sequences, optionals, and other domains."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
MS = '<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]> g '
NEW = '<ir_version: 10, opset_import: ["": 21]> g '

TRAPS = {
    "bfloat16 weights": Trap(
        "(float[2] x, bfloat16[2] w) => (float[2] y) { a = Cast<to = 1>(w)\n y = Add(x, a) }",
        tensors={"w": np.array([1.1, 1000.7], ml_dtypes.bfloat16)},
    ),
    "bfloat16 arithmetic of constants": Trap(
        "(float[2] x, bfloat16[2] w) => (float[2] y) { a = Mul(w, w)\n b = Cast<to = 1>(a)\n y = Add(x, b) }",
        tensors={"w": np.array([1.1, 1000.7], ml_dtypes.bfloat16)},
    ),
    "bfloat16 through float16": Trap(
        "(bfloat16[4] x) => (bfloat16[4] y) { a = Cast<to = 10>(x)\n y = Cast<to = 16>(a) }",
        [{"x": np.array([1e-8, 70000, 1.5, -3], ml_dtypes.bfloat16)}],
    ),
    "float16 weights, some below its normal range": Trap(
        "(float16[4] x, float16[4] w) => (float16[4] y) { a = Mul(w, w)\n b = Sqrt(a)\n y = Add(x, b) }",
        tensors={"w": np.array([6e-8, 65504, -0.0001, 1], np.float16)},
    ),
    "float8 weights": Trap(
        NEW + """(float[2] x, float8e4m3fn[2] w) => (float[2] y) <float s = {0.5}> { a = DequantizeLinear(w, s)
        y = Add(x, a) }""",
        tensors={"w": np.array([1.1, 300], ml_dtypes.float8_e4m3fn)},
    ),
    "float8 of all kinds": Trap(
        """(float[4] x) => (float[4] y) <float[4] w = {1.1, 300, -0.0001, 60000}> { a = Cast<to = 17>(w)
        b = Cast<to = 18>(w)\n c = Cast<to = 19>(w)\n d = Cast<to = 20>(w)\n e = Cast<to = 1>(a)
        f = Cast<to = 1>(b)\n g = Cast<to = 1>(c)\n h = Cast<to = 1>(d)\n i = Add(e, f)\n j = Add(g, h)
        k = Add(i, j)\n y = Add(x, k) }""",
    ),
    "int4 weights": Trap(
        NEW + """(float[2,2] x, int4[2,2] w) => (float[2,2] y) <float s = {0.5}> { a = DequantizeLinear(w, s)
        y = Add(x, a) }""",
        tensors={"w": np.array([[1, -8], [7, 0]], ml_dtypes.int4)},
    ),
    "int4 weights, transposed": Trap(
        NEW + """(float[3,2] x, int4[2,3] w) => (float[3,2] y) <float s = {0.5}> { t = Transpose(w)
        a = DequantizeLinear(t, s)\n y = Add(x, a) }""",
        tensors={"w": np.array([[1, -8, 7], [0, 3, -1]], ml_dtypes.int4)},
    ),
    "uint4 cast and reshaped": Trap(
        NEW + """(float[3] x, uint4[3,1] w) => (float[3] y) <int64[1] s = {3}> { t = Reshape(w, s)\n a = Cast<to = 1>(t)
        y = Add(x, a) }""",
        tensors={"w": np.array([[1], [15], [7]], ml_dtypes.uint4)},
    ),
    "equal int4 tensors of odd length": Trap(
        NEW + """(float[3] x, int4[3] w, int4[3] v) => (float[3] y) <float s = {0.5}> { a = DequantizeLinear(w, s)
        b = DequantizeLinear(v, s)\n c = Sub(a, b)\n y = Add(x, c) }""",
        tensors={name: np.array([1, -8, 7], ml_dtypes.int4) for name in "wv"},
    ),
    "int4 tensors of one byte string and two lengths": Trap(
        NEW + """(float[3] x, float[4] z, int4[3] p, int4[4] q) => (float[3] y, float[4] w) <float s = {0.5}> {
        a = DequantizeLinear(p, s)\n b = DequantizeLinear(q, s)\n y = Add(x, a)\n w = Add(z, b) }""",
        tensors={"p": np.array([1, -8, 7], ml_dtypes.int4), "q": np.array([1, -8, 7, 0], ml_dtypes.int4)},
    ),
    "double constants": Trap(
        """(double[2] x) => (double[2] y) <double[2] w = {0.1, 1e300}, double t = {3}> { a = Mul(w, t)
        y = Add(x, a) }""",
    ),
    "complex numbers": Trap(
        "(float[4,1] x) => (float[4,2] y) <int64 n = {4}, int64 a = {0}> { b = DFT(x, n, a)\n y = Neg(b) }",
        opset=20,
    ),
    "unsigned 64 bits": Trap(
        """(uint64[2] x) => (uint64[2] y) <uint64[2] w = {18446744073709551615, 1}, uint64 o = {1}> { a = Mul(w, o)
        b = Add(a, o)\n y = Add(x, b) }""",
    ),
    "bools": Trap(
        """(bool[4] x) => (bool[4] y) <bool[4] t = {1,1,1,1}, bool f = {0}> { a = And(x, t)\n b = Or(a, f)
        c = Xor(b, f)\n d = Not(c)\n y = Not(d) }""",
    ),
    "bools as numbers": Trap(
        """(bool[4] x) => (float[4] y) <float o = {1}> { a = Cast<to = 1>(x)\n b = Mul(a, o)\n c = Cast<to = 9>(b)
        y = Cast<to = 1>(c) }""",
    ),
    "strings": Trap(
        "(string[2] x) => (string[2] y) { a = Identity(x)\n y = StringConcat(a, x) }",
        [{"x": np.array(["a", "ä"], dtype=object)}],
    ),
    "constant strings": Trap(
        """(string[2] x) => (string[2] y) { w = Constant<value_strings = ["a", "b"]>()\n v = StringConcat(w, w)
        y = StringConcat(x, v) }""",
        [{"x": np.array(["a", "ä"], dtype=object)}],
    ),
    "equal constant strings": Trap(
        """(string[2] x) => (bool[2] y) { w = Constant<value_strings = ["a", "b"]>()
        v = Constant<value_strings = ["a", "b"]>()\n a = Equal(x, w)\n b = Equal(x, v)\n c = And(a, b)
        y = Not(c) }""",
        [{"x": np.array(["a", "ä"], dtype=object)}],
    ),
    "a cast to a string and back": Trap("(float[2] x) => (float[2] y) { a = Cast<to = 8>(x)\n y = Cast<to = 1>(a) }"),
    "numbers as strings, of constants": Trap(
        "(string[2] x) => (bool[2] y) <int64[2] w = {1, 22}> { a = Cast<to = 8>(w)\n y = Equal(x, a) }",
        [{"x": np.array(["1", "2"], dtype=object)}],
    ),
    "a sequence that is built and taken apart": Trap(
        """(float[2] x, float[3] z) => (float[3] y) <int64 o = {1}> { s = SequenceConstruct(x, z)
        a = SequenceAt(s, o)\n y = Neg(a) }""",
    ),
    "a sequence of constants": Trap(
        """(float[2] x) => (float[2] y) <float[2] w = {1, 4}, int64 o = {0}> { s = SequenceConstruct(w, w)
        a = SequenceAt(s, o)\n y = Add(x, a) }""",
    ),
    "a sequence with an Identity": Trap(
        """(float[2] x) => (float[a] y) { s = SequenceConstruct(x, x)\n t = Identity(s)
        a = ConcatFromSequence<axis = 0>(t)\n y = Neg(a) }""",
    ),
    "two equal sequences": Trap(
        """(float[2] x) => (int64 y) { s = SequenceConstruct(x, x)\n t = SequenceConstruct(x, x)
        a = SequenceLength(s)\n b = SequenceLength(t)\n y = Add(a, b) }""",
    ),
    "a sequence that is an input": Trap(
        """(seq(float[n]) s) => (float[a] y, int64 z) <int64 o = {-1}> { a = SequenceAt(s, o)\n y = Neg(a)
        z = SequenceLength(s) }""",
        [{"s": [np.ones(2, F), np.zeros(3, F)]}],
    ),
    "a sequence that is an output": Trap(
        "(float[4] x) => (seq(float[2]) s) <int64[2] p = {2, 2}> { a = Neg(x)\n s = SplitToSequence(a, p) }",
        [{"x": np.arange(4, dtype=F)}],
    ),
    "a sequence that is an input and an output": Trap(
        "(seq(float[n]) s) => (seq(float[n]) t) { t = Identity(s) }",
        [{"s": [np.ones(2, F)]}],
    ),
    "a sequence in a loop": Trap(
        """(float[2] x) => (float[a] y) <int64 n = {3}, bool t = {1}> { e = SequenceEmpty()
        s = Loop(n, t, e) <body = b (int64 i, bool c, seq(float[2]) v) => (bool d, seq(float[2]) u) {
        d = Identity(c)\n f = Cast<to = 1>(i)\n g = Mul(x, f)\n u = SequenceInsert(v, g) }>
        y = ConcatFromSequence<axis = 0>(s) }""",
    ),
    "an optional": Trap(
        """(float[2] x) => (float[2] y, bool z) { o = Optional(x)\n h = OptionalHasElement(o)
        e = OptionalGetElement(o)\n y = Neg(e)\n z = Not(h) }""",
    ),
    "an optional that is an input": Trap(
        "(optional(float[2]) x) => (bool z) { h = OptionalHasElement(x)\n z = Not(h) }",
        [{"x": np.ones(2, F)}, {"x": None}],
    ),
    "an operator of another domain": Trap(
        MS + """(float[2,4] x) => (float[2,4] y) { a = com.microsoft.Gelu(x)\n b = com.microsoft.Gelu(x)\n c = Add(a, b)
        y = Identity(c) }""",
    ),
    "another domain's operator of constants": Trap(
        MS + """(float[2] x) => (float[2] y) <float[2] w = {1, 4}> { a = com.microsoft.Gelu(w)\n b = Sqrt(w)
        c = Add(a, b)\n y = Add(x, c) }""",
    ),
    "another domain's operator with a name of ours": Trap(
        """<ir_version: 10, opset_import: ["": 20, "other": 1]> g (float[2] x) => (float[2] y) {
        a = other.Identity(x)\n b = other.Neg(a)\n c = other.Neg(b)\n y = Neg(c) }""",
        runs=False, keeps="Identity Neg Neg Neg",
    ),
    "another domain's operator with a name of ours, on constants": Trap(
        """<ir_version: 10, opset_import: ["": 20, "other": 1]> g (float[2] x)
        => (float[2] y) <float[2] w = {1, 2}> { a = other.Neg(w)\n b = other.Shape(x)\n c = Cast<to = 1>(b)
        d = Add(a, c)\n y = Add(x, d) }""",
        runs=False, keeps="Neg Shape",
    ),
    "another domain's operator with a graph": Trap(
        """<ir_version: 10, opset_import: ["": 20, "other": 1]> g (float[2] x) => (float[2] y) { k = Exp(x)
        a = other.Twice(x) <body = b (float[2] u) => (float[2] v) { w = Identity(u)\n v = Add(w, k) }>
        y = Neg(a) }""",
        runs=False, keeps="Exp Twice",
    ),
    "a machine-learning operator": Trap(
        """<ir_version: 10, opset_import: ["": 20, "ai.onnx.ml": 3]> g (float[2,2] x) => (float[2,2] y) {
        a = ai.onnx.ml.Scaler<offset = [1.0, 2.0], scale = [2.0, 3.0]>(x)
        b = ai.onnx.ml.Binarizer<threshold = 0.5>(a)\n y = Neg(b) }""",
    ),
    "a function": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { a = f.twice(x)
        b = f.twice(a)\n y = Neg(b) } <domain: "f", opset_import: ["": 20]> twice (u) => (v) { w = Identity(u)
        v = Add(w, u) }""",
    ),
    "a function of constants": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) <float[2] c = {1, 2}> {
        a = f.twice(c)\n y = Add(x, a) } <domain: "f", opset_import: ["": 20]> twice (u) => (v) { v = Add(u, u) }""",
    ),
    "a function with an attribute": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2,3] x) => (float[a,b] y) {
        p = f.cat<axis = 0>(x)\n q = f.cat<axis = 1>(x)\n s = Shape(p)\n t = Shape(q)\n u = Add(s, t)
        v = Cast<to = 1>(u)\n w = ReduceSum<keepdims = 0>(v)\n y = Add(p, w) }
        <domain: "f", opset_import: ["": 20]> cat <axis> (u) => (v) { v = Concat<axis: int = @axis>(u, u) }""",
    ),
    "a function whose Cast is told by its caller": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y, int64[2] z) {
        y = f.as<to = 1>(x)\n z = f.as<to = 7>(x) } <domain: "f", opset_import: ["": 20]> as <to> (u) => (v) {
        v = Cast<to: int = @to>(u) }""",
    ),
    "a function whose Transpose is told by its caller": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2,3,4] x) => (float[a,b,c] y) {
        p = f.turn<perm = [2, 0, 1]>(x)\n y = f.turn<perm = [1, 2, 0]>(p) }
        <domain: "f", opset_import: ["": 20]> turn <perm> (u) => (v) { a = Transpose<perm: ints = @perm>(u)
        v = Identity(a) }""",
    ),
    "a function of another opset": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { y = f.same(x) }
        <domain: "f", opset_import: ["": 14]> same (u) => (v) { a = Add(u, u)\n o = Constant<value_float = 1.0>()
        v = Mul(a, o) }""",
    ),
    "a function in a function": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { y = f.four(x) }
        <domain: "f", opset_import: ["": 20, "f": 1]> four (u) => (v) { a = f.twice(u)\n v = f.twice(a) }
        <domain: "f", opset_import: ["": 20]> twice (u) => (v) { v = Add(u, u) }""",
    ),
    "a function with a branch in it": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x, bool c) => (float[2] y) {
        y = f.pick(x, c) } <domain: "f", opset_import: ["": 20]> pick (u, c) => (v) { k = Exp(u)
        v = If(c) <then_branch = t () => (float[a] p) { p = Add(u, k) }, else_branch = e () => (float[b] q) {
        q = Identity(k) }> }""",
    ),
    "a function with constants in it": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { y = f.shift(x) }
        <domain: "f", opset_import: ["": 20]> shift (u) => (v) { o = Constant<value_float = 1.0>()\n t = Add(o, o)
        w = Mul(u, o)\n v = Add(w, t) }""",
    ),
    "a function that nobody calls": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { y = Neg(x) }
        <domain: "f", opset_import: ["": 20]> shift (u) => (v) { v = Neg(u) }""",
    ),
    "a function with a name of ours": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { a = f.Identity(x)
        y = Neg(a) } <domain: "f", opset_import: ["": 20]> Identity (u) => (v) { v = Exp(u) }""",
    ),
    "a function that calls with fewer arguments": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[2] x) => (float[2] y) { y = f.cut(x) }
        <domain: "f", opset_import: ["": 20]> cut (u, low) => (v) { v = Clip(u, low) }""",
        runs=False,
    ),
    "quantised weights": Trap(
        """(float[2,2] x) => (float[2,2] y) <int8[2,2] w = {1, -2, 3, 127}, float s = {0.5}, int8 z = {0}> {
        a = DequantizeLinear(w, s, z)\n y = MatMul(x, a) }""",
        keeps="DequantizeLinear",
    ),
    "quantised weights, each axis by itself": Trap(
        """(float[2,2] x)
        => (float[2,2] y) <int8[2,2] w = {1, -2, 3, 127}, float[2] s = {0.5, 0.25}, int8[2] z = {0, 1}> {
        a = DequantizeLinear<axis = 0>(w, s, z)\n t = Transpose(a)\n y = MatMul(x, t) }""",
        keeps="DequantizeLinear",
    ),
    "quantised and back between two operators": Trap(
        """(float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {3}> { a = Relu(x)\n b = QuantizeLinear(a, s, z)
        c = DequantizeLinear(b, s, z)\n d = QuantizeLinear(c, s, z)\n e = DequantizeLinear(d, s, z)\n y = Neg(e) }""",
    ),
    "scales that are equal, zero points that are not": Trap(
        """(float[4] x) => (float[4] y) <float s = {0.5}, uint8 z = {3}, float t = {0.5}, uint8 u = {4}> {
        a = QuantizeLinear(x, s, z)\n b = QuantizeLinear(x, t, u)\n c = DequantizeLinear(a, s, z)
        d = DequantizeLinear(b, t, u)\n y = Sub(c, d) }""",
    ),
    "dynamic quantisation after a factor": Trap(
        """(float[4] x) => (float[4] y) <float f = {1000}, float g = {0.001}> { a = Mul(x, f)
        b, s, z = DynamicQuantizeLinear(a)\n c = DequantizeLinear(b, s, z)\n y = Mul(c, g) }""",
    ),
    "dynamic quantisation after two factors": Trap(
        """(float[4] x) => (float[4] y) <float f = {1000}, float g = {0.001}> { a = Mul(x, f)\n d = Mul(a, g)
        b, s, z = DynamicQuantizeLinear(d)\n c = DequantizeLinear(b, s, z)\n y = Neg(c) }""",
    ),
    "dynamic quantisation after a convolution and a factor": Trap(
        """(float[1,1,4] x) => (uint8[1,1,4] y) <float[1,1,1] w = {3}, float f = {0.3}> { a = Conv(x, w)
        b = Mul(a, f)\n y, s, z = DynamicQuantizeLinear(b) }""",
        [{"x": np.array([[[1, 2, 4, 8]]], F)}],
    ),
    "integer matrix products": Trap(
        """(uint8[2,2] x) => (int32[2,2] y) <uint8[2,2] w = {1, 2, 3, 255}, uint8 z = {2}> {
        a = MatMulInteger(x, w, z, z)\n b = MatMulInteger(x, w, z)\n y = Sub(a, b) }""",
    ),
    "a quantised convolution": Trap(
        """(uint8[1,1,3] x) => (uint8[1,1,3] y) <float s = {0.5}, uint8 z = {3}, uint8[1,1,1] w = {9}> {
        y = QLinearConv(x, s, z, w, s, z, s, z) }""",
        opset=13,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
