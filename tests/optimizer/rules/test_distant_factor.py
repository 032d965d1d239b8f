"""fuse/distant-factor: the ways back, where they end, and what stands in them."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "fuse/distant-factor"
WIDE = ", ".join(str(n % 7 - 3) for n in range(24))
CONSTANTS = f"""float c = {{0.5}}, float d = {{4}}, float[4,6] w = {{{WIDE}}}, float[4,6] u = {{{WIDE}}},
    float[6] b = {{1, 2, 3, 4, 5, 6}}, float[6] s = {{1, 2, 3, 4, 5, 6}}, int64[4] heads = {{0, 0, 2, 3}},
    float[2,1,1] each = {{2, 3}}, float[3] columns = {{2, 4, 8}}, int64[2] halves = {{3, 3}},
    int64[1] k0 = {{0}}, int64[1] k1 = {{1}}, int64[1] k3 = {{3}}"""
HEADS = "a = MatMul(x, w)\n e = Add(a, b)\n f = Reshape(e, heads)\n h = Transpose<perm = [0, 2, 1, 3]>(f)"


def graph(body: str, x: str = "float[N,S,4] x", y: str = "A,B,C,D", constants: str = CONSTANTS) -> str:
    return f"g ({x}) => (float[{y}] y) <{constants}> {{ {body} }}"


PARTS = "a = MatMul(x, w)\n e, f = Split<axis = 2>(a, halves)"
LEFT = "MatMul Add Reshape Transpose"
REWRITTEN = {
    "to heads": (graph(f"{HEADS}\n y = Mul(h, c)"), LEFT),
    "divided": (graph(f"{HEADS}\n y = Div(h, d)"), LEFT),
    "a factor for each head": (graph(f"{HEADS}\n y = Mul(each, h)"), LEFT),
    "a factor for each number of a head": (graph(f"{HEADS}\n y = Mul(h, columns)"), LEFT),
    "the scores": (
        graph(f"{HEADS}\n t = MatMul(x, u)\n i = Reshape(t, heads)\n j = Transpose<perm = [0, 2, 3, 1]>(i)\n"
              " l = MatMul(h, j)\n m = Div(l, d)\n y = Softmax(m)"),
        "MatMul Add Reshape Split Transpose Transpose MatMul Softmax",
    ),
    "a query beside a key that was kept": (
        graph(f"{HEADS}\n j = Mul(k, c)\n y = MatMul(h, j)", x="float[N,S,4] x, float[N,2,3,T] k"),
        f"{LEFT} MatMul",
    ),
    "a part of a Split": (
        graph(f"{PARTS}\n h = Mul(e, c)\n y = Concat<axis = 1>(h, f)", y="A,B,C"),
        "MatMul Split Concat",
    ),
    "both parts of a Split": (
        graph(f"{PARTS}\n h = Concat<axis = 1>(f, e)\n y = Mul(h, c)", y="A,B,C"),
        "MatMul Split Concat",
    ),
    "a rotation": (
        graph(f"{HEADS}\n i = Mul(h, z)\n j = Slice(h, k0, k1, k3)\n l = Slice(h, k1, k3, k3)\n m = Neg(j)\n"
              " n = Concat<axis = 3>(l, m)\n o = Mul(t, n)\n p = Add(i, o)\n y = Mul(p, c)",
              x="float[N,S,4] x, float[N,1,S,3] z, float[N,1,S,3] t"),
        f"{LEFT} Mul Split Neg Concat Mul Add",
    ),
    "a normalisation": (
        graph("a = LayerNormalization(x, s, b)\n e = Transpose<perm = [1, 0, 2]>(a)\n y = Mul(e, c)",
              "float[N,S,6] x", "A,B,C"),
        "LayerNormalization Transpose",
    ),
    "another factor": (
        graph("a = Relu(x)\n e = Mul(a, c)\n f = Transpose<perm = [1, 0, 2]>(e)\n y = Mul(f, d)", y="A,B,C"),
        "Relu Mul Transpose",
    ),
    "another divisor": (
        graph("a = Relu(x)\n e = Div(a, d)\n f = Transpose<perm = [1, 0, 2]>(e)\n y = Mul(f, c)", y="A,B,C"),
        "Relu Div Transpose",
    ),
    "factors on both sides": (
        graph("a = Mul(x, c)\n e = Mul(z, d)\n y = MatMul(a, e)", "float[N,S,4] x, float[N,4,S] z", "A,B,C"),
        "Mul MatMul",
    ),
    "a constant of more dimensions": (
        graph("a = MatMul(x, v)\n e = Transpose<perm = [0, 2, 1]>(a)\n y = Div(e, d)", "float[2,S,2] x", "A,B,C",
              "float[2,2,2] v = {1, 2, 3, 4, 5, 6, 7, 8}, float d = {4}"),
        "MatMul Transpose",
    ),
    "a Gemm": (
        graph("a = Gemm<alpha = 2.0>(x, w, b)\n e = Transpose(a)\n y = Mul(e, c)", "float[N,4] x", "A,B"),
        "Gemm Transpose",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    text, left = REWRITTEN[case]
    assert_rewritten(RULE, left, text)


def test_double_and_an_old_opset() -> None:
    text = graph(f"{HEADS}\n y = Mul(h, c)")
    assert_rewritten(RULE, LEFT, text.replace("float", "double"))
    assert_rewritten(RULE, LEFT, text, opset=8)


def test_in_a_branch() -> None:
    inner = f"c = Constant<value = float {{0.5}}>()\n w = Constant<value = float[4,6] {{{WIDE}}}>()\n"
    body = f"{inner} a = MatMul(x, w)\n e = Transpose<perm = [1, 0]>(a)\n p = Mul(e, c)"
    text = f"""g (bool k, float[N,4] x) => (float[M,N] y) {{
        y = If (k) <then_branch = t () => (float[6,N] p) {{ {body} }},
            else_branch = e () => (float[4,N] q) {{ q = Transpose(x) }}> }}"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["MatMul", "Transpose"]


