"""Models of every kind that a graph may be: what the check asks for is left, and no more than it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxsmith
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure import walk
from tests.comparison.reduction.planted import Chain, operators
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20, "local": 1]> g '
REFUSES = "refuses onnxruntime"
LOCAL = '<domain: "local", opset_import: ["": 20, "local": 1]>'


def has(*wanted: str) -> Callable[[Path, Any], bool]:
    """Fails where these operators stand, in bodies and functions too."""
    return lambda path, feeds: set(wanted) <= {node.op_type for node in walk.all_nodes(load(path))}


def nested_loops(path: Path, feeds: Any) -> bool:
    """Fails where a Loop stands in a Loop and an Erf in that."""
    model = load(path)
    inner = [n for n in walk.all_nodes(model) if n.op_type == "Loop" and n.graph is not model.graph]
    held = [n.attributes["body"].as_graph() for n in inner]
    return any(node.op_type == "Erf" for body in held for node in body)


TEXTS: dict[str, tuple[str, Any, list[str]]] = {
    "functions that call functions": (
        f"""(float[2] x) => (y) {{ a = Neg(x)\n b = local.f(a)\n y = Neg(b) }}
        {LOCAL} f (v) => (r) {{ m = Neg(v)\n n = local.h(m)\n r = Abs(n) }}
        {LOCAL} h (v) => (r) {{ m = Erf(v)\n r = Sin(m) }}""",
        has("Erf"),
        ["Erf"],
    ),
    "a function with an attribute": (
        f"""(float[2] x) => (y) {{ a = Neg(x)\n b = local.f<alpha = 0.5>(a)\n y = Neg(b) }}
        {LOCAL} f <alpha> (v) => (r) {{ m = Neg(v)\n n = LeakyRelu<alpha: float = @alpha>(m)\n r = Erf(n) }}""",
        has("LeakyRelu"),
        ["LeakyRelu"],
    ),
    "a function that gives its input": (
        f"""(float[2] x) => (y) {{ a = Neg(x)\n b, c = local.f(a)\n d = Erf(b)\n y = Add(d, c) }}
        {LOCAL} f (v) => (v, r) {{ r = Neg(v) }}""",
        has("Erf", "Add"),
        ["Erf", "Add"],
    ),
    "an empty function": (
        f"(float[2] x) => (y) {{ a = Neg(x)\n b = local.f(a)\n y = Erf(b) }} {LOCAL} f (v) => (v) {{ }}",
        has("Erf"),
        ["Erf"],
    ),
    "a branch in a function": (
        f"""(float[2] x, bool c) => (y) {{ a = Neg(x)\n b = local.f(a, c)\n y = Sin(b) }}
        {LOCAL} f (v, c) => (r) {{
            r = If(c) <then_branch = t () => (p) {{ p = Erf(v) }}, else_branch = e () => (q) {{ q = Abs(v) }}>
        }}""",
        has("Erf"),
        ["Erf"],
    ),
    "a branch that gives one value twice": (
        """(bool c, float[2] x) => (float[2] y, float[2] z) {
            a = Abs(x)
            y, z = If(c) <then_branch = t () => (float[2] p, float[2] p) { p = Erf(a) },
                          else_branch = e () => (float[2] q, float[2] r) { q = Neg(a)\n r = Sin(a) }>
        }""",
        has("Erf"),
        ["Erf"],
    ),
    "a branch that gives an initializer": (
        """(bool c, float[2] x) => (float[2] y) {
            a = Erf(x)
            b = If(c) <then_branch = t () => (float[2] p) <float[2] p = {1, 2}> { },
                       else_branch = e () => (float[2] q) { q = Neg(a) }>
            y = Neg(b)
        }""",
        has("Erf", "Neg"),
        ["Erf", "Neg"],
    ),
    "branches with the same names": (
        """(bool c, float[2] x) => (float[2] y) {
            a = Abs(x)
            y = If(c) <then_branch = t () => (float[2] b) { m = Erf(a)\n b = Neg(m) },
                       else_branch = e () => (float[2] b) { m = Sin(a)\n b = Neg(m) }>
        }""",
        has("Erf", "Neg"),
        ["Erf", "Neg"],
    ),
    "a branch in a loop": (
        """(float[2] x, bool k) => (y) <int64 n = {3}, bool c = {1}> {
            a = Neg(x)
            y = Loop(n, c, a) <body = b (int64 i, bool more, float[2] s) => (bool again, float[2] t) {
                again = Identity(more)
                t = If(k) <then_branch = th () => (float[2] p) { h = Tanh(s)\n p = Erf(h) },
                           else_branch = e () => (float[2] q) { q = Abs(a) }>
            }>
        }""",
        has("Erf"),
        ["Erf"],
    ),
    "a loop in a loop that has to stay": (
        """(float[2] x) => (y) <int64 n = {3}, bool c = {1}> {
            a = Neg(x)
            y, z = Loop(n, c, a, a) <body = b (int64 i, bool more, float[2] s, float[2] s0)
                    => (bool again, float[2] t, float[2] t0) {
                again = Identity(more)
                t0 = Sin(s0)
                t, u = Loop(n, c, s, s) <body = b2 (int64 j, bool m, float[2] v, float[2] v0)
                        => (bool on, float[2] w, float[2] w0) { on = Identity(m)\n w0 = Cos(v0)\n w = Erf(v) }>
            }>
        }""",
        nested_loops,
        ["Loop"],
    ),
    "a loop that gives a state back": (
        """(float[2] x) => (float[2] y) <int64 n = {3}, bool c = {1}> {
            o = Abs(x)
            y, v = Loop(n, c, x, o) <body = b (int64 i, bool more, float[2] s, float[2] t)
                    => (bool again, float[2] t2, float[2] s) { again = Identity(more)\n t2 = Erf(t) }>
        }""",
        has("Erf"),
        ["Erf"],
    ),
    "a scan over another axis": (
        """(float[3, 5] x, float[3] h) => (float[3] y, float[5, 3] z) {
            y, z = Scan<num_scan_inputs = 1, scan_input_axes = [1],
                        body = b (float[3] s, float[3] e) => (float[3] t, float[3] o) {
                p = Add(s, e)
                t = Erf(p)
                o = Neg(e)
            }>(h, x)
        }""",
        has("Erf"),
        ["Erf"],
    ),
    "a sequence that is mapped": (
        """(float[2] x) => (y) {
            a = Neg(x)
            s = SequenceConstruct(a, x)
            m = SequenceMap(s) <body = b (float[2] v) => (float[2] w) { w = Erf(v) }>
            y = ConcatFromSequence<axis = 0>(m)
        }""",
        has("Erf"),
        ["SequenceConstruct", "SequenceMap"],
    ),
    "numbers that overflow": (
        "(float16[2] x) => (float16[2] y) { a = Exp(x)\n b = Exp(a)\n c = Exp(b)\n y = Erf(c) }",
        has("Erf"),
        ["Erf"],
    ),
    "forty outputs": (
        f"(float[2] x) => ({', '.join(f'float[2] o{i}' for i in range(40))}) {{ "
        + "\n".join(f"o{i} = {'Erf' if i == 17 else 'Neg'}(x)" for i in range(40))
        + " }",
        has("Erf"),
        ["Erf"],
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_the_check_asks_for_is_left(name: str, tmp_path: Path) -> None:
    text, check, left = TEXTS[name]
    onnxsmith.reduce(from_text(HEAD + text), tmp_path / "out", check=check)
    model = onnx.load(tmp_path / "out" / "model.onnx")
    assert [node.op_type for node in model.graph.node if node.op_type != "Constant"] == left
    onnxsmith.load(tmp_path / "out" / "model.onnx")


def int4_weights() -> onnx.ModelProto:
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("Mul", ["x", "d"], ["m"]),
        helper.make_node("Geluu", ["m"], ["y"]),
    ]
    weights = [
        helper.make_tensor("w", TensorProto.INT4, [4], [1, -2, 3, -4]),
        numpy_helper.from_array(np.array(0.5, np.float32), "s"),
    ]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    graph = helper.make_graph(nodes, "g", ports, [onnx.ValueInfoProto(name="y")], weights)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def int4_in_the_middle() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4),
        helper.make_node("Geluu", ["q"], ["y"]),
    ]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
    graph = helper.make_graph(nodes, "g", ports, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])


def opset_7() -> onnx.ModelProto:
    chain = Chain()
    x = chain.add("Upsample", chain.add("Unsqueeze", "x", axes=[0, 1]), mode="nearest", scales=[1.0, 1.0, 2.0, 2.0])
    return chain.model(chain.add("Geluu", x), opset=7)


def weights_that_are_inputs() -> onnx.ModelProto:
    """As files of IR version 3 have them."""
    chain = Chain()
    w = chain.constant(np.ones((4, 4)))
    model = chain.model(chain.add("Geluu", chain.add("MatMul", "x", w)), opset=8)
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info(w, TensorProto.FLOAT, [4, 4]))
    return model


def a_sequence_as_input() -> onnx.ModelProto:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    nodes = [
        helper.make_node("ConcatFromSequence", ["s"], ["a"], axis=0),
        helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Geluu", ["b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [helper.make_value_info("s", kind)], [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


@pytest.mark.parametrize(
    "made", [int4_weights, int4_in_the_middle, opset_7, weights_that_are_inputs, a_sequence_as_input]
)
def test_an_unknown_operator_in_an_unusual_file(made: Callable[[], onnx.ModelProto], tmp_path: Path) -> None:
    onnxsmith.reduce(made(), tmp_path / "out", check=REFUSES)
    assert operators(tmp_path / "out" / "model.onnx") == ["Geluu"]


def test_an_operator_of_somebody_else(tmp_path: Path) -> None:
    """No runtime runs the model, so nothing is known of the values behind it."""
    chain = Chain()
    x = chain.add("Acme", chain.through("x", 6), domain="com.acme", recipe="butter")
    model = chain.model(chain.through(chain.add("Erf", x), 5))
    model.opset_import.add(domain="com.acme", version=1)
    onnxsmith.reduce(model, tmp_path / "out", check=has("Acme", "Erf"))
    assert operators(tmp_path / "out" / "model.onnx") == ["Acme", "Erf"]


@pytest.mark.parametrize("name", ["", "same"])
def test_nodes_without_names_of_their_own(name: str) -> None:
    chain = Chain()
    model = chain.model(chain.through(chain.add("Erf", chain.through("x", 6)), 6))
    for node in model.graph.node:
        node.name = name
    result = onnxsmith.reduce(model, check=has("Erf"))
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Erf"]


def test_a_long_chain() -> None:
    chain = Chain()
    x = chain.through("x", 1000)
    model = chain.model(chain.through(chain.add("Erf", x), 1000))
    result = onnxsmith.reduce(model, check=has("Erf"))
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Erf"]


def test_two_failures_at_once() -> None:
    """One of the two, whichever is reported first, is what every later failure is held to."""
    model = from_text(HEAD + "(float[2] x) => (y, z) { a = Neg(x)\n y = Geluu(a)\n b = Abs(x)\n z = Siluu(b) }")
    result = onnxsmith.reduce(model, check=REFUSES)
    assert result.model is not None
    (left,) = result.model.graph
    assert left.op_type in result.report.parts[0].failure  # type: ignore[attr-defined]


@pytest.mark.parametrize("check", ["refuses openvino", "differs openvino onnxruntime", "crashes openvino"])
def test_what_we_refuse_to_ask_is_no_failure_of_a_runtime(check: str, refused: Refused) -> None:
    """OpenVINO computes double in float, so it is not asked: its own program would not refuse it."""
    model = from_text(HEAD + "(double[2] x) => (double[2] y) { a = Neg(x)\n y = Abs(a) }")
    with refused("reduce/does-not-fail") as refusal:
        onnxsmith.reduce(model, check=check)
    assert "onnxsmith did not ask the runtime" in refusal.problem.why
    assert "double" in refusal.problem.why


def test_a_dtype_that_a_runtime_itself_refuses_is_a_failure() -> None:
    body = "(float[2] x) => (complex64[2] y, float[2] z) { y = Cast<to = 14>(x)\n a = Neg(x)\n z = Abs(a) }"
    result = onnxsmith.reduce(from_text(HEAD + body), check=REFUSES)
    assert result.model is not None
    assert [node.op_type for node in result.model.graph] == ["Cast"]
