"""algebra/transpose-through-unary: what lies between, and who else reads it."""

from __future__ import annotations

from tests.refusals import refuses
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/transpose-through-unary"


def between(middle: str, last: str = "[0, 3, 1, 2]", more: str = "") -> str:
    return f"""g (float[A,B,C,D] x) => (float[E,F,G,H] y{more}) {{
        a = Transpose<perm = [0, 2, 3, 1]>(x)\n {middle}\n y = Transpose<perm = {last}>(b) }}"""


def test_inverses_cancel() -> None:
    assert_rewritten(RULE, "LeakyRelu", between("b = LeakyRelu<alpha = 0.3>(a)"))


def test_others_become_one() -> None:
    result = assert_rewritten(RULE, "Transpose Neg", between("b = Neg(a)", "[0, 3, 2, 1]"))
    assert list(next(iter(result.graph)).attributes["perm"].as_ints()) == [0, 1, 3, 2]


def test_the_dtype_may_change_on_the_way() -> None:
    text = between("b = Cast<to = 6>(a)").replace("(float[E", "(int32[E")
    assert_rewritten(RULE, "Cast", text)


@refuses(RULE, 1)
def test_a_second_reader_in_the_middle() -> None:
    assert_refused(RULE, "used elsewhere", between("b = Neg(a)\n z = Abs(b)", more=", float[K,L,M,O] z"))


@refuses(RULE, 1)
def test_an_output_in_the_middle() -> None:
    assert_refused(RULE, "used elsewhere", between("b = Neg(a)", more=", float[K,L,M,O] b"))


def test_operators_that_see_places_are_left() -> None:
    assert_left_alone(RULE, between("b = Softmax<axis = -1>(a)"))


def test_a_transpose_outside_the_branch() -> None:
    text = """g (float[A,B] x, bool c) => (float[E,F] y) {
        a = Transpose<perm = [1, 0]>(x)
        n = Neg(a)
        y = If(c) <then_branch = t () => (float[E,F] p) { p = Transpose<perm = [1, 0]>(n) },
                   else_branch = e () => (float[E,F] q) { q = Abs(x) }>
    }"""
    assert_left_alone(RULE, text)
