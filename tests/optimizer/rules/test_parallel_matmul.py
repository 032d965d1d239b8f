"""fuse/parallel-matmul: where nodes are saved, what follows the products, what stands in the way."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.optimizer.simplification_rounds import simplified
from tests.refusals import refusals
from tests.rewrites import assert_left_alone, assert_refused, assert_rewritten, head

RULE = "fuse/parallel-matmul"
U, V, W = "float[2,1] u = {1, 2}", "float[2,1] v = {3, 4}", "float[2,2] w = {5, 6, 7, 8}"
PRODUCTS = "a = MatMul(x, u)\n b = MatMul(x, v)\n c = MatMul(x, w)"
OUT = "float[N,1] a, float[N,1] b, float[N,2] c"


def graph(body: str, weights: str = f"{U}, {V}, {W}", x: str = "float[N,2] x", out: str = OUT) -> str:
    return f"g ({x}) => ({out}) <{weights}> {{ {body} }}"


def heads(bias: str = "qkv", perm_of_k: str = "0, 2, 1, 3", x: str = "B,S,4") -> str:
    """Query, key and value of two heads of three numbers each."""
    lines, weights = [], ["int64[4] h = {0, 0, 2, 3}"]
    for name in "qkv":
        weights.append(f"float[4,6] w{name} = {{{', '.join(str(n + ord(name)) for n in range(24))}}}")
        weights.append(f"float[6] b{name} = {{1, 2, 3, 4, 5, {ord(name)}}}")
        lines.append(f"m{name} = MatMul(x, w{name})")
        lines.append(f"a{name} = {f'Add(m{name}, b{name})' if name in bias else f'Identity(m{name})'}")
        lines.append(f"r{name} = Reshape(a{name}, h)")
        perm = perm_of_k if name == "k" else "0, 2, 1, 3"
        lines.append(f"{name} = Transpose<perm = [{perm}]>(r{name})")
    out = ", ".join(f"float[B,H,{'M,N' if name == 'k' else 'S,D'}] {name}" for name in "qkv")
    return graph("\n ".join(lines), ", ".join(weights), f"float[{x}] x", out)


def test_three_products() -> None:
    result = assert_rewritten(RULE, "MatMul Split", graph(PRODUCTS))
    joined = next(value for value in result.graph.initializers.values() if len(value.shape or ()) != 1)
    assert joined.const_value is not None
    assert joined.const_value.numpy().tolist() == [[1, 3, 5, 6], [2, 4, 7, 8]]


def test_the_matrices_are_put_together_when_they_are_read() -> None:
    result, _ = simplified(from_text(head(17) + graph(PRODUCTS)), only=[RULE])
    tensors = [value.const_value for value in result.graph.initializers.values()]
    assert [type(tensor) for tensor in tensors if tensor is not None and tensor.dtype == ir.DataType.FLOAT] == [
        ir.LazyTensor
    ]


@pytest.mark.parametrize("opset", [7, 12, 13, 18])
def test_opsets(opset: int) -> None:
    assert_rewritten(RULE, "MatMul Split", graph(PRODUCTS), opset)


def test_more_and_fewer_dimensions() -> None:
    assert_rewritten(RULE, "MatMul Split", graph(PRODUCTS, x="float[N,3,2] x", out=OUT.replace("N", "N,3")))
    assert_rewritten(RULE, "MatMul Split", graph(PRODUCTS, x="float[2] x", out=OUT.replace("N,", "")))


def test_double() -> None:
    assert_rewritten(RULE, "MatMul Split", graph(PRODUCTS).replace("float", "double"))


def test_heads() -> None:
    for x in ("B,S,4", "2,5,4"):
        assert_rewritten(RULE, "MatMul Add Reshape Transpose Split", heads(x=x))


def test_heads_with_another_order_of_the_key() -> None:
    left = "MatMul Add Reshape Transpose Split Transpose"
    assert_rewritten(RULE, left, heads(perm_of_k="0, 2, 3, 1"))


def test_a_bias_that_one_does_not_have() -> None:
    assert_rewritten(RULE, "MatMul Add Reshape Transpose Split", heads(bias="qv"))
    assert_rewritten(RULE, "MatMul Add Reshape Transpose Split", heads(bias="k"))
    assert_rewritten(RULE, "MatMul Reshape Transpose Split", heads(bias=""))


def test_two_products_with_a_bias() -> None:
    body = "a = MatMul(x, u)\n b = MatMul(x, v)\n c = Add(a, o)\n d = Add(t, b)\n y = Mul(c, d)"
    weights = f"{U}, {V}, float[1] o = {{3}}, float[1] t = {{4}}"
    assert_rewritten(RULE, "Gemm Split Mul", graph(body, weights, out="float[N,1] y"))
    text = graph(body, weights, "float[B,N,2] x", "float[B,N,1] y")
    assert_rewritten(RULE, "MatMul Add Split Mul", text)


def test_products_that_go_different_ways() -> None:
    ways = "d = MatMul(x, s)\n e = Relu(a)\n f = Relu(b)\n h = Relu(c)\n i = Relu(e)"
    weights = f"{U}, {V}, {W}, float[2,2] s = {{3, 4, 5, 7}}"
    text = graph(f"{PRODUCTS}\n {ways}\n y = Concat<axis = 1>(f, h, i, d)", weights, out="float[N,M] y")
    assert_rewritten(RULE, "MatMul MatMul Relu Split Concat", text)  # the second Relu gets no negative numbers


def test_readers_in_between() -> None:
    body = "a = MatMul(x, u)\n d = Neg(a)\n b = MatMul(x, v)\n c = MatMul(x, w)\n y = Concat<axis = 1>(d, b, c)"
    assert_rewritten(RULE, "MatMul Split Neg Concat", graph(body, out="float[N,M] y"))


def test_a_product_that_another_needs() -> None:
    body = "a = MatMul(x, u)\n b = MatMul(x, v)\n d = Mul(a, b)\n z = Mul(x, d)\n c = MatMul(z, w)"
    assert_left_alone(RULE, graph(f"{body}\n y = Concat<axis = 1>(a, c)", out="float[N,M] y"))


def test_in_a_branch() -> None:
    lines = [f"{name} = Constant<value = float[2,1] {{{n}, 2}}>()" for n, name in enumerate("uvw")]
    body = "\n ".join([*lines, PRODUCTS, "p = Sum(a, b, c)"])
    other = "i = Constant<value = int64[1] {1}>()\n q = Gather<axis = 1>(x, i)"
    text = f"""g (bool k, float[N,2] x) => (float[N,1] y) {{
        y = If (k) <then_branch = t () => (float[N,1] p) {{ {body} }},
            else_branch = e () => (float[N,1] q) {{ {other} }}> }}"""
    result = assert_rewritten(RULE, "If", text)
    branch = result.graph[0].attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch if node.op_type != "Constant"] == ["MatMul", "Split", "Sum"]


SHARED = graph(
    PRODUCTS.replace("b = MatMul(x, v)", "b = MatMul(x, u)\n d = MatMul(z, u)\n e = Relu(d)"),
    f"{U}, {W}",
    "float[N,2] x, float[N,2] z",
    f"{OUT}, float[N,1] e",
)
REFUSED = {
    "1: a matrix that is read twice": ("used elsewhere", SHARED),
    "2: much wider than what it is made of": (
        "much wider",
        graph(
            "a = MatMul(x, u)\n b = MatMul(x, v)\n c = MatMul(x, w)",
            "float[1,3] u = {1, 2, 3}, float[1,3] v = {4, 5, 6}, float[1,3] w = {7, 8, 9}",
            "float[N,1] x",
            "float[N,3] a, float[N,3] b, float[N,3] c",
        ),
    ),
}


@pytest.mark.parametrize("case", refusals(RULE, REFUSED))
def test_refused(case: str) -> None:
    assert_refused(RULE, *REFUSED[case])


ALONE = {
    "two products": graph("a = MatMul(x, u)\n b = MatMul(x, w)", f"{U}, {W}", out="float[N,1] a, float[N,2] b"),
    "different values": graph(
        "a = MatMul(x, u)\n b = MatMul(z, v)\n c = MatMul(t, w)", x="float[N,2] x, float[N,2] z, float[N,2] t"
    ),
    "weights that a caller may replace": graph(PRODUCTS, x="float[N,2] x, float[2,1] u, float[2,1] v"),
    "the constant on the left": graph(
        "a = MatMul(u, x)\n b = MatMul(v, x)\n c = MatMul(w, x)",
        "float[1,2] u = {1, 2}, float[1,2] v = {3, 4}, float[1,2] w = {5, 6}",
        "float[2,N] x",
        "float[1,N] a, float[1,N] b, float[1,N] c",
    ),
    "stacked matrices": graph(
        PRODUCTS,
        "float[1,2,1] u = {1, 2}, float[1,2,1] v = {3, 4}, float[1,2,1] w = {5, 6}",
        "float[B,N,2] x",
        "float[B,N,1] a, float[B,N,1] b, float[B,N,1] c",
    ),
    "parts that the body of a loop reads": graph(
        "a = MatMul(x, u)\n b = MatMul(x, v)\n "
        "s = Loop(n, t, z) <body = body (int64 i, bool c, float[N,1] o) => (bool d, float[N,1] p) "
        "{ d = Identity(c) l = Add(o, a) p = Add(l, b) }>",
        f"{U}, {V}, int64 n = {{2}}, bool t = {{1}}",
        "float[N,2] x, float[N,1] z",
        "float[N,1] s",
    ),
    "integers": graph(PRODUCTS).replace("float", "int32"),
}


@pytest.mark.parametrize("case", ALONE)
def test_left_alone(case: str) -> None:
    assert_left_alone(RULE, ALONE[case])
