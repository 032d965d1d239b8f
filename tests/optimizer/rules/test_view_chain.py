"""algebra/view-chain: two views in a row, in every combination."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "algebra/view-chain"

REWRITTEN = {
    "unsqueezes": ("Unsqueeze", """g (float[A,B] x) => (float y) <int64[2] p = {0, 2}, int64[2] q = {-1, 1}> {
        a = Unsqueeze(x, p)\n y = Unsqueeze(a, q) }"""),
    "squeezes": ("Squeeze", """g (float[A,1,1,B,1] x) => (float y) <int64[1] p = {1}, int64[2] q = {-1, 1}> {
        a = Squeeze(x, p)\n y = Squeeze(a, q) }"""),
    "a squeeze of what was unsqueezed": ("Neg", """g (float[A,B] x) => (float y) <int64[1] p = {1}> {
        n = Neg(x)\n a = Unsqueeze(n, p)\n y = Squeeze(a, p) }"""),
    "an unsqueeze of what was squeezed": ("Neg", """g (float[A,1] x) => (float y) <int64[1] p = {1}> {
        n = Neg(x)\n a = Squeeze(n, p)\n y = Unsqueeze(a, p) }"""),
    "other axes": ("Reshape", """g (float[A,B] x) => (float y)
        <int64[1] p = {0}, int64[2] q = {1, 3}, int64[4] k = {1, -1, 1, 1}> {
        a = Unsqueeze(x, q)\n b = Reshape(a, k)\n y = Squeeze(b, p) }"""),
    "a flatten": ("Reshape", """g (float[A,2,3] x) => (float y) <int64[1] p = {1}> {
        a = Unsqueeze(x, p)\n y = Flatten(a) }"""),
    "a flatten that gives the data": ("Neg", """g (float[A,3] x) => (float y) <int64[1] p = {2}> {
        n = Neg(x)\n a = Unsqueeze(n, p)\n y = Flatten(a) }"""),
    "all in a row": ("Reshape", """g (float[A,2,3] x) => (float y) <int64[1] p = {1}, int64[3] t = {0, 1, 6}> {
        a = Unsqueeze(x, p)\n b = Reshape(a, t)\n c = Squeeze(b, p)\n d = Unsqueeze(c, p)\n y = Unsqueeze(d, p) }"""),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_axes_are_attributes_before_opset_13() -> None:
    text = "g (float[A,B] x) => (float y) { a = Unsqueeze<axes = [1]>(x)\n y = Unsqueeze<axes = [0]>(a) }"
    assert_rewritten(RULE, "Unsqueeze", text, opset=11)


def test_what_reads_the_middle_keeps_it() -> None:
    text = """g (float[A,B] x) => (float a, float y) <int64[1] p = {1}, int64[1] q = {0}> {
        a = Unsqueeze(x, p)\n y = Unsqueeze(a, q) }"""
    assert_rewritten(RULE, "Unsqueeze Unsqueeze", text)


@refuses(RULE, 1)
def test_two_dimensions_in_other_places() -> None:
    text = """g (float[A,B] x) => (float y) <int64[2] p = {0, 1}, int64[1] o = {0}> {
        b = Unsqueeze(x, p)\n c = Squeeze(b, o)\n y = Neg(c) }"""
    assert_refused(RULE, "differs from the data's dimension at the same position", text)


def test_an_output_that_is_the_input() -> None:
    text = """g (float[A,B] x) => (float[A,B] y) <int64[1] p = {1}> { a = Unsqueeze(x, p)\n y = Squeeze(a, p) }"""
    assert_rewritten(RULE, "Identity", text)


def test_unknown_dimensions() -> None:
    text = """g (float x) => (float y) <int64[1] p = {1}, int64[1] q = {0}> {
        a = Unsqueeze(x, q)\n y = Unsqueeze(a, p) }"""
    assert_rewritten(RULE, "Unsqueeze", text)
