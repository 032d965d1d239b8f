"""Operators that draw numbers, and those that behave otherwise in training: never computed beforehand, never shared."""

from __future__ import annotations

import pytest

from tests.suites.agreement import Trap

TRAPS = {
    "two of a kind without a seed": Trap(
        """() => (float[4] y) { a = RandomUniform<shape = [4]>()\n b = RandomUniform<shape = [4]>()
        y = Sub(a, b) }""",
        random=True, keeps="RandomUniform RandomUniform",
    ),
    "two of a kind with one seed": Trap(
        """() => (float[4] y) { a = RandomNormal<shape = [4], seed = 1.0>()
        b = RandomNormal<shape = [4], seed = 1.0>()\n y = Sub(a, b) }""",
        random=True, keeps="RandomNormal RandomNormal",
    ),
    "two of one input": Trap(
        "(float[4] x) => (float[4] y) { a = RandomNormalLike(x)\n b = RandomNormalLike(x)\n y = Sub(a, b) }",
        random=True, keeps="RandomNormalLike RandomNormalLike",
    ),
    "like a constant": Trap(
        "(float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { a = RandomUniformLike(w)\n y = Add(a, x) }",
        random=True, keeps="RandomUniformLike",
    ),
    "Bernoulli of constants": Trap(
        """(float[4] x) => (float[4] y) <float[4] w = {0.1, 0.2, 0.3, 0.4}> { a = Bernoulli<seed = 1.0>(w)
        b = Bernoulli<seed = 1.0>(w)\n c = Sub(a, b)\n y = Add(c, x) }""",
        random=True, keeps="Bernoulli Bernoulli",
    ),
    "Multinomial of constants": Trap(
        """(int32[1,3] x) => (int32[1,3] y) <float[1,2] w = {0.5, 0.5}> {
        a = Multinomial<sample_size = 3, seed = 2.0>(w)\n b = Multinomial<sample_size = 3, seed = 2.0>(w)
        c = Sub(a, b)\n y = Add(c, x) }""",
        random=True, keeps="Multinomial Multinomial",
    ),
    "random numbers times zero": Trap(
        "(float[4] x) => (float[4] y) <float z = {0}> { a = RandomNormalLike(x)\n b = Mul(a, z)\n y = Add(b, x) }",
        random=True, keeps="RandomNormalLike",
    ),
    "random numbers as the condition of a constant choice": Trap(
        """(float[4] x) => (float[4] y) <float h = {0.5}, float[4] w = {1, 2, 3, 4}> { a = RandomUniformLike(w)
        b = Greater(a, h)\n c = Where(b, w, x)\n d = Where(b, x, w)\n y = Add(c, d) }""",
        random=True, keeps="RandomUniformLike",
    ),
    "random numbers in a function that is called twice": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[4] x) => (float[4] y) { a = f.noise(x)
        b = f.noise(x)\n y = Sub(a, b) } <domain: "f", opset_import: ["": 20]> noise (v) => (w) {
        w = RandomNormalLike(v) }""",
        random=True, keeps="noise noise",
    ),
    "random numbers in a function of constants": Trap(
        """<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[4] x)
        => (float[4] y) <float[4] c = {1, 2, 3, 4}> { a = f.noise(c)\n y = Add(a, x) }
        <domain: "f", opset_import: ["": 20]> noise (v) => (w) { a = RandomNormalLike(v)\n b = RandomNormalLike(v)
        w = Sub(a, b) }""",
        random=True, keeps="noise",
    ),
    "random numbers in a loop": Trap(
        """(float[2] x) => (float[k,2] y) <int64 n = {3}, bool t = {1}, float[2] w = {1, 2}> {
        y = Loop(n, t) <body = b (int64 i, bool c) => (bool d, float[2] u) { d = Identity(c)
        r = RandomNormalLike(w)\n s = RandomNormalLike(w)\n v = Sub(r, s)\n u = Add(v, x) }> }""",
        random=True, keeps="Loop",
    ),
    "random numbers in both branches": Trap(
        """(float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> { y = If(c) <then_branch = t ()
        => (float[2] p) { a = RandomNormalLike(w)\n p = Add(a, x) }, else_branch = e () => (float[2] q) {
        a = RandomNormalLike(w)\n q = Sub(a, x) }> }""",
        random=True, keeps="If",
    ),
    "Dropout in training, of constants": Trap(
        """(float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}, float r = {0.5}, bool t = {1}> {
        a = Dropout(w, r, t)\n b = Dropout(w, r, t)\n c = Sub(a, b)\n y = Add(c, x) }""",
        random=True, keeps="Dropout Dropout",
    ),
    "Dropout in training, seeded": Trap(
        """(float[4] x) => (float[4] y) <float r = {0.5}, bool t = {1}> { a = Dropout<seed = 3>(x, r, t)
        b = Dropout<seed = 3>(x, r, t)\n y = Sub(a, b) }""",
        random=True, keeps="Dropout Dropout",
    ),
    "Dropout that drops nothing in training": Trap(
        "(float[4] x) => (float[4] y) <float r = {0}, bool t = {1}> { a = Dropout(x, r, t)\n y = Neg(a) }",
    ),
    "Dropout whose mode is an input": Trap(
        "(float[4] x, bool t) => (float[4] y) <float r = {0.5}> { a = Dropout(x, r, t)\n y = Neg(a) }",
        random=True, keeps="Dropout",
    ),
    "Dropout in training mode by attribute, before opset 7": Trap(
        "(float[4] x) => (float[4] y) { a = Dropout<is_test = 0, ratio = 0.5>(x)\n y = Neg(a) }",
        opset=6, random=True, keeps="Dropout", runs=False,
    ),
    "Dropout out of training by attribute, before opset 7": Trap(
        "(float[4] x) => (float[4] y) { a = Dropout<is_test = 1, ratio = 0.5>(x)\n y = Neg(a) }",
        opset=6, runs=False,
    ),
    "Dropout by attribute, opset 10": Trap(
        "(float[4] x) => (float[4] y) { a = Dropout<ratio = 0.5>(x)\n y = Neg(a) }",
        opset=10,
    ),
    "normalisation in training": Trap(
        """(float[2,1,3] x)
        => (float[2,1,3] y, float[1] m2, float[1] v2) <float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5},
        float[1] v = {0.9}> { y, m2, v2 = BatchNormalization<training_mode = 1>(x, s, b, m, v) }""",
        keeps="BatchNormalization",
    ),
    "normalisation in training after a convolution": Trap(
        """(float[2,1,3] x)
        => (float[2,1,3] y) <float[1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5},
        float[1] v = {0.9}> { a = Conv(x, w)\n y, m2, v2 = BatchNormalization<training_mode = 1>(a, s, b, m, v) }""",
        keeps="Conv BatchNormalization",
    ),
    "normalisation in training, of constants": Trap(
        """(float[1,1,2] x) => (float[1,1,2] y) <float[1,1,2] w = {2, 3}, float[1] s = {3}> {
        a, m2, v2 = BatchNormalization<training_mode = 1>(w, s, s, s, s)\n y = Add(x, a) }""",
        keeps="BatchNormalization",
    ),
    "normalisation before opset 7, without is_test": Trap(
        """(float[2,1,3] x)
        => (float[2,1,3] y) <float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5}, float[1] v = {0.9}> {
        a = BatchNormalization<is_test = 1>(x, s, b, m, v)\n y = Neg(a) }""",
        opset=6,
    ),
    "normalisation after a convolution before opset 7, in training by default": Trap(
        """(float[2,1,3] x)
        => (float[2,1,3] y) <float[1,1,1] w = {2}, float[1] s = {3}, float[1] b = {1}, float[1] m = {0.5},
        float[1] v = {0.9}> { a = Conv(x, w)\n y = BatchNormalization(a, s, b, m, v) }""",
        opset=6, keeps="Conv BatchNormalization", runs=False,
    ),
    "normalisation by attribute `spatial`": Trap(
        """(float[2,1,3] x)
        => (float[2,1,3] y) <float[1,1,1] w = {2}, float[1,3] s = {3, 4, 5}, float[1,3] b = {1, 2, 3}, float[1,3]
        m = {0.5, 1, 2}, float[1,3] v = {0.9, 1, 1.1}> { a = Conv(x, w)
        y = BatchNormalization<spatial = 0>(a, s, b, m, v) }""",
        opset=8, keeps="Conv BatchNormalization",
    ),
    "a seed that is a whole number": Trap(
        """(float[4] x) => (float[4] y) { a = RandomUniformLike<seed = 7.0>(x)\n b = Identity(a)\n c = Identity(a)
        y = Sub(b, c) }""",
        random=True, keeps="RandomUniformLike",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_trap(name: str) -> None:
    TRAPS[name].check()
