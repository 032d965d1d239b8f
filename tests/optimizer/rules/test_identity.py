"""algebra/identity: what it passes on, and outputs that need a value of their own."""

from __future__ import annotations

import pytest

from tests.refusals import refuses
from tests.rewrites import assert_refused, assert_rewritten

RULE = "algebra/identity"


def test_its_readers_read_its_input() -> None:
    assert_rewritten(RULE, "Relu Neg Add", """g (float[N] x) => (float[N] y) {
        a = Identity(x)\n p = Relu(a)\n q = Neg(a)\n y = Add(p, q) }""")  # fmt: skip


def test_a_chain_of_them() -> None:
    text = "g (float[N] x) => (float[N] y) { a = Identity(x)\n b = Identity(a)\n c = Identity(b)\n y = Relu(c) }"
    assert_rewritten(RULE, "Relu", text)


def test_an_output_that_one_node_makes() -> None:
    assert_rewritten(RULE, "Relu", "g (float[N] x) => (float[N] y) { a = Relu(x)\n y = Identity(a) }")


def test_sequences() -> None:
    text = """g (float[N] x) => (float[N] y) <int64 first = {0}> {
        s = SequenceConstruct(x)\n t = Identity(s)\n y = SequenceAt(t, first) }"""
    assert_rewritten(RULE, "SequenceConstruct SequenceAt", text)


@refuses(RULE, 1)
@pytest.mark.parametrize(
    "text",
    [
        "g (float[N] x) => (float[N] y) { y = Identity(x) }",
        "g (float[N] x) => (float[N] y, float[N] z) { y = Relu(x)\n z = Identity(y) }",
    ],
    ids=["a graph input", "another output"],
)
def test_refused_1_an_output_needs_a_value_of_its_own(text: str) -> None:
    assert_refused(RULE, "the result is a graph output, which needs a value of its own", text)
