"""shape/shape-part: parts of a shape."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "shape/shape-part"

REWRITTEN = {
    "a slice": ("Shape", """g (float[A,B,C] x) => (int64 y) <int64[1] o = {0}, int64[1] m = {-1}> {
        s = Shape(x)\n y = Slice(s, o, m) }"""),
    "a slice with axes and steps": ("Shape", """g (float[A,B,C] x) => (int64 y) <int64[1] o = {-2}, int64[1] m = {99},
        int64[1] a = {0}, int64[1] one = {1}> { s = Shape(x)\n y = Slice(s, o, m, a, one) }"""),
    "one dimension as a vector": ("Shape", """g (float[A,B,C] x) => (int64 y) <int64 i = {-2}, int64[1] o = {0}> {
        s = Shape(x)\n d = Gather(s, i)\n y = Unsqueeze(d, o) }"""),
    "one dimension, reshaped": ("Shape", """g (float[A,B,C] x) => (int64 y) <int64 i = {1}, int64[1] m = {-1}> {
        s = Shape(x)\n d = Gather(s, i)\n y = Reshape(d, m) }"""),
    "one dimension as a scalar": ("Shape Squeeze", """g (float[A,B,C] x) => (int64 y) <int64 i = {1}> {
        s = Shape(x)\n y = Gather(s, i) }"""),
    "a part of a part": ("Shape", """g (float[A,B,C] x) => (int64 y) <int64[1] i = {1}> {
        s = Shape<start = 1>(x)\n y = Gather(s, i) }"""),
    "of a shape that others read": ("Shape Shape", """g (float[A,B,C] x) => (int64 s, int64 y) <int64[1] i = {1}> {
        s = Shape(x)\n y = Gather(s, i) }"""),
    "neighbouring parts that are joined": ("Shape", """g (float[A,B,C] x) => (int64 y) {
        a = Shape<end = 2>(x)\n b = Shape<start = 2>(x)\n y = Concat<axis = 0>(a, b) }"""),
    "some neighbouring parts beside others": ("Shape Concat", """g (float[A,B,C] x, int64[1] k) => (int64 y) {
        a = Shape<end = 1>(x)\n b = Shape<start = 1, end = 2>(x)\n y = Concat<axis = 0>(k, a, b, k) }"""),
    "joined parts of which others read one": ("Shape Shape Concat", """
        g (float[A,B,C] x, int64[1] k) => (int64 y, int64 a) {
        a = Shape<end = 1>(x)\n b = Shape<start = 1, end = 2>(x)\n c = Shape<start = 2>(x)
        y = Concat<axis = 0>(k, a, b, c) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


@refuses(RULE, 1)
def test_an_old_opset() -> None:
    text = "g (float[A,B,C] x) => (int64 y) <int64[1] i = {1}> { s = Shape(x)\n y = Gather(s, i) }"
    assert_refused(RULE, "opset 13 has no Shape with start", text, opset=13)


ALONE = {
    "not neighbours": """g (float[A,B,C] x) => (int64 y) <int64[2] i = {0, 2}> { s = Shape(x)\n y = Gather(s, i) }""",
    "turned around": """g (float[A,B] x) => (int64 y) <int64[2] i = {1, 0}> { s = Shape(x)\n y = Gather(s, i) }""",
    "steps": """g (float[A,B,C] x) => (int64 y) <int64[1] o = {0}, int64[1] e = {3}, int64[1] two = {2}> {
        s = Shape(x)\n y = Slice(s, o, e, o, two) }""",
    "a scalar beside others": """g (float[A,B] x) => (int64 y, int64 s) <int64 i = {1}> {
        s = Shape(x)\n y = Gather(s, i) }""",
    "an unknown place": "g (float[A,B] x, int64[1] i) => (int64 y) { s = Shape(x)\n y = Gather(s, i) }",
    "a matrix of dimensions": """g (float[A,B] x) => (int64 y) <int64[1,2] i = {0, 1}> { s = Shape(x)
        y = Gather(s, i) }""",
    "parts in another order": """g (float[A,B] x) => (int64 y) {
        a = Shape<end = 1>(x)\n b = Shape<start = 1>(x)\n y = Concat<axis = 0>(b, a) }""",
    "parts of two values": """g (float[A,B] x, float[A,C] z) => (int64 y) {
        a = Shape<end = 1>(x)\n b = Shape<start = 1>(z)\n y = Concat<axis = 0>(a, b) }""",
    "joined parts that others read": """g (float[A,B] x, int64[1] k) => (int64 y, int64 a, int64 b) {
        a = Shape<end = 1>(x)\n b = Shape<start = 1>(x)\n y = Concat<axis = 0>(a, b, k) }""",
    "nothing": """g (float[A,B] x) => (int64 y) <int64[1] o = {1}> { s = Shape(x)\n t = Slice(s, o, o)
        y = Concat<axis = 0>(t, s) }""",
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
