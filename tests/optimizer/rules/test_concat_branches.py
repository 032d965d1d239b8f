"""algebra/concat-branches: operators that do the same to all parts, and what is not the same."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/concat-branches"
HEAD = "g (float[4,2,3] x, float[4,5,3] z) => (float[A,B,C] y)"


def of_both(body: str, concat: str = "Concat<axis = 1>(p, q)", more: str = "") -> str:
    """The body from x to p, and from z to q."""
    first = body.replace("$", "x").replace("@", "p")
    second = body.replace("$", "z").replace("@", "q")
    return f"""{HEAD} <float two = {{2}}, float three = {{3}}, float[3] last = {{1, 2, 3}}{more}> {{
        {first}\n {second}\n y = {concat} }}"""


REWRITTEN = {
    "Relu": ("Concat Relu", of_both("@ = Relu($)")),
    "attributes": ("Concat LeakyRelu", of_both("@ = LeakyRelu<alpha = 0.3>($)")),
    "a detour": ("Concat Sigmoid Mul", of_both("s@ = Sigmoid($)\n @ = Mul(s@, $)")),
    "a number": ("Concat Mul", of_both("@ = Mul($, two)")),
    "a number on the left": ("Concat Sub", of_both("@ = Sub(two, $)")),
    "another axis": ("Concat Add", of_both("@ = Add(last, $)")),
    "Clip": ("Concat Clip", of_both("@ = Clip($, two, three)")),
    "Transpose": ("Concat Transpose", of_both("@ = Transpose<perm = [1, 2, 0]>($)", "Concat<axis = 0>(p, q)")),
    "Transpose, from the end": (
        "Concat Transpose",
        of_both("@ = Transpose<perm = [0, 2, 1]>($)", "Concat<axis = -1>(p, q)"),
    ),
    "several": (
        "Concat Transpose Exp Neg",
        of_both("t@ = Transpose<perm = [0, 2, 1]>($)\n e@ = Exp(t@)\n @ = Neg(e@)", "Concat<axis = 2>(p, q)"),
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    assert_rewritten(RULE, *REWRITTEN[case])


def test_some_of_them() -> None:
    text = f"""{HEAD} {{ s = Sigmoid(x)\n p = Mul(s, x)\n t = Sigmoid(z)\n q = Mul(t, z)\n n = Neg(x)
        y = Concat<axis = 1>(n, p, q, x) }}"""
    assert_rewritten(RULE, "Neg Concat Sigmoid Mul Concat", text)


def test_three_with_two_inputs() -> None:
    text = """g (float[4,2] a, float[4,2] b, float[4,3] c, float[4,3] d, float[4,4] e, float[4,4] f) => (float[A,B] y) {
        p = Add(a, b)\n q = Add(c, d)\n r = Add(e, f)\n y = Concat<axis = 1>(p, q, r) }"""
    assert_rewritten(RULE, "Concat Concat Add", text)


def test_in_a_branch() -> None:
    text = """g (float[4,2] x, bool f) => (float[4,4] y) {
        y = If(f) <then_branch = t () => (float[4,4] p) {
            a = Exp(x)\n n = Neg(x)\n b = Exp(n)\n p = Concat<axis = 1>(a, b) },
                   else_branch = e () => (float[4,4] q) { q = Concat<axis = 1>(x, x) }>
    }"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph.node(0).attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Neg", "Concat", "Exp"]


REFUSED = {
    "1: as many nodes": (
        "as many nodes",
        """g (float[4,2] a, float[4,2] b, float[4,3] c, float[4,3] d) => (float[A,B] y) {
            p = Add(a, b)\n q = Add(c, d)\n y = Concat<axis = 1>(p, q) }""",
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


LEFT_ALONE = {
    "other operators": f"{HEAD} {{ p = Relu(x)\n q = Abs(z)\n y = Concat<axis = 1>(p, q) }}",
    "other attributes": f"{HEAD} {{ p = Elu<alpha = 0.5>(x)\n q = Elu(z)\n y = Concat<axis = 1>(p, q) }}",
    "other numbers": f"""{HEAD} <float a = {{2}}, float b = {{3}}> {{
        p = Mul(x, a)\n q = Mul(z, b)\n y = Concat<axis = 1>(p, q) }}""",
    "a constant along the axis": """g (float[4,3] x, float[4,3] z) => (float[4,6] y) <float[3] c = {1, 2, 3}> {
        p = Mul(x, c)\n q = Mul(z, c)\n y = Concat<axis = 1>(p, q) }""",
    "a part that others read": f"""{HEAD.replace("C] y", "C] y, float[4,2,3] r")} {{
        p = Exp(x)\n q = Exp(z)\n r = Neg(p)\n y = Concat<axis = 1>(p, q) }}""",
    "a part that is an output": f"""{HEAD.replace("C] y", "C] y, float[4,2,3] p")} {{
        p = Exp(x)\n q = Exp(z)\n y = Concat<axis = 1>(p, q) }}""",
    "one part twice": f"{HEAD} {{ p = Exp(x)\n y = Concat<axis = 1>(p, p) }}",
    "parts that broadcast": """g (float[4,1] x, float[4,3] z) => (float[4,6] y) {
        e = Exp(x)\n p = Mul(e, z)\n f = Exp(z)\n q = Mul(f, x)\n y = Concat<axis = 1>(p, q) }""",
    "two operators side by side": f"{HEAD} {{ p = Exp(x)\n q = Exp(z)\n y = Concat<axis = 1>(x, p, q) }}",
}


@pytest.mark.parametrize("case", LEFT_ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, LEFT_ALONE[case])
