"""Initializers that are inputs, too: a default that the caller may replace is no constant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
X = np.ones((2, 3), F)
IR3 = '<ir_version: 3, opset_import: ["": 8]> g '

TRAPS = {
    "a shape that may be replaced": Trap(
        """(float[2,3] x, int64[2] s) => (int64[2] y, float[a,b] z) <int64[2] s = {3, 2}> {
        a = Reshape(x, s)\n b = Shape(a)\n y = Neg(b)\n z = Abs(a) }""",
        [{"x": X}, {"x": X, "s": np.array([6, 1])}],
    ),
    "a weight that may be replaced, of which something is computed": Trap(
        "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 4}> { a = Sqrt(w)\n y = Add(x, a) }",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "w": np.array([9, 16], F)}],
    ),
    "two equal ones that may be replaced apart": Trap(
        """(float[2] x, float[2] v, float[2] w) => (float[2] y) <float[2] v = {1, 4}, float[2] w = {1, 4}> {
        a = Add(x, v)\n y = Mul(a, w) }""",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "w": np.array([9, 16], F)}],
    ),
    "one that may be replaced and one that may not": Trap(
        """(float[2] x, float[2] w) => (float[2] y) <float[2] v = {1, 4}, float[2] w = {1, 4}> {
        a = Add(x, v)\n y = Mul(a, w) }""",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "w": np.array([9, 16], F)}],
    ),
    "a neutral factor that may be replaced": Trap(
        "(float[2] x, float o) => (float[2] y) <float o = {1}> { a = Mul(x, o)\n y = Neg(a) }",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "o": np.array(3, F)}],
    ),
    "a convolution's weights that may be replaced": Trap(
        """(float[n,1,4,4] x, float[1,1,1,1] w) => (float[n,1,4,4] y) <float[1,1,1,1] w = {2}, float f = {3}> {
        a = Conv(x, w)\n y = Mul(a, f) }""",
        [{"x": np.ones((1, 1, 4, 4), F), "w": np.full((1, 1, 1, 1), 5, F)}],
    ),
    "a Dropout ratio and mode that may be replaced": Trap(
        """(float[2] x, float r, bool t) => (float[2] y) <float r = {0.5}, bool t = {0}> { a = Dropout(x, r, t)
        y = Neg(a) }""",
        [{"x": np.ones(2, F)}],
        keeps="Dropout",
    ),
    "axes that may be replaced": Trap(
        """(float[2,3] x, int64[1] a) => (int64[2] y) <int64[1] a = {0}> {
        b = ReduceSum(x, a)\n c = Shape(b)\n y = Neg(c) }""",
        [{"x": X}, {"x": X, "a": np.array([1])}],
    ),
    "bounds of a Slice that may be replaced": Trap(
        """(float[4] x, int64[1] s, int64[1] e) => (int64[1] y) <int64[1] s = {0}, int64[1] e = {4}> {
        b = Slice(x, s, e)\n c = Shape(b)\n y = Neg(c) }""",
        [{"x": np.ones(4, F)}, {"x": np.ones(4, F), "s": np.array([1]), "e": np.array([2])}],
    ),
    "a trip count that may be replaced": Trap(
        """(float[2] x, int64 n) => (int64[2] z) <int64 n = {3}, bool t = {1}> {
        y, s = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u, float[2] g) {
            d = Identity(c)\n u = Neg(v)\n g = Identity(v) }>
        a = Shape(s)\n z = Neg(a) }""",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "n": np.array(5)}],
    ),
    "a default that is an output": Trap(
        "(float[2] x, float[2] w) => (float[2] y, float[2] w) <float[2] w = {1, 4}> { y = Add(x, w) }",
        [{"x": np.ones(2, F)}, {"x": np.ones(2, F), "w": np.array([9, 16], F)}],
    ),
    "a default that nobody reads": Trap(
        "(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 4}> { y = Neg(x) }",
        [{"x": np.ones(2, F), "w": np.array([9, 16], F)}],
    ),
    "IR version 3, where every initializer is an input": Trap(
        IR3 + """(float[2,3] x, int64[2] s, float w) => (float[3,2] y) <int64[2] s = {3, 2}, float w = {1}> {
        a = Reshape(x, s)\n y = Mul(a, w) }""",
        [{"x": X}, {"x": X, "w": np.array(3, F)}],
    ),
    "IR version 3 with constants": Trap(
        IR3 + """(float[2] x) => (float[2] y) { w = Constant<value = float[2] {1, 2}>()
        a = Neg(w)\n b = Neg(w)\n c = Add(a, b)\n y = Add(x, c) }"""
    ),
    "IR version 3 with a computed reshape": Trap(
        IR3 + """(float[n,2,3] x) => (float[p,q] y) { s = Shape(x)\n z = Constant<value = int64[1] {0}>()
        g = Gather(s, z)\n m = Constant<value = int64[1] {6}>()\n t = Concat<axis = 0>(g, m)\n y = Reshape(x, t) }"""
    ),
    "IR version 3 with what fuses": Trap(
        IR3 + """(float[n,1,4,4] x) => (float[n,1,4,4] y) { w = Constant<value = float[1,1,1,1] {2}>()
        f = Constant<value = float {3}>()\n o = Constant<value = float {1}>()
        a = Conv(x, w)\n b = Mul(a, f)\n c = Mul(b, o)\n y = Add(c, f) }"""
    ),
    "IR version 3 with branches": Trap(
        IR3 + """(float[2] x) => (float[2] y) { c = Constant<value = bool {1}>()
        y = If(c) <then_branch = t () => (float[2] p) { k = Constant<value = float {3}>()\n p = Mul(x, k) },
                   else_branch = e () => (float[2] q) { q = Neg(x) }> }"""
    ),
    "IR version 4 with some of each": Trap(
        """<ir_version: 4, opset_import: ["": 9]> g (float[2] x, float w) => (float[2] y)
        <float w = {1}, float v = {1}> {
        a = Mul(x, v)\n b = Mul(a, w)\n y = Neg(b) }""",
        [{"x": np.ones(2, F), "w": np.array(3, F)}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
