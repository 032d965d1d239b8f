"""algebra/gemm-between-reshapes: products of rows, with and without a bias, and Reshapes that do something else."""

from __future__ import annotations

import pytest

from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten

RULE = "algebra/gemm-between-reshapes"
CONSTANTS = """float[2,3] w = {1, 2, 3, 4, 5, 6}, float[3,2] t = {1, 2, 3, 4, 5, 6}, float[3] c = {1, 2, 3},
    float[1,3] row = {1, 2, 3}, float one = {1}, int64[2] rows = {-1, 2}, int64[3] back = {-1, 4, 3}"""


def graph(product: str, x: str = "B,4,2", y: str = "B,4,3", end: str = "y = Reshape(b, back)", more: str = "") -> str:
    text = f"g (float[{x}] x{more}) => (float[{y}] y) <{CONSTANTS}> {{"
    return f"{text} a = Reshape(x, rows)\n b = {product}\n {end} }}"


REWRITTEN = {
    "a bias": ("Gemm(a, w, c)", "MatMul Add"),
    "a bias of one row": ("Gemm(a, w, row)", "MatMul Add"),
    "a bias of one number": ("Gemm(a, w, one)", "MatMul Add"),
    "no bias": ("Gemm(a, w)", "MatMul"),
    "transposed weights": ("Gemm<transB = 1>(a, t, c)", "MatMul Add"),
    "attributes that say nothing": ("Gemm<alpha = 1.0, beta = 1.0, transA = 0>(a, w, c)", "MatMul Add"),
    "a MatMul": ("MatMul(a, w)", "MatMul"),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_rewritten(case: str) -> None:
    product, left = REWRITTEN[case]
    assert_rewritten(RULE, left, graph(product))
    assert_rewritten(RULE, left, graph(product).replace("float", "double"))


def test_two_dynamic_axes() -> None:
    end = "s = Shape<end = 2>(x)\n n = Shape(c)\n r = Concat<axis = 0>(s, n)\n y = Reshape(b, r)"
    assert_rewritten(RULE, "MatMul Add", graph("Gemm(a, w, c)", "B,S,2", "B,S,3", end))


def test_flatten_and_more_dimensions() -> None:
    text = graph("Gemm(a, w, c)", "B,4,5,2", "B,4,5,3").replace("back = {-1, 4, 3}", "back = {-1, 4, 5, 3}")
    text = text.replace("int64[3] back", "int64[4] back").replace("Reshape(x, rows)", "Flatten<axis = 3>(x)")
    assert_rewritten(RULE, "MatMul Add", text)


def test_a_bias_that_a_caller_gives() -> None:
    text = graph("Gemm(a, w, z)", more=", float[3] z")
    assert_rewritten(RULE, "MatMul Add", text)


def test_in_a_branch() -> None:
    lines = ["w = Constant<value = float[2,3] {1, 2, 3, 4, 5, 6}>()", "rows = Constant<value = int64[2] {-1, 2}>()"]
    body = "\n ".join([*lines, "a = Reshape(x, rows)", "b = Gemm(a, w)", "p = Reshape(b, back)"])
    other = "z = Neg(x)\n o = Gather<axis = 2>(z, i)\n q = Concat<axis = 2>(z, o)"
    text = f"""g (bool k, float[B,4,2] x) => (float[B,4,3] y) <int64[3] back = {{-1, 4, 3}}, int64[1] i = {{0}}> {{
        y = If (k) <then_branch = t () => (float[B,4,3] p) {{ {body} }},
            else_branch = e () => (float[B,4,3] q) {{ {other} }}> }}"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["MatMul"]


REFUSED = {
    "2: a factor": ("multiplies with alpha", graph("Gemm<alpha = 2.0>(a, w)")),
    "2: a factor of the bias": ("multiplies with beta", graph("Gemm<beta = 2.0>(a, w, z)", more=", float[3] z")),
    "3: weights that are computed": ("not constant", graph("Gemm(a, z)", more=", float[2,3] z")),
    "4: a bias for each row": ("one row", graph("Gemm(a, w, z)", "2,4,2", "2,4,3", more=", float[8,1] z")),
    "1: two readers": (
        "used elsewhere",
        graph("Gemm(a, w)", end="d = Reshape(b, back)\n e = ReduceSum(b)\n y = Mul(d, e)"),
    ),
    "3: transposed weights that are shared": (
        "used elsewhere",
        graph(
            "Gemm<transB = 1>(a, t)",
            end="d = Reshape(b, back)\n e = MatMul(t, v)\n f = ReduceSum(e)\n y = Mul(d, f)",
            more=", float[2,2] v",
        ),
    ),
    "4: a bias of more axes than the data": (
        "more axes",
        graph("Gemm(a, w, row)", "2", "3").replace("{-1, 4, 3}", "{3}").replace("int64[3] back", "int64[1] back"),
    ),
    "2: transposed data": (
        "transposes its data",
        graph("Gemm<transA = 1>(a, w)", "2,1,2", "2,1,3").replace("{-1, 4, 3}", "{2, 1, 3}"),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


ALONE = {
    "rows that are put together otherwise": graph("Gemm(a, w)", "B,4,2", "B,2,6").replace("{-1, 4, 3}", "{-1, 2, 6}"),
    "another last axis": graph("Gemm(a, w)", "B,2,4", "B,4,3"),
    "other sizes": graph("Gemm(a, w)", "8,4,2", "4,8,3").replace("{-1, 4, 3}", "{4, 8, 3}"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
