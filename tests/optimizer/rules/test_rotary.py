"""fuse/rotary: the ways cosines and sines come, and rotations that are none or may not be rewritten."""

from __future__ import annotations

import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals, refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/rotary"
CONSTANTS = """int64[1] zero = {0}, int64[1] one = {1}, int64[1] half = {2}, int64[1] three = {3}, int64[1] end = {4},
    int64[2] sizes = {2, 2}, int64[2] front = {0, 1}, float two = {2}, float[3,1] low = {1, 2, 3},
    float[1,1,3,4] kc = {1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6}, float[3,4] ks = {6, 5, 6, 5, 4, 3, 4, 3, 2, 1, 2, 1},
    float[3,4] uneven = {6, 5, 6, 5, 4, 3, 4, 3, 2, 1, 2, 7}, float[4] row = {1, 2, 1, 2}"""
TWICE = "e = Concat<axis = -1>(f, f)\n"
ANGLES = "c = Cos(e)\n s = Sin(e)\n"
AXIS = "cu = Unsqueeze(c, one)\n su = Unsqueeze(s, one)\n"
SPLIT = "a, b = Split<axis = 3>(x, sizes)\n"
TURN = "n = Neg(b)\n t = Concat<axis = -1>(n, a)\n"
SUM = "p = Mul(x, cu)\n q = Mul(t, su)\n y = Add(p, q)\n"
WITH_CONSTANTS = SUM.replace("cu", "kc").replace("su", "ks")
AGAIN = """a1, b1 = Split<axis = 3>(w, sizes)\n n1 = Neg(b1)\n t1 = Concat<axis = -1>(n1, a1)
    p1 = Mul(w, cu)\n q1 = Mul(t1, su)\n y = Add(p1, q1)"""
SPREAD = "Cos Sin Shape Concat Expand Expand RotaryEmbedding"


def rotary(cache: str = TWICE + ANGLES + AXIS, turn: str = SPLIT + TURN, end: str = SUM, **ports: str) -> str:
    x, f, more = ports.get("x", "float[N,2,3,4]"), ports.get("f", "float[1,3,2]"), ports.get("more", "")
    constants = CONSTANTS.replace("float", x.split("[")[0])
    return f"g ({x} x, {f} f) => ({x} y{more}) <{constants}> {{ {cache} {turn} {end} }}"


ONE = "float[1,2,3,4]"
REWRITTEN = {
    "as torch writes it": (rotary(), SPREAD),
    "the other way round": (rotary(end="p = Mul(cu, x)\n q = Mul(su, t)\n y = Add(q, p)"), SPREAD),
    "slices": (rotary(turn=f"a = Slice(x, zero, half, three)\n b = Slice(x, half, end, three)\n {TURN}"), SPREAD),
    "float16": (rotary(x="float16[N,2,3,4]", f="float16[1,3,2]"), SPREAD),
    "one row, one of the batch": (rotary(x=ONE), "Cos Sin RotaryEmbedding"),
    "two of the batch": (rotary(x="float[2,2,3,4]"), "Cos Sin Expand Expand RotaryEmbedding"),
    "a row each": (rotary(x="float[2,2,3,4]", f="float[2,3,2]"), "Cos Sin RotaryEmbedding"),
    "a factor": (
        rotary(TWICE + ANGLES.replace("c =", "d =") + "c = Mul(two, d)\n" + AXIS, x=ONE),
        "Cos Mul Sin RotaryEmbedding",
    ),
    "a Cast": (
        rotary("d = Concat<axis = -1>(f, f)\n e = Cast<to = 1>(d)\n" + ANGLES + AXIS, x=ONE, f="float16[1,3,2]"),
        "Cast Cos Sin RotaryEmbedding",
    ),
    "four axes": (
        rotary(TWICE + "cu = Cos(e)\n su = Sin(e)\n", x=ONE, f="float[1,1,3,2]"),
        "Squeeze Cos Sin RotaryEmbedding",
    ),
    "two axes": (
        rotary(TWICE + ANGLES + AXIS.replace("one", "front"), x=ONE, f="float[3,2]"),
        "Unsqueeze Cos Sin RotaryEmbedding",
    ),
    "constants": (rotary("", end=WITH_CONSTANTS, x=ONE), "RotaryEmbedding"),
    "constants, a batch": (rotary("", end=WITH_CONSTANTS), "Shape Concat Expand Expand RotaryEmbedding"),
    "several": (rotary(end=SUM.replace("y =", "w =") + AGAIN), SPREAD + " RotaryEmbedding"),
}


