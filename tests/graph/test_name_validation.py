"""The names of a graph add up, or the reason why they do not is told."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.base import get
from tests.conftest import Refused

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
BRANCHES = "y = If(c) <then_branch = a () => (float p) {{ {then} }}, else_branch = b () => (float q) {{ q = Neg(x) }}>"


def graph(nodes: str, inputs: str = "float x", outputs: str = "float y") -> str:
    return f"{HEAD}g ({inputs}) => ({outputs}) {{ {nodes} }}"


def branching(then: str, *, before: str = "", after: str = "") -> str:
    return graph(f"{before}\n{BRANCHES.format(then=then)}\n{after}", "bool c, float x")


@pytest.mark.parametrize(
    ("text", "problem_id"),
    [
        (graph("y = Abs(nobody)"), "model/undefined-input"),
        (graph("z = Abs(x)"), "model/undefined-output"),
        (graph("y = Neg(z)\n z = Abs(x)"), "model/unsorted"),
        (graph("y = Neg(z)\n z = Abs(y)"), "model/cyclic"),
        (graph("y = Add(x, y)"), "model/cyclic"),
        (graph("y = Abs(x)", "float x, float x"), "model/duplicate-name"),
        (graph("y = Abs(x)\n y = Neg(x)"), "model/duplicate-name"),
        (graph("x = Abs(x)\n y = Neg(x)"), "model/duplicate-name"),
        (graph("a, a = Split<num_outputs = 2>(x)\n y = Neg(a)"), "model/duplicate-name"),
        (graph("y = LeakyRelu<alpha = 0.1, alpha = 0.2>(x)"), "model/duplicate-name"),
        (branching("p = Abs(nobody)"), "model/undefined-input"),
        (branching("z = Abs(x)"), "model/undefined-output"),
        (branching("p = Abs(t)", after="t = Abs(x)"), "model/unsorted"),
        (branching("p = Abs(y)"), "model/cyclic"),
        (branching("p = Abs(x)\n p = Neg(x)"), "model/duplicate-name"),
        (branching("u = Abs(t)\n t = Neg(x)\n p = Neg(u)", before="t = Abs(x)"), "model/duplicate-name"),
        (branching("p = Abs(x)", after="z = Neg(p)"), "model/undefined-input"),
    ],
)
def test_names_that_do_not_add_up_are_refused(text: str, problem_id: str, refused: Refused) -> None:
    with refused(problem_id):
        from_text(text)


def test_a_branch_that_gives_back_an_outer_value_is_refused(refused: Refused) -> None:
    text = branching("p = Abs(x)", before="t = Abs(x)").replace("(float p)", "(float t)")
    with refused("model/undefined-output") as refusal:
        from_text(text)
    assert "Identity" in refusal.problem.fix


@pytest.mark.parametrize("what", ["initializer", "input"])
def test_an_unnamed_value_is_refused(what: str, refused: Refused) -> None:
    proto = parser.parse_model(graph("y = Abs(x)"))
    if what == "initializer":
        proto.graph.initializer.add(data_type=onnx.TensorProto.FLOAT, float_data=[1.0])
    else:
        proto.graph.input.add()
    with refused("model/unnamed"):
        load(proto)


def test_an_initializer_defined_twice_is_refused(refused: Refused) -> None:
    with refused("model/duplicate-name"):
        from_text(f"{HEAD}g (float x) => (float y) <float w = {{1}}, float w = {{2}}> {{ y = Add(x, w) }}")


def test_an_attribute_defined_twice_is_to_be_deleted(refused: Refused) -> None:
    proto = onnx.parser.parse_model(f"{HEAD}g (float x) => (float y) {{ y = Elu<alpha = 1.0>(x) }}")
    proto.graph.node[0].attribute.append(proto.graph.node[0].attribute[0])
    with refused("model/duplicate-name") as refusal:
        load(proto)
    assert refusal.problem.fix == "delete one of the two where the file is made"


def test_an_initializer_that_a_node_makes_too_is_refused(refused: Refused) -> None:
    with refused("model/duplicate-name"):
        from_text(f"{HEAD}g (float x) => (float y) <float y = {{1}}> {{ y = Abs(x) }}")


def test_the_cycle_is_told_in_order(refused: Refused) -> None:
    with refused("model/cyclic") as refusal:
        from_text(graph("a = Add(x, d)\n b = Abs(a)\n c = Neg(b)\n d = Exp(c)\n y = Abs(d)"))
    assert refusal.problem.why == "Abs -> b → Neg -> c → Exp -> d → Add -> a → Abs -> b"


def test_the_node_that_comes_too_early_is_named(refused: Refused) -> None:
    with refused("model/unsorted") as refusal:
        from_text(graph("[early] y = Neg(z)\n z = Abs(x)"))
    assert "Neg early" in refusal.problem.where


# Names that may come twice


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(branching("p = Abs(t)", before="t = Abs(x)"), id="a branch reads an outer value"),
        pytest.param(branching("t = Abs(x)\n p = Neg(t)", before="t = Exp(x)"), id="a branch hides an outer value"),
        pytest.param(branching("t = Abs(x)\n p = Neg(t)", after="t = Exp(x)"), id="a later outer value of that name"),
        pytest.param(branching("q = Abs(x)\n p = Neg(q)"), id="two branches use the same name"),
        pytest.param(graph("y = Abs(x)", outputs="float y, float y"), id="an output that is listed twice"),
        pytest.param(graph("z = Abs(x)", outputs="float x"), id="an output that is an input"),
        pytest.param(f"{HEAD}g (float x) => (float w) <float w = {{1}}> {{ y = Abs(x) }}", id="a weight as output"),
        pytest.param(f"{HEAD}g (float x, float w) => (float y) <float w = {{1}}> {{ y = Add(x, w) }}", id="a default"),
        pytest.param(graph("y, = Dropout(x)"), id="an output left out"),
    ],
)  # fmt: skip
def test_names_that_add_up_load_and_clone(text: str) -> None:
    model = from_text(text).clone()
    assert len(model.graph.outputs) >= 1


def test_a_loop_body_may_call_its_inputs_like_outer_values() -> None:
    model = from_text(
        f"{HEAD}g (int64 n, bool c, float x) => (float y) {{ y = Loop(n, c, x) <body = b"
        " (int64 i, bool c, float x) => (bool d, float z) { z = Add(x, x)\n d = Identity(c) }> }"
    )
    assert [node.op_type for node in model.graph.all_nodes()] == ["Loop", "Add", "Identity"]


def test_an_inner_value_hides_the_outer_one_of_its_name() -> None:
    import numpy as np

    model = from_text(branching("t = Abs(x)\n p = Neg(t)", before="t = Exp(x)"))
    with get("reference").prepare(model) as session:
        outputs = session.run({"c": np.array(True), "x": np.array(-3, np.float32)})
    assert outputs["y"] == -3


# Functions

FUNCTION = (
    '<ir_version: 10, opset_import: ["": 20, "l": 1]>\ng (float x) => (float y) {{ y = l.f(x) }}\n'
    '<domain: "l", opset_import: ["": 20]> f ({inputs}) => ({outputs}) {{ {nodes} }}'
)


@pytest.mark.parametrize(
    ("inputs", "outputs", "nodes", "problem_id"),
    [
        ("a", "b", "b = Abs(nobody)", "model/undefined-input"),
        ("a", "b", "b = Abs(x)", "model/undefined-input"),
        ("a", "b", "c = Abs(a)", "model/undefined-output"),
        ("a", "b", "b = Neg(c)\n c = Abs(a)", "model/unsorted"),
        ("a", "b", "b = Abs(a)\n b = Neg(a)", "model/duplicate-name"),
        ("a, a", "b", "b = Abs(a)", "model/duplicate-name"),
    ],
)
def test_names_of_a_function_that_do_not_add_up_are_refused(
    inputs: str, outputs: str, nodes: str, problem_id: str, refused: Refused
) -> None:
    with refused(problem_id) as refusal:
        from_text(FUNCTION.format(inputs=inputs, outputs=outputs, nodes=nodes))
    assert "function l::f" in refusal.problem.where


def test_a_function_defined_twice_is_refused(refused: Refused) -> None:
    proto = parser.parse_model(FUNCTION.format(inputs="a", outputs="b", nodes="b = Abs(a)"))
    proto.functions.append(proto.functions[0])
    with refused("model/duplicate-name"):
        load(proto)


def test_a_function_loads() -> None:
    model = from_text(FUNCTION.format(inputs="a", outputs="b", nodes="b = Abs(a)"))
    assert list(model.functions) == [("l", "f", "")]


@pytest.mark.parametrize("place", ["name", "doc_string", "input", "attribute", "key", "value", "graph", "inner"])
def test_a_text_that_is_no_text_is_refused(place: str, refused: Refused, tmp_path: Path) -> None:
    mark = "TO_SPOIL"
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    match place:
        case "name" | "doc_string":
            setattr(node, place, mark)
        case "input":
            node.input[0] = mark
        case "attribute":
            node.attribute.append(onnx.helper.make_attribute(mark, 1))
        case "key" | "value":
            node.metadata_props.add(key=mark if place == "key" else "k", value=mark if place == "value" else "v")
        case "inner":
            inner = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["z"], name=mark)], "b", [], [])
            node.attribute.append(onnx.helper.make_attribute("body", inner))
    ports = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in ("x", "y")]
    graph = onnx.helper.make_graph([node], mark if place == "graph" else "g", ports[:1], ports[1:])
    proto = onnx.helper.make_model(graph, ir_version=10, opset_imports=[onnx.helper.make_opsetid("", 20)])
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString().replace(mark.encode(), b"\xff" * len(mark)))
    with refused("model/invalid") as refusal:
        load(path)
    assert "is not UTF-8" in refusal.problem.what


LOOP = (
    "y = Loop(n, c, x) <body = b (int64 i, bool on, float v) => (bool go, float w) {{ go = Identity(on) w = Neg(v) }}>"
)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("y, z" + LOOP[1:], "the body of Loop -> y has 2 outputs, but the node needs 3"),
        (LOOP.replace("c, x", "c, x, x"), "the body of Loop -> y has 3 inputs, but the node needs 4"),
        (
            "y, z = " + BRANCHES.format(then="p = Neg(x)")[4:],
            "the then_branch of If -> y has 1 output, but the node needs 2",
        ),
        (
            "y, z = Scan<num_scan_inputs = 1, body = b (float v) => (float w) {{ w = Neg(v) }}>(x)",
            "the body of Scan -> y has 1 output, but the node needs 2",
        ),
    ],
)
def test_a_body_with_fewer_ports_than_its_node(refused: Refused, text: str, what: str) -> None:
    with refused("model/invalid") as refusal:
        from_text(graph(text.replace("{{", "{").replace("}}", "}"), "int64 n, bool c, float x"))
    assert refusal.problem.what == what
