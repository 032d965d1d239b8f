"""Branches and loops: what they give depends on what runs, and how often."""

from __future__ import annotations

import numpy as np
import pytest

from tests.suites.agreement import Trap

F = np.float32
TWO = np.ones(2, F)
IF = "y = If(c) <then_branch = t () => (float[a] p) {{ {0} }}, else_branch = e () => (float[b] q) {{ {1} }}>"

TRAPS = {
    "a branch of unknown shape": Trap(
        """(float[a] x, float[2,3] z, bool c, int64[r] s) => (float[p,q] y) <int64[2] k = {2, 3}> {
        w = If(c) <then_branch = t () => (float p) { p = Reshape(x, s) },
                   else_branch = e () => (float[2,3] q) { q = Identity(z) }>
        v = Reshape(w, k)\n y = Neg(v) }""",
        [{"x": np.arange(6, dtype=F), "z": np.ones((2, 3), F), "c": np.array(c), "s": np.array([3, 2])}
         for c in (True, False)],
    ),
    "branches of different ranks": Trap(
        """(float[2,3] x, bool c) => (int64[r] y) { w = If(c) <then_branch = t () => (float[6] p) <int64[1] f = {-1}> {
        p = Reshape(x, f) }, else_branch = e () => (float[2,3] q) { q = Neg(x) }>
        s = Shape(w)\n y = Neg(s) }"""
    ),
    "branches of different sizes": Trap(
        """(float[2] x, bool c) => (int64[1] y) { w = If(c) <then_branch = t () => (float[4] p) {
        p = Concat<axis = 0>(x, x) }, else_branch = e () => (float[2] q) { q = Neg(x) }>
        s = Shape(w)\n y = Neg(s) }"""
    ),
    "a branch that gives a captured value, reshaped after": Trap(
        """(float[n,2] x, bool c) => (float[a,b] y) <int64[2] f = {0, -1}> {
        w = If(c) <then_branch = t () => (float[m,k] p) { p = Transpose(x) },
                   else_branch = e () => (float[n,2] q) { q = Identity(x) }>
        y = Reshape(w, f) }"""
    ),
    "a loop that may not run": Trap(
        """(float[2] x, int64 n) => (int64[1] y) <bool t = {1}, float[3] o = {1, 2, 3}> {
        w = Loop(n, t, x) <body = b (int64 i, bool c, float[m] v) => (bool d, float[3] u) {
            d = Identity(c)\n u = Identity(o) }>
        z = Shape(w)\n y = Neg(z) }""",
        [{"x": TWO, "n": np.array(0)}, {"x": TWO, "n": np.array(2)}],
    ),
    "a loop that never runs": Trap(
        """(float[2] x) => (float[a] y) <bool t = {1}, int64 n = {0}> {
        w, s = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u, float[2] g) {
            d = Identity(c)\n u = Exp(v)\n g = Neg(v) }>
        a = Shape(s)\n b = Cast<to = 1>(a)\n y = Add(w, b) }"""
    ),
    "a loop whose condition is false from the start": Trap(
        """(float[2] x) => (float[2] y) <bool f = {0}, int64 n = {5}> {
        y = Loop(n, f, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u) {
            d = Identity(c)\n u = Exp(v) }> }"""
    ),
    "a loop that grows what it carries": Trap(
        """(float[2] x, int64 n) => (int64[1] y) <bool t = {1}, float[3] o = {1, 2, 3}> {
        w = Loop(n, t, x) <body = b (int64 i, bool c, v) => (bool d, u) {
            d = Identity(c)\n u = Concat<axis = 0>(v, o) }>
        z = Shape(w)\n y = Neg(z) }""",
        [{"x": TWO, "n": np.array(number)} for number in (0, 1, 3)],
    ),
    "a loop that changes the shape inside": Trap(
        """(float[2,3] x, int64 n) => (int64[2] y) <bool t = {1}> {
        w = Loop(n, t, x) <body = b (int64 i, bool c, v) => (bool d, u) {
            d = Identity(c)\n e = Shape(v)\n f = Cast<to = 1>(e)\n g = ReduceSum(f)
            h = Transpose(v)\n u = Add(h, g) }>
        z = Shape(w)\n y = Neg(z) }""",
        [{"x": np.ones((2, 3), F), "n": np.array(number)} for number in (0, 1, 2)],
    ),
    "a loop that ends early": Trap(
        """(float[2] x) => (int64[2] y) <bool t = {1}, int64 n = {10}, int64 two = {2}> {
        w, s = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u, float[2] g) {
            d = Less(i, two)\n u = Neg(v)\n g = Identity(v) }>
        z = Shape(s)\n q = Shape(w)\n r = Add(z, q)\n y = Neg(r) }"""
    ),
    "a loop without a count, and one without a condition": Trap(
        """(float[2] x) => (float[2] y, float[2] z) <bool t = {1}, int64 n = {3}, int64 two = {2}> {
        y = Loop("", t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u) {
            d = Less(i, two)\n u = Neg(v) }>
        z = Loop(n, "", x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u) {
            d = Identity(c)\n u = Neg(v) }> }"""
    ),
    "what is collected varies with each round": Trap(
        """(float[n] x) => (float[a] y) <bool t = {1}, int64 n = {3}, float zero = {0}> {
        y = Loop(n, t, zero) <body = b (int64 i, bool c, float v) => (bool d, float u) {
            d = Identity(c)\n f = Cast<to = 1>(i)\n g = Add(f, v)
            s = ReduceSum<keepdims = 0>(x)\n u = Add(g, s) }> }"""
    ),
    "an If in a Loop in an If": Trap(
        """(float[2] x, bool c) => (float[2] y) <int64 n = {3}, bool t = {1}, int64 one = {1}> {
        k = Exp(x)
        y = If(c) <then_branch = p () => (float[2] a) {
              a = Loop(n, t, x) <body = b (int64 i, bool g, float[2] v) => (bool d, float[2] u) {
                  d = Identity(g)\n e = Equal(i, one)
                  u = If(e) <then_branch = q () => (float[2] r) { r = Add(v, k) },
                             else_branch = s () => (float[2] w) { w = Mul(v, x) }> }> },
            else_branch = o () => (float[2] z) { z = Identity(k) }> }"""
    ),
    "an If on a constant inside a Loop's body": Trap(
        """(float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}, bool f = {0}> {
        y = Loop(n, t, x) <body = b (int64 i, bool g, float[2] v) => (bool d, float[2] u) {
            d = Identity(g)
            u = If(f) <then_branch = q () => (float[2] r) { r = Exp(v) },
                       else_branch = s () => (float[2] w) { h = Sin(v)\n w = Add(h, x) }> }> }"""
    ),
    "an If on a constant that gives the loop's own value": Trap(
        """(float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}> {
        y = Loop(n, t, x) <body = b (int64 i, bool g, float[2] v) => (bool d, float[2] u) {
            d = If(t) <then_branch = q () => (bool r) { r = Identity(g) },
                       else_branch = s () => (bool w) { w = Not(g) }>
            u = If(t) <then_branch = q () => (float[2] r) { r = Identity(v) },
                       else_branch = s () => (float[2] w) { w = Neg(v) }> }> }"""
    ),
    "an If on a constant whose results are swapped and doubled": Trap(
        """(float[2] x, float[2] z) => (float[2] y, float[2] w, float[2] v) <bool t = {1}> {
        a, b, c = If(t) <then_branch = q () => (float[2] r, float[2] s, float[2] u) {
            r = Identity(z)\n s = Identity(x)\n u = Identity(z) },
            else_branch = e () => (float[2] r, float[2] s, float[2] u) { r = Neg(x)\n s = Neg(x)\n u = Neg(x) }>
        y = Identity(a)\n w = Identity(b)\n v = Identity(c) }"""
    ),
    "a Scan over sizes": Trap(
        """(float[n,3] x, float[3] s) => (float[3] y, float[n,3] z) {
        y, z = Scan<num_scan_inputs = 1, body = b (float[3] a, float[3] e) => (float[3] c, float[3] d) {
            c = Add(a, e)\n f = Exp(c)\n d = Mul(f, s) }>(s, x) }"""
    ),
    "a Scan backwards along the last axis": Trap(
        """(float[3,n] x, float[3] s) => (float[3] y, float[3,n] z) {
        y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_input_directions = [1],
            scan_output_directions = [1],
            body = b (float[3] a, float[3] e) => (float[3] c, float[3] d) {
                c = Sub(a, e)\n d = Identity(c) }>(s, x) }"""
    ),
    "a Scan whose constant body folds": Trap(
        """(float[n,2] x) => (float[n,2] z) <float[2] w = {1, 4}> {
        z = Scan<num_scan_inputs = 1, body = b (float[2] e) => (float[2] d) {
            r = Sqrt(w)\n d = Mul(e, r) }>(x) }"""
    ),
    "equal work in a branch and outside": Trap(
        """(float[2] x, bool c) => (float[2] y, float[2] z) { z = Exp(x)
        y = If(c) <then_branch = t () => (float[2] p) { a = Exp(x)\n b = Exp(x)\n p = Add(a, b) },
                   else_branch = e () => (float[2] q) { a = Exp(x)\n q = Neg(a) }> }"""
    ),
    "a division that only one branch may do": Trap(
        """(int64[2] x, bool c) => (int64[2] y) <int64[2] w = {6, 7}, int64[2] n = {0, 0}> {
        y = If(c) <then_branch = t () => (int64[2] p) { p = Add(x, w) },
                   else_branch = e () => (int64[2] q) { a = Sub(w, w)\n q = Sub(x, a) }> }"""
    ),
    "a loop that counts with its own number": Trap(
        """(float[3] x) => (float[a,3] y) <int64 n = {4}, bool t = {1}> {
        y = Loop(n, t) <body = b (int64 i, bool c) => (bool d, float[3] u) {
            d = Identity(c)\n f = Cast<to = 1>(i)\n g = Cast<to = 1>(f)\n u = Mul(x, g) }> }"""
    ),
    "Identity of what a loop carries and collects": Trap(
        """(float[2] x) => (float[2] y, float[a,2] z) <int64 n = {3}, bool t = {1}> {
        y, z = Loop(n, t, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] u, float[2] g) {
            d = Identity(c)\n w = Neg(v)\n u = Identity(w)\n g = Identity(w) }> }"""
    ),
    "a condition of rank 1": Trap(
        f"(float[2] x) => (float[2] y) <bool[1] c = {{1}}> {{ {IF.format('p = Neg(x)', 'q = Exp(x)')} }}"
    ),
    "a condition that a caller may replace": Trap(
        f"(float[2] x, bool c) => (float[2] y) <bool c = {{1}}> {{ {IF.format('p = Neg(x)', 'q = Exp(x)')} }}",
        [{"x": TWO}, {"x": TWO, "c": np.array(False)}],
        keeps="If",
    ),
    "a condition that folds": Trap(
        """(float[2,3] x) => (float[2,3] y) <int64 zero = {0}, int64 two = {2}> {
        s = Shape(x)\n a = Gather(s, zero)\n c = Equal(a, two)
        y = If(c) <then_branch = t () => (float[2,3] p) { p = Neg(x) },
                   else_branch = e () => (float[2,3] q) { q = Exp(x) }> }"""
    ),
    "a condition on a symbol": Trap(
        """(float[n,3] x) => (float[n,3] y) <int64 zero = {0}, int64 two = {2}> {
        s = Shape(x)\n a = Gather(s, zero)\n c = Equal(a, two)
        y = If(c) <then_branch = t () => (float[n,3] p) { p = Neg(x) },
                   else_branch = e () => (float[n,3] q) { q = Exp(x) }> }""",
        keeps="If",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