@pytest.mark.parametrize("case", REWRITTEN)
@pytest.mark.parametrize("runtime", ["reference", "onnxruntime"])
def test_rewritten(case: str, runtime: str) -> None:
    text, ops = REWRITTEN[case]
    assert_rewritten(RULE, ops, text, 23, runtime)


def test_a_constant_keeps_its_half() -> None:
    result, _ = simplified(from_text(head(23) + REWRITTEN["constants"][0]))
    sizes = [value.const_value.size for value in result.graph.initializers.values() if value.const_value is not None]
    assert sizes == [6, 6]


EQUAL, LONG = "two halves", "another length than the data"
READ = SUM + "o = Abs(cu)\n r = Abs(su)\n"
REFUSED = {
    "2: a product that is read": (rotary(more=", float[N,2,3,4] q"), "used elsewhere"),
    "2: a half that is read": (rotary(end=SUM + "o = Abs(a)", more=", float[N,2,3,2] o"), "used elsewhere"),
    "3: double": (rotary(x="double[N,2,3,4]", f="double[1,3,2]"), "dtype"),
    "4: halves that differ": (rotary("m = Abs(f)\n e = Concat<axis = -1>(f, m)\n" + ANGLES + AXIS), EQUAL),
    "4: twice along another axis": (
        rotary("e = Concat<axis = 1>(f, f)\n" + ANGLES + AXIS, x="float[N,2,6,4]", f="float[1,3,4]"),
        EQUAL,
    ),
    "4: constant halves that differ": (rotary("", end=WITH_CONSTANTS.replace("ks", "uneven")), EQUAL),
    "4: a constant of one axis": (
        rotary("", end=SUM.replace("cu", "row").replace("su", "row"), x="float[N,2,1,4]"),
        EQUAL,
    ),
    "4: all of it given": (rotary("e = Abs(f)\n" + ANGLES + AXIS, f="float[1,3,4]"), EQUAL),
    "4: a factor for each position": (
        rotary(TWICE + ANGLES.replace("c =", "d =") + "c = Mul(low, d)\n" + AXIS),
        EQUAL,
    ),
    "5: another length": (rotary(f="float[1,S,2]"), LONG),
    "5: one position": (rotary(f="float[1,1,2]"), LONG),
    "5: a row for each head": (rotary(TWICE + ANGLES + AXIS.replace("one", "zero"), f="float[2,3,2]"), LONG),
    "5: another batch": (rotary(f="float[M,3,2]"), "one row for each batch element"),
    "6: cosines and sines that others read": (
        rotary(end=READ, more=", float[1,1,3,4] o, float[1,1,3,4] r"),
        "as many nodes",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    text, reason = REFUSED[case]
    assert_refused(RULE, reason, text, 23)


@refuses(RULE, 1)
def test_an_opset_without_it() -> None:
    assert_refused(RULE, "opset 22", rotary(), 22)


@refuses(RULE, 4)
def test_an_input_with_a_default_is_no_constant() -> None:
    text = rotary("", end=WITH_CONSTANTS, x=ONE).replace("float[1,3,2] f)", "float[1,3,2] f, float[3,4] ks)")
    assert_refused(RULE, EQUAL, text, 23)


ALONE = {
    "three axes": rotary(
        TWICE + "cu = Cos(e)\n su = Sin(e)\n", (SPLIT + TURN).replace("axis = 3", "axis = 2"), x="float[1,3,4]"
    ),
    "the first half is turned": rotary(turn=SPLIT + TURN.replace("Neg(b)", "Neg(a)").replace("(n, a)", "(n, b)")),
    "the halves stay in place": rotary(turn=SPLIT + TURN.replace("(n, a)", "(a, n)")),
    "halves that overlap": rotary(turn=f"a = Slice(x, one, three, three)\n b = Slice(x, half, end, three)\n {TURN}"),
    "something else is turned": rotary(turn="r = Relu(x)\n" + SPLIT.replace("(x", "(r") + TURN),
    "a difference": rotary(end=SUM.replace("Add", "Sub")),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case], 23)
