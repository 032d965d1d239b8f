"""algebra/reshape-chain: zeros in the target, and values in the middle."""

from __future__ import annotations

from tests.refusals import refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "algebra/reshape-chain"


def test_flatten_squeeze_and_unsqueeze_go() -> None:
    text = """g (float[N,4,6] x) => (float[N,24] y) <int64[2] t = {-1, 24}, int64[1] one = {1}> {
        a = Unsqueeze(x, one)\n b = Squeeze(a, one)\n c = Flatten(b)\n d = Unsqueeze(c, one)\n y = Reshape(d, t) }"""
    assert_rewritten(RULE, "Reshape", text)


def test_a_zero_that_copies_the_same_dimension() -> None:
    text = """g (float[N,4,6] x) => (float[N,6,4] y) <int64[2] s = {0, 24}, int64[3] t = {0, 6, 4}> {
        a = Reshape(x, s)\n y = Reshape(a, t) }"""
    assert_rewritten(RULE, "Reshape", text)


def test_a_zero_that_copies_another_dimension_is_written_anew() -> None:
    text = """g (float[N,M,6] x) => (float[K,6,1] y) <int64[2] s = {-1, 6}, int64[3] t = {0, 6, 1}> {
        a = Reshape(x, s)\n b = Reshape(a, t)\n y = Neg(b) }"""
    assert_rewritten(RULE, "Reshape Neg", text)


@refuses(RULE, 1)
def test_a_zero_that_cannot_be_written_anew() -> None:
    text = """g (float[N,M] x) => (float[1,N,M,1] y) <int64[1] one = {0}, int64[4] t = {0, 0, 0, 1}> {
        a = Unsqueeze(x, one)\n b = Neg(a)\n c = Unsqueeze(x, one)\n d = Reshape(c, t)\n y = Add(b, d) }"""
    assert_refused(RULE, "copies a dimension", text)


def test_a_zero_beyond_the_first_rank() -> None:
    text = """g (float[N] x) => (float[A,B,C] y) <int64[3] s = {-1, 2, 1}, int64[3] u = {0, 0, 0}> {
        a = Reshape(x, s)\n b = Reshape(a, u)\n y = Neg(b) }"""
    assert_rewritten(RULE, "Reshape Neg", text)


def test_what_reads_the_middle_keeps_it() -> None:
    text = """g (float[N,4] x) => (float[M] a, float[N,2,2] y) <int64[1] s = {-1}, int64[3] t = {-1, 2, 2}> {
        a = Reshape(x, s)\n y = Reshape(a, t) }"""
    assert_rewritten(RULE, "Reshape Reshape", text)


def test_a_computed_target_that_says_every_size() -> None:
    """Two merges one after the other, as flatten(2, 3).flatten(3, 4) is exported."""
    text = """g (float[N,2,H,2,W,2] x) => (float[A,B,C,D] y) <int64[1] two = {2}> {
        n = Shape<end = 2>(x)\n h = Shape<start = 2, end = 3>(x)\n w = Shape<start = 4, end = 5>(x)
        hh = Mul(h, two)\n ww = Mul(w, two)\n s = Concat<axis = 0>(n, hh, w, two)\n t = Concat<axis = 0>(n, hh, ww)
        a = Reshape<allowzero = 1>(x, s)\n y = Reshape<allowzero = 1>(a, t) }"""
    result = assert_rewritten(RULE, "Shape Shape Shape Mul Mul Concat Reshape", text)
    assert result.graph.node(-1).inputs[0] is result.graph.inputs[0]
