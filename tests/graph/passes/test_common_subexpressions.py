"""Nodes that compute the same become one; what only looks the same does not."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from onnxsmith.base.settings import Verify
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.passes.common_subexpressions import CommonSubexpressions
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes.base import get
from onnxsmith.verification.sessions import verify_models

HEAD = '<ir_version: 10, opset_import: ["": 20]>'


def merged(body: str, head: str = HEAD, *, random: bool = False) -> ir.Model:
    model = from_text(f"{head} g {body}")
    copy = cloned(model)
    Inference(copy)
    CommonSubexpressions().run(copy)
    if not random:
        assert verify_models(model, copy, Verify(runtime="reference")).equal
    return copy


def ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph]


def test_a_chain_done_twice_is_done_once() -> None:
    model = merged("(float[N] x) => (float[N] y) { a = Exp(x)\n b = Neg(a)\n c = Exp(x)\n d = Neg(c)\n y = Add(b, d) }")
    assert ops(model) == ["Exp", "Neg", "Add"]


def test_attributes_and_inputs_are_compared() -> None:
    axes = "a = ReduceSum<keepdims = 0>(x, k)\n b = ReduceSum<keepdims = 1>(x, k)\n c = Squeeze(b, k)"
    model = merged(f"(float[N,M] x) => (float[N] y) <int64[1] k = {{1}}> {{ {axes}\n y = Add(a, c) }}")
    assert ops(model) == ["ReduceSum", "ReduceSum", "Squeeze", "Add"]
    model = merged("(float[N] x, float[N] z) => (float[N] y) { a = Sub(x, z)\n b = Sub(z, x)\n y = Mul(a, b) }")
    assert ops(model) == ["Sub", "Sub", "Mul"]


def test_negative_zero_as_an_attribute_is_another() -> None:
    model = merged("(float[N] x) => (float[N] y) { a = Elu<alpha = 0.0>(x)\n b = Elu<alpha = 0.0>(x)\n y = Add(a, b) }")
    assert ops(model) == ["Elu", "Add"]
    model = from_text(f"{HEAD} g (float[N] x) => (float[N] y) {{ a = Elu(x)\n b = Elu(x)\n y = Add(a, b) }}")
    for node, alpha in zip(model.graph, (0.0, -0.0), strict=False):
        node.attributes["alpha"] = ir.AttrFloat32("alpha", alpha)
    assert not CommonSubexpressions().run(model).changed


def test_constants_are_compared_by_bytes() -> None:
    model = merged(
        "(float[N] x) => (float[N] y) { p = Constant<value = float {0}>()\n q = Constant<value = float {0}>()\n"
        "r = Constant<value = int32 {0}>()\n s = Cast<to = 1>(r)\n a = Add(x, p)\n b = Add(a, q)\n y = Add(b, s) }"
    )
    assert ops(model).count("Constant") == 2


@pytest.mark.parametrize(
    "op",
    ["RandomNormalLike(x)", "RandomUniformLike<seed = 1.0>(x)", "Bernoulli(x)", "Dropout(x, r, t)"],
)
def test_random_ones_stay_two(op: str) -> None:
    model = merged(
        f"(float[N] x) => (float[N] y) <float r = {{0.5}}, bool t = {{1}}> {{ a = {op}\n b = {op}\n y = Sub(a, b) }}",
        random=True,
    )
    assert len(ops(model)) == 3


def test_functions_and_foreign_operators_stay_two() -> None:
    text = """(float[N] x) => (float[N] y) { a = f.noise(x)\n b = f.noise(x)\n y = Sub(a, b) }
        <domain: "f", opset_import: ["": 20]> noise (x) => (y) { y = RandomNormalLike(x) }"""
    assert len(ops(merged(text, '<ir_version: 10, opset_import: ["": 20, "f": 1]>', random=True))) == 3


def test_nodes_with_branches_stay_two() -> None:
    one = (
        "If(c) <then_branch = t{0} () => (float[M] p{0}) {{ p{0} = Neg(x) }},"
        "else_branch = e{0} () => (float[M] q{0}) {{ q{0} = Exp(x) }}>"
    )
    model = merged(
        f"(float[N] x, bool c) => (float[N] y) {{ a = {one.format(1)}\n b = {one.format(2)}\n y = Add(a, b) }}"
    )
    assert ops(model) == ["If", "If", "Add"]


def test_two_outputs_that_are_equal_stay_two() -> None:
    assert ops(merged("(float[N] x) => (float[N] y, float[N] z) { y = Exp(x)\n z = Exp(x) }")) == ["Exp", "Exp"]


@pytest.mark.parametrize("first", [True, False])
def test_an_output_keeps_its_name_and_shape(first: bool) -> None:
    a, b = ("a", "y") if first else ("y", "a")
    model = merged(f"(float[N] x) => (float[named] y, float[N] z) {{ {a} = Exp(x)\n {b} = Exp(x)\n z = Neg(a) }}")
    assert ops(model) == ["Exp", "Neg"]
    assert [value.name for value in model.graph.outputs] == ["y", "z"]
    assert len({value.name for node in model.graph for value in node.outputs}) == 2


def test_positions_of_outputs_count() -> None:
    body = "v, i = TopK(x, k)\n w, j = TopK(x, k)\n f = Cast<to = 1>(j)\n y = Add(v, f)"
    assert ops(merged(f"(float[4] x) => (float[2] y) <int64[1] k = {{2}}> {{ {body} }}")) == ["TopK", "Cast", "Add"]


def test_each_graph_has_its_own() -> None:
    model = merged(
        """(float[N] x, bool c) => (float[N] y) {
            a = Exp(x)
            y = If(c) <then_branch = t () => (float[M] p) { m = Exp(x)\n n = Exp(x)\n o = Add(m, n)\n p = Add(o, a) },
                       else_branch = e () => (float[M] q) { q = Neg(a) }>
        }"""
    )
    branch = next(node for node in model.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    assert [node.op_type for node in branch] == ["Exp", "Add", "Add"]


def test_sizes_that_are_the_same_expression_are_one() -> None:
    body = """(float[batch,4] x{more}) => (int64[1] p, int64[1] q) <int64[1] zero = {{0}}> {{
        a = Exp({one})\n b = Neg({two})\n s = Shape(a)\n t = Shape(b)
        m = Gather(s, zero)\n n = Gather(t, zero)\n p = Neg(m)\n q = Abs(n)
    }}"""
    model = merged(body.format(more="", one="x", two="x"))
    readers = [node for node in model.graph if node.op_type in ("Neg", "Abs") and node.outputs[0].name in "pq"]
    assert readers[0].inputs[0] is readers[1].inputs[0]


def test_sizes_of_two_inputs_that_share_a_name_are_not_trusted() -> None:
    model = merged(
        """(float[n] x, float[n] z) => (int64[1] p, int64[1] q) {
            s = Shape(x)\n t = Shape(z)\n p = Neg(s)\n q = Neg(t) }"""
    )
    with get("reference").prepare(model) as session:
        node = [node.inputs[0].name for node in model.graph if node.op_type == "Neg"]
        assert node == ["s", "t"]
        assert session.signature


def test_a_long_chain_of_pairs_is_linear() -> None:
    lines = ["a0 = Exp(x)", "b0 = Exp(x)"]
    for i in range(3000):
        lines += [f"a{i + 1} = Neg(a{i})", f"b{i + 1} = Neg(b{i})"]
    text = "\n".join(lines)
    model = from_text(f"{HEAD} g (float[N] x) => (float[N] y) {{ {text}\n y = Add(a3000, b3000) }}")
    CommonSubexpressions().run(model)
    assert len(model.graph) == 3002
