"""Models that the reduction was not designed around: each becomes small, or is refused with its own problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.graph.files.save import save
from onnxsmith.graph.files.text import from_text
from tests.comparison.reduction.planted import Chain, flows, operators
from tests.conftest import Refused

REFUSES = "refuses onnxruntime"
HEAD = '<ir_version: 10, opset_import: ["": 20]> g '

TEXTS: dict[str, tuple[str, list[str]]] = {
    "one node": ("(float[2] x) => (y) { y = Geluu(x) }", ["Geluu"]),
    "no inputs": ("() => (y) { c = Constant<value = float[1] {1}>()\n a = Neg(c)\n y = Geluu(a) }", ["Geluu"]),
    "a shared initializer": (
        "(float[2] x) => (y) <float[2] w = {1, 2}> { a = Add(x, w)\n b = Mul(a, w)\n c = Geluu(b, w)\n y = Sub(c, w) }",
        ["Geluu"],
    ),
    "an output that is an input": ("(float[2] x) => (float[2] x, y) { a = Neg(x)\n y = Geluu(a) }", ["Geluu"]),
    "an output that is an initializer": (
        "(float[2] x) => (float[2] w, y) <float[2] w = {1, 2}> { a = Add(x, w)\n y = Geluu(a) }",
        ["Geluu"],
    ),
    "an optional input that is missing": (
        "(float[2] x) => (y) <float h = {1}> { a = Clip(x, , h)\n y = Geluu(a, , h) }",
        ["Geluu"],
    ),
    "several outputs of a node": (
        "(float[4] x) => (y, p) <int64[1] k = {2}> { p, q = TopK(x, k)\n c = Cast<to = 1>(q)\n y = Geluu(c) }",
        ["Geluu"],
    ),
    "a sequence": (
        "(float[2] x) => (y) { a = Neg(x)\n s = SequenceConstruct(a, a)\n l = SequenceLength(s)\n y = Geluu(s) }",
        ["SequenceConstruct", "Geluu"],
    ),
    "strings": ("(string[2] x) => (y) { a = Identity(x)\n b = StringConcat(a, a)\n y = Geluu(b) }", ["Geluu"]),
    "bfloat16": ("(bfloat16[2] x) => (y) { a = Identity(x)\n b = Identity(a)\n y = Geluu(b) }", ["Geluu"]),
    "float8": ("(float[2] x) => (y) { a = Cast<to = 17>(x)\n b = Identity(a)\n y = Geluu(b) }", ["Geluu"]),
    "nothing in a tensor": (
        "(float[0, 3] x) => (y) { a = Neg(x)\n b = Transpose<perm = [1, 0]>(a)\n y = Geluu(b) }",
        ["Geluu"],
    ),
    "dynamic shapes": (
        "(float[batch, n, 3] x) => (y) { s = Shape(x)\n a = Reshape(x, s)\n b = Neg(a)\n y = Geluu(b) }",
        ["Geluu"],
    ),
    "an unknown rank": ("(float[] x, float[] z) => (y) { a = Neg(x)\n b = Add(a, z)\n y = Geluu(b) }", ["Geluu"]),
    "a branch that reads outside": (
        """(bool c, float[2] x) => (y) {
            a = Neg(x)
            b = If(c) <
                then_branch = t () => (z) { m = Neg(a)\n z = Geluu(m) },
                else_branch = e () => (w) { w = Abs(a) }>
            y = Neg(b)
        }""",
        ["Constant", "Geluu"],
    ),
    "nested branches": (
        """(bool c, float[2] x) => (y) {
            a = Neg(x)
            y = If(c) <
                then_branch = t () => (z) {
                    z = If(c) <then_branch = t2 () => (p) { p = Geluu(a) }, else_branch = e2 () => (q) { q = Neg(a) }>
                },
                else_branch = e () => (w) { w = Abs(a) }>
        }""",
        ["Geluu"],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_unknown_operator_is_what_is_left(name: str, tmp_path: Path) -> None:
    text, left = TEXTS[name]
    save(from_text(HEAD + text), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == left


def test_a_function(tmp_path: Path) -> None:
    """onnxruntime says of the function, not of the operator in it, that it cannot be typed: inlined it is another
    failure."""
    text = """<ir_version: 10, opset_import: ["": 20, "local": 1]> g (float[2] x) => (y) {
        a = Neg(x)
        b = local.f(a)
        y = Neg(b)
    }
    <domain: "local", opset_import: ["": 20]> f (v) => (r) { m = Neg(v)\n n = Geluu(m)\n r = Abs(n) }"""
    save(from_text(text), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert [node.op_type for node in model.graph.node] == ["f"]
    assert "Geluu" in [node.op_type for node in model.functions[0].node]


def test_an_empty_graph(tmp_path: Path, refused: Refused) -> None:
    save(from_text(HEAD + "(float[2] x) => (float[2] x) { }"), tmp_path / "m.onnx")
    with refused("reduce/does-not-fail"):
        onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check="crashes onnxruntime")
    result = onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=lambda path, feeds: True)
    assert result.ok


def test_a_graph_without_outputs_or_nodes(tmp_path: Path) -> None:
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [])), tmp_path / "m.onnx")
    with pytest.raises(onnxsmith.OnnxsmithError) as caught:
        onnxsmith.reduce(tmp_path / "m.onnx", check=REFUSES)
    assert caught.value.problem.id == "model/no-graph"


def test_a_check_that_everything_fails(tmp_path: Path) -> None:
    """Nothing holds on to anything: it ends, with something that can be written."""
    chain = Chain()
    onnxsmith.reduce(chain.model(chain.through("x", 10)), tmp_path / "out", check=lambda path, feeds: True)
    assert len(operators(tmp_path / "out" / "model.onnx")) <= 1


def test_external_data(tmp_path: Path) -> None:
    """What is left refers to no file of the original, which may go."""
    chain = Chain()
    big = chain.constant(np.random.default_rng(0).standard_normal((64, 64)))
    x = chain.add("MatMul", "x", big)
    model = chain.model(chain.add("Geluu", chain.add("MatMul", x, big), big), shape=("batch", 64))
    folder = tmp_path / "original"
    folder.mkdir()
    onnx.save(model, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    onnxsmith.reduce(folder / "m.onnx", tmp_path / "out", check=REFUSES)
    for file in folder.iterdir():
        file.unlink()
    onnx.load(tmp_path / "out" / "model.onnx")
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_the_same_output_twice(tmp_path: Path) -> None:
    chain = Chain()
    model = chain.model(chain.add("Geluu", chain.through("x", 4)))
    model.graph.output.append(model.graph.output[0])
    onnx.save(model, tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_a_default_that_a_caller_may_replace(tmp_path: Path) -> None:
    chain = Chain()
    w = chain.constant(np.ones(4))
    model = chain.model(chain.add("Geluu", chain.add("Add", chain.through("x", 3), w), w))
    model.graph.input.append(helper.make_tensor_value_info(w, TensorProto.FLOAT, [4]))
    onnx.save(model, tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_a_loop_whose_body_fails(tmp_path: Path) -> None:
    text = (
        HEAD
        + """(float[2] x) => (y, z) <int64 n = {3}, bool c = {1}> {
        a = Neg(x)
        y, z = Loop(n, c, a) <body = b (int64 i, bool more, float[2] s) => (bool again, float[2] t, float[2] u) {
            again = Identity(more)
            p = Tanh(s)
            q = Geluu(p)
            t = Add(q, a)
            u = Neg(t)
        }>
    }"""
    )
    save(from_text(text), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_a_scan_whose_body_fails(tmp_path: Path) -> None:
    text = (
        HEAD
        + """(float[5, 2] x, float[2] h) => (y, z) {
        a = Neg(x)
        y, z = Scan<num_scan_inputs = 1, body = b (float[2] s, float[2] v) => (float[2] t, float[2] u) {
            p = Add(s, v)
            t = Geluu(p)
            u = Neg(t)
        }>(h, a)
    }"""
    )
    save(from_text(text), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_random_numbers(tmp_path: Path) -> None:
    """What a node drew while values were recorded is what is fed."""
    text = HEAD + "() => (y) { r = RandomNormal<shape = [2, 2]>()\n a = Neg(r)\n b = Tanh(a)\n y = Geluu(b) }"
    save(from_text(text), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_a_sequence_input_becomes_no_silent_lie(tmp_path: Path, refused: Refused) -> None:
    chain = Chain()
    chain.nodes.append(helper.make_node("Geluu", ["s"], ["y"]))
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    graph = helper.make_graph(
        chain.nodes, "g", [helper.make_value_info("s", kind)], [onnx.ValueInfoProto(name="y")], chain.weights
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])
    with refused("reduce/input-kind"):
        onnxsmith.reduce(model, tmp_path / "out", check=REFUSES)
    assert onnxsmith.reduce(model, check=REFUSES).ok


def test_given_bfloat16(tmp_path: Path) -> None:
    save(from_text(HEAD + "(bfloat16[2] x) => (y) { a = Identity(x)\n y = Geluu(a) }"), tmp_path / "m.onnx")
    feeds: dict[str, Any] = {"x": np.array([1, 2], ml_dtypes.bfloat16)}
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES, inputs=feeds)
    held = [numpy_helper.to_array(t) for t in onnx.load(tmp_path / "out" / "model.onnx").graph.initializer]
    assert [array.tolist() for array in held] == [[1]]


def test_names_that_messages_could_hold(tmp_path: Path) -> None:
    """A node called like an operator, a tensor called like a number."""
    chain = Chain()
    x = chain.through("x", 3)
    chain.nodes.append(helper.make_node("Add", [x, x], ["1"], name="Geluu"))
    chain.nodes.append(helper.make_node("Geluu", ["1"], ["Add"], name="No"))
    onnx.save(chain.model("Add"), tmp_path / "m.onnx")
    onnxsmith.reduce(tmp_path / "m.onnx", tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_a_pair_whose_shapes_differ() -> None:
    """Between the two the shape changes, so that nothing alike can stand for what lies between."""
    chain = Chain()
    x = chain.add("Erf", "x")
    x = chain.add("MatMul", x, chain.constant(np.ones((4, 8))))
    for _ in range(12):
        x = chain.add("Tanh", x)
    model = chain.model(chain.add("Softmax", x))
    result = onnxsmith.reduce(model, check=flows("Erf", "Softmax"))
    assert result.model is not None
    assert len(result.model.graph) <= 3