SHARED = graph(
    f"{HEADS}\n i = Mul(h, c)\n j = MatMul(z, w)\n l = ReduceSum(j)\n y = Mul(i, l)", "float[N,S,4] x, float[N,S,4] z"
)
BETWEEN = graph(
    "a = Relu(x)\n e = Mul(a, c)\n f = Transpose<perm = [1, 0, 2]>(e)\n y = Mul(f, d)",
    y="A,B,C",
    constants="float c = {1e30}, float d = {1e-30}",
)
LONG = ", ".join(str(n % 5 + 1) for n in range(300))
REFUSED = {
    "1: weights that are used elsewhere": ("used elsewhere", SHARED),
    "1: weights that a caller may replace": (
        "not constant",
        graph("a = Gemm(x, w)\n e = Transpose(a)\n y = Mul(e, c)", "float[N,4] x, float[4,6] w", "A,B"),
    ),
    "2: weights that overflow": (
        "out of the range",
        graph("a = MatMul(x, w)\n e = Transpose(a)\n z = Mul(e, c)\n y = Tanh(z)", "float[N,4] x", "A,B")
        .replace("float c = {0.5}", "float c = {1e38}")
        .replace("{-3, -2", "{-30, -2"),
    ),
    "2: weights that lose bits": (
        "out of the range",
        graph(f"{HEADS}\n y = Mul(h, c)").replace("float c = {0.5}", "float c = {1e-39}"),
    ),
    "4: one number that would become many": (
        "more memory",
        graph(
            "a = Relu(x)\n e = Mul(a, c)\n f = Transpose<perm = [1, 0, 2]>(e)\n y = Mul(f, long)",
            "float[N,S,300] x",
            "A,B,C",
            f"float c = {{0.5}}, float[300] long = {{{LONG}}}",
        ),
    ),
    "1: a bias of a normalisation that a caller may replace": (
        "not constant",
        graph(
            "a = LayerNormalization(x, s, z)\n e = Transpose<perm = [1, 0, 2]>(a)\n y = Mul(e, c)",
            "float[N,S,6] x, float[6] z",
            "A,B,C",
        ),
    ),
    "2: another factor that overflows": (
        "cannot be multiplied into the constant",
        graph(
            "a = Relu(x)\n e = Mul(a, d)\n f = Transpose<perm = [1, 0, 2]>(e)\n z = Mul(f, c)\n y = Tanh(z)",
            y="A,B,C",
            constants="float c = {1e38}, float d = {4}",
        ),
    ),
    "3: a value that overflows where the result does not": ("overflows or becomes 0", BETWEEN),
    "3: a quotient that overflows where the result does not": (
        "overflows or becomes 0",
        BETWEEN.replace("Mul(a, c)", "Div(a, d)").replace("Mul(f, d)", "Div(f, c)"),
    ),
    "3: a quotient by 0": (
        "overflows or becomes 0",
        BETWEEN.replace("Mul(a, c)", "Div(a, zero)").replace("float c", "float zero = {0}, float c"),
    ),
    "3: a value that becomes 0 where the result does not": (
        "overflows or becomes 0",
        BETWEEN.replace("Mul(a, c)", "Mul(a, d)").replace("Mul(f, d)", "Mul(f, c)"),
    ),
    "3: a value that may overflow though its factor is small": (
        "overflows or becomes 0",
        BETWEEN.replace("1e30", "512").replace("1e-30", "0.001"),
    ),
    "3: a sum that overflows where the result does not": (
        "overflows or becomes 0",
        graph(f"{HEADS}\n y = Mul(h, c)").replace("float c = {0.5}", "float c = {1e-20}").replace("{-3", "{-3e20"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


ALONE = {
    "nothing in between": graph("a = MatMul(x, w)\n y = Mul(a, c)", y="A,B,C"),
    "a value that is read elsewhere": graph(f"{HEADS}\n i = Mul(h, c)\n y = Sub(i, h)"),
    "a value in the middle that is read elsewhere": graph(
        f"{HEADS}\n i = Mul(h, c)\n j = ReduceSum(f)\n y = Sub(i, j)"),
    "a value in the middle that is an output": graph(
        f"{HEADS}\n y = Mul(h, c)").replace("y) <", "y, float[E,F,G,H] f) <"),
    "a factor for each place": graph(f"{HEADS}\n y = Mul(h, rows)", "float[N,2,4] x").replace(
        "float c", "float[2,1] rows = {2, 3}, float c"
    ),
    "an operator that is not linear": graph(f"{HEADS}\n i = Exp(h)\n y = Mul(i, c)"),
    "a sum of which only one term has it": graph(
        f"{HEADS}\n i = Add(h, z)\n y = Mul(i, c)", "float[N,S,4] x, float[N,2,S,3] z"),
    "a value that is multiplied with itself": graph(f"{HEADS}\n i = Mul(h, h)\n l = Neg(i)\n y = Mul(l, c)"),
    "a square": graph("a = Mul(x, d)\n e = Mul(a, a)\n f = Transpose<perm = [1, 0, 2]>(e)\n y = Mul(f, c)", y="A,B,C"),
    "both factors of a product": graph(f"{HEADS}\n i = Neg(h)\n j = Mul(h, i)\n l = Add(j, i)\n y = Mul(l, c)"),
    "a factor of 0": graph(f"{HEADS}\n y = Mul(h, c)").replace("float c = {0.5}", "float c = {0}"),
    "a factor that raises the rank": graph(
        "a = MatMul(x, w)\n e = Transpose<perm = [1, 0]>(a)\n y = Mul(e, each)", "float[N,4] x", "A,B,C"),
    "a factor that a caller may replace": graph(f"{HEADS}\n y = Mul(h, c)", "float[N,S,4] x, float c"),
    "the divisor": graph(f"{HEADS}\n y = Div(c, h)"),
}  # fmt: skip


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
