"""A model and its quantised form: nodes that read through quantizers have the same partners."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.comparison.graphs import quantizer_pairing
from onnxsmith.comparison.graphs.model_pairs import paired
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.structure.model_copy import cloned

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'
NET = (
    HEAD
    + """g (float[1,4] x) => (float[1,4] y) <float[1] w = {0}, float[1] v = {0}> {
        [first] a = MatMul(x, w)
        [act] b = Relu(a)
        [second] c = MatMul(b, v)
        [third] d = MatMul(c, w)
        [sum] e = Add(d, b)
        [last] y = Softmax(e)
    }"""
)


def net(text: str = NET) -> ir.Model:
    model = from_text(text)
    for seed, value in enumerate(model.graph.initializers.values()):
        array = np.random.default_rng(seed).standard_normal((4, 4)).astype(np.float32)
        value.const_value = ir.tensor(array, name=value.name)
        value.shape = ir.Shape(array.shape)
    return model


def quantised(model: ir.Model, *, fake: bool = False) -> ir.Model:
    """The model with quantizers before each operand; with `fake`, weights are stored as floats."""
    copy = cloned(model)
    graph = copy.graph
    for name, array in {"s": np.full(4, 0.05, np.float32), "z": np.zeros(4, np.int8), "q": np.float32(0.1)}.items():
        graph.initializers.add(ir.Value(name=name, const_value=ir.tensor(array, name=name)))
    graph.initializers.add(ir.Value(name="p", const_value=ir.tensor(np.int8(3), name="p")))
    held = graph.initializers
    for node in list(graph):
        node.name = f"quantised {node.name}"
        for at, value in enumerate(list(node.inputs)):
            assert value is not None
            is_weight = value.const_value is not None
            names = ("s", "z") if is_weight else ("q", "p")
            scales = [held[name] for name in names]
            attributes = [ir.AttrInt64("axis", 1)]
            if is_weight and not fake:
                assert value.const_value is not None
                integers = np.round(value.const_value.numpy() / 0.05).astype(np.int8)
                name = f"{value.name} of {node.name}"
                stored = ir.Value(name=name, const_value=ir.tensor(integers, name=name))
                graph.initializers.add(stored)
            else:
                maker = ir.Node("", "QuantizeLinear", [value, *scales], attributes)
                graph.insert_before(node, maker)
                stored = maker.outputs[0]
                stored.name = f"{value.name} to {node.name}"
            back = ir.Node("", "DequantizeLinear", [stored, *scales], attributes)
            back.outputs[0].name = f"{stored.name} again"
            graph.insert_before(node, back)
            node.replace_input_with(at, back.outputs[0])
    result = graph.outputs[0]
    maker = result.producer()
    assert maker is not None
    to, back = (ir.Node("", f"{kind}Linear", [None, held["q"], held["p"]]) for kind in ("Quantize", "Dequantize"))
    to.replace_input_with(0, result)
    back.replace_input_with(0, to.outputs[0])
    name, result.name, to.outputs[0].name = result.name, "float result", "quantised result"
    back.outputs[0].name = name
    back.outputs[0].type, back.outputs[0].shape = result.type, result.shape
    graph.insert_after(maker, [to, back])
    graph.outputs[0] = back.outputs[0]
    return copy


def names(one: ir.Model, other: ir.Model) -> dict[str, str]:
    _, _, _, found = paired((one, other))
    return {a.name or a.op_type: b.name or b.op_type for a, b in found.pairs.nodes.items()}


PAIRS = {name: f"quantised {name}" for name in ("first", "act", "second", "third", "sum", "last")}


@pytest.mark.parametrize("fake", [False, True])
def test_every_float_node_has_its_partner(fake: bool) -> None:
    model = net()
    assert names(model, quantised(model, fake=fake)) == PAIRS
    assert names(quantised(model, fake=fake), model) == {new: old for old, new in PAIRS.items()}


def test_quantizers_are_added_and_nothing_else() -> None:
    model = net()
    _, models, _, found = paired((model, quantised(model)))
    added = [node for node in models[1].graph if not found.pairs.has(node)]
    assert {node.op_type for node in added} == {"QuantizeLinear", "DequantizeLinear"}
    assert found.changed == []


def test_another_operator_is_still_found() -> None:
    """The step pairs nodes, and hides no change."""
    model, other = net(), quantised(net(NET.replace("Relu", "Sigmoid")))
    _, _, _, found = paired((model, other))
    pairs = {a.name: b for a, b in found.pairs.nodes.items()}
    assert pairs["first"].name == "quantised first"
    assert {(one.op, one.new_op) for one in found.changed} == {("Relu", "Sigmoid")}


def test_layers_of_one_shape_are_told_apart_by_their_weights() -> None:
    text = (
        HEAD
        + """g (float[1,4] x) => (float[1,4] y) <float[1] w = {0}, float[1] v = {0}> {
        [left] a = MatMul(x, w)
        [right] b = MatMul(x, v)
        [joined] y = Add(a, b)
    }"""
    )
    model = net(text)
    other = quantised(model)
    a, b = (node for node in other.graph if node.op_type == "MatMul")
    add = next(node for node in other.graph if node.op_type == "Add")
    add.replace_input_with(0, b.outputs[0])
    add.replace_input_with(1, a.outputs[0])
    for node in (a, b):
        node.name = f"other {node.name}"
    found = names(model, other)
    assert (found["left"], found["right"]) == ("other quantised left", "other quantised right")


def test_models_with_as_many_quantizers_are_paired_as_they_are() -> None:
    model = quantised(net())
    assert list(quantizer_pairing.pairs_behind((model, cloned(model)), lambda _: pytest.fail("asked"))) == []


def test_integers_become_the_floats_that_they_stand_for() -> None:
    head = HEAD + "g (float[2] x) => (float[2,4] y) "
    for scale, zero, attributes, expected in (
        ("float s = {0.5}", "int8 z = {1}", "", [[0, 0.5, 1, 1.5], [2, 2.5, 3, 3.5]]),
        ("float[2] s = {1, 2}", "int8[2] z = {0, 1}", "<axis = 0>", [[1, 2, 3, 4], [8, 10, 12, 14]]),
        ("float[4] s = {1, 2, 3, 4}", "int8[4] z = {0, 0, 0, 0}", "<axis = -1>", [[1, 4, 9, 16], [5, 12, 21, 32]]),
        ("float[2,2] s = {1, 2, 3, 4}", "int8[2,2] z = {0, 0, 0, 0}", "<axis = 1, block_size = 2>",
         [[1, 2, 6, 8], [15, 18, 28, 32]]),
    ):  # fmt: skip
        stored = f"<int8[2,4] w = {{1,2,3,4,5,6,7,8}}, {scale}, {zero}>"
        model = from_text(f"{head}{stored} {{ d = DequantizeLinear{attributes}(w, s, z) y = Abs(d) }}")
        quantizer_pairing.strip(model.graph)
        (node,) = model.graph
        assert node.inputs[0] is not None
        assert node.inputs[0].const_value is not None
        np.testing.assert_allclose(node.inputs[0].const_value.numpy(), expected)
