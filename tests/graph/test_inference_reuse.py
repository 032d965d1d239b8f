"""Shape inference copies what it found for a node to nodes like it, and to no others."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.shapes import facts, inference_reuse
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.shapes.inference_reuse import Alike
from onnxsmith.optimizer.simplification_rounds import simplified

HEAD = '<ir_version: 10, opset_import: ["": 20]> g '
LAYERS = HEAD + (
    f"(float[n,8] x) => (float[n,8] y) <int64[3] to = {{0, 2, 4}}, int64[2] back = {{0, 8}}, "
    f"float[4,4] w = {{{', '.join('1' * 16)}}}> {{"
    + "".join(
        f"r{i} = Reshape(x{i - 1 or ''}, to) m{i} = MatMul(r{i}, w) t{i} = Transpose<perm = [0, 1, 2]>(m{i}) "
        f"s{i} = Shape(t{i}) b{i} = Reshape(t{i}, back) x{i} = Relu(b{i}) "
        for i in range(1, 9)
    )
    + "y = Identity(x8) }"
)


@pytest.fixture
def inferred(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the nodes that a rule inferred."""
    names: list[str] = []
    by_rule = inference_reuse.by_rule

    def noted(context: Any, node: ir.Node, failed: Any) -> bool:
        names.append(node.op_type)
        return by_rule(context, node, failed)

    monkeypatch.setattr(inference_reuse, "by_rule", noted)
    return names


def dims(model: ir.Model) -> dict[str | None, object]:
    """The dtype, the dimensions and the known integers of every result."""
    return {
        value.name: (value.dtype, facts.dims(value), facts.integers(value))
        for node in model.graph
        for value in node.outputs
    }


def test_equal_layers_are_inferred_once(inferred: list[str]) -> None:
    model = from_text(LAYERS)
    Inference(model)
    assert inferred.count("MatMul") == 1
    assert inferred.count("Reshape") == 3  # the first reads an input of the model
    assert len(inferred) < 10 < len(model.graph)
    assert dims(model)["m7"] == (ir.DataType.FLOAT, ("n", 2, 4), None)
    assert dims(model)["s7"] == (ir.DataType.INT64, (3,), ("n", 2, 4))


def test_the_shapes_are_those_of_nodes_that_are_inferred_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    copied, alone = from_text(LAYERS), from_text(LAYERS)
    Inference(copied)

    def unique(*_: object) -> object:
        raise inference_reuse._UniqueError

    monkeypatch.setattr(Alike, "_key", unique)
    Inference(alone)
    assert dims(copied) == dims(alone)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("a = Reshape(x, two) b = Reshape(x, one)", [(2, 4), (8,)]),  # constants
        ("a = Transpose<perm = [0, 1]>(x) b = Transpose<perm = [1, 0]>(x)", [(2, 4), (4, 2)]),  # attributes
        ("a = Shape(x) b = Shape<start = 1>(x)", [(2,), (1,)]),  # an attribute that only one has
        ("a = Relu(x) b = Relu(z)", [(2, 4), ("n", 4)]),  # names of dimensions
        ("s = Shape(z) t = Shape(x) a = Expand(one_number, s) b = Expand(one_number, t)", [("n", 4), (2, 4)]),
    ],
)
def test_nodes_that_a_rule_tells_apart_are_inferred_apart(nodes: str, found: list[object]) -> None:
    model = from_text(
        HEAD + "(float[2,4] x, float[n,4] z) => (a, b) <int64[2] two = {2, 4}, int64[1] one = {8}, "
        f"float one_number = {{1}}> {{ {nodes} }}"
    )
    Inference(model)
    assert [facts.dims(value) for value in model.graph.outputs] == found


def test_a_size_that_is_unknown_gets_a_name_of_its_own_each_time() -> None:
    model = from_text(HEAD + "(float[4] x) => (a, b) { p = NonZero(x) q = NonZero(x) a = Neg(p) b = Neg(q) }")
    Inference(model)
    first, second = (facts.dims(value) for value in model.graph.outputs)
    assert first is not None
    assert second is not None
    assert first[0] == second[0] == 1
    assert first[1] != second[1]


def test_the_elements_of_long_constants_are_read() -> None:
    zeros, ones = ", ".join(["0"] * 70), ", ".join(["1"] * 70)
    model = from_text(
        HEAD + f"() => (a, b) <float[70] u = {{{zeros}}}, float[70] v = {{{ones}}}> {{ a = NonZero(u) b = NonZero(v) }}"
    )
    Inference(model)
    assert [facts.dims(value) for value in model.graph.outputs] == [(1, 0), (1, 70)]


def test_a_default_that_a_caller_may_replace_is_no_constant() -> None:
    model = from_text(
        HEAD + "(float[8] x, int64[1] d) => (a, b) <int64[1] c = {8}, int64[1] d = {8}> "
        "{ a = Reshape(x, c) b = Reshape(x, d) }"
    )
    Inference(model)
    first, second = (facts.dims(value) for value in model.graph.outputs)
    assert first == (8,) != second


def test_shapes_that_are_copied_cannot_be_changed() -> None:
    model = from_text(LAYERS)
    Inference(model)
    shape = next(node for node in model.graph if node.outputs[0].name == "m8").outputs[0].shape
    assert shape is not None
    with pytest.raises(TypeError):
        shape[0] = 1


def test_later_rounds_know_what_the_first_found(inferred: list[str]) -> None:
    simplified(from_text(LAYERS))
    assert inferred.count("Relu") <= 2
