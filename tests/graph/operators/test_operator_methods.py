"""Operators at any place of a graph: nodes, constants, names, types, and refusals that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.files.text import from_text
from onnxsmith.graph.operators.operator_methods import Operators
from tests.rewrites import head

BODY = "g (float[batch,3,8,8] x, float[batch,4] v, int64[n] i) => (float[batch,3,8,8] y) { a = Neg(x) y = Relu(a) }"


def model(opset: int = 21) -> ir.Model:
    return from_text(head(opset) + BODY)


def size(one: ir.Model) -> tuple[int, int]:
    return len(one.graph), len(one.graph.initializers)


def test_nodes_have_names_types_and_shapes() -> None:
    g = Operators(model())
    x = g.tensor("x")
    y = g.Conv(x, np.zeros((4, 3, 3, 3), np.float32), pads=[1, 1, 1, 1])
    assert (y.name, y.dtype, y.shape, y.rank) == ("conv", "float32", ("batch", 4, 8, 8), 4)
    assert repr(y) == "Tensor(conv: float32[batch, 4, 8, 8])"
    assert g.Relu(y).name == "relu"
    assert g.Relu(y).name == "relu_1"
    with g.scope("head"), g.scope("first"):
        assert g.Relu(y).name == "head.first.relu"
    assert [node.op_type for node in g.made] == ["Conv", "Relu", "Relu", "Relu"]


def test_a_node_before_another() -> None:
    one = model()
    relu = next(node for node in one.graph if node.op_type == "Relu")
    g = Operators(one, before=relu)
    relu.replace_input_with(0, g.Abs(g.tensor("a")).value)
    assert [node.op_type for node in one.graph] == ["Neg", "Abs", "Relu"]
    assert not check(one)


def test_several_results() -> None:
    g = Operators(model())
    values, indices = g.TopK(g.tensor("x"), 5)
    assert (values.shape, indices.dtype) == (("batch", 3, 8, 5), "int64")
    assert len(g.Split(g.tensor("x"), num_outputs=3, axis=1)) == 3
    assert [one.name for one in g.MaxPool(g.tensor("x"), kernel_shape=[2, 2], outputs=["p", "q"])] == ["p", "q"]
    everything = g.LSTM(
        g.Reshape(g.tensor("x"), [8, -1, 24]), np.zeros((1, 8, 24), np.float32), np.zeros((1, 8, 2), np.float32),
        hidden_size=2,
    )  # fmt: skip
    assert len(everything) == 3


@pytest.mark.parametrize(("opset", "count"), [(11, 1), (13, 2), (21, 2)])
def test_an_operand_by_name_is_an_attribute_where_the_opset_says_so(opset: int, count: int) -> None:
    g = Operators(model(opset))
    y = g.Unsqueeze(g.tensor("v"), axes=[0])
    assert y.shape == (1, "batch", 4)
    assert len(g.made[-1].inputs) == count


def test_python_values_take_the_dtype_of_their_place() -> None:
    one = model()
    g = Operators(one)
    half = g.Cast(g.tensor("v"), to="float16")
    for made in (half * 2, 2 * half, half + np.sqrt(64), 1 - half, half / 3):
        assert made.dtype == "float16"
    assert g.Gather(g.tensor("x"), [0, 1]).shape == (2, 3, 8, 8)
    assert g.tensor("i") // 2 is not None
    assert {str(value.dtype) for value in one.graph.initializers.values()} == {"FLOAT16", "INT64"}


def test_equal_small_constants_and_one_array_are_stored_once() -> None:
    one = model()
    g = Operators(one)
    array = np.ones((4, 30), np.float32)
    for _ in range(3):
        g.tensor("v") * 2
        g.MatMul(g.tensor("v"), array)
    assert len(one.graph.initializers) == 2
    array[:] = 5  # the model keeps its own values
    assert {float(v.const_value.numpy().max()) for v in one.graph.initializers.values() if v.const_value} == {1.0, 2.0}
    g.MatMul(g.tensor("v"), array)
    assert len(one.graph.initializers) == 3


def test_lists_with_tensors() -> None:
    g = Operators(model())
    x = g.tensor("x")
    assert g.Reshape(x, [g.Shape(x)[0], -1]).shape == ("batch", 192)


@pytest.mark.parametrize(
    ("index", "shape"),
    [
        (0, (3, 8, 8)),
        ((slice(None), -1), ("batch", 8, 8)),
        ((slice(None), slice(1, 3), None), ("batch", 2, 1, 8, 8)),
        ((Ellipsis, slice(None, None, -2)), ("batch", 3, 8, 4)),
        ((Ellipsis, None), ("batch", 3, 8, 8, 1)),
        ((slice(None), np.array([0, 2])), ("batch", 2, 8, 8)),
    ],
)
def test_indexing(index: Any, shape: tuple[Any, ...]) -> None:
    g = Operators(model())
    assert g.tensor("x")[index].shape == shape


def test_other_domains() -> None:
    one = model()
    g = Operators(one)
    y = g.node("com.example::Odd", g.tensor("x"), 1.5, alpha=2, names=["a", "b"], outputs=2)[0]
    assert (y.dtype, y.shape) == (None, None)
    assert y.declare("float32", ["batch", 3]).shape == ("batch", 3)
    assert one.opset_imports["com.example"] == 1
    assert g.node("ai.onnx.ml::Binarizer", g.tensor("v"), threshold=0.5).dtype == "float32"


@pytest.mark.parametrize(("name", "hint"), [("T", "g.Transpose"), ("reshape", "g.Reshape"), ("mean", "g.ReduceMean")])
def test_methods_of_other_tensors(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(Operators(model()).tensor("x"), name)


def test_an_array_on_the_left() -> None:
    g = Operators(model())
    v = g.tensor("v")
    ones = np.ones(4, np.float32)
    assert [one.dtype for one in (ones + v, ones * v, ones < v)] == ["float32", "float32", "bool"]
    assert (np.ones((3, 1), np.float32) - v[0]).shape == (3, 4)
    assert [value.name for value in g.made[0].inputs if value is not None] == ["add.A", "v"]


def test_a_domain_is_imported_at_the_newest_version_that_has_the_operator() -> None:
    one = model()
    g = Operators(one)
    trees = {
        "nodes_treeids": [0], "nodes_nodeids": [0], "nodes_featureids": [0], "nodes_modes": ["LEAF"],
        "nodes_values": [0.0], "nodes_truenodeids": [0], "nodes_falsenodeids": [0], "target_treeids": [0],
        "target_nodeids": [0], "target_ids": [0], "target_weights": [1.0],
    }  # fmt: skip
    assert g.node("ai.onnx.ml::TreeEnsembleRegressor", g.tensor("v"), **trees).dtype == "float32"
    assert one.opset_imports["ai.onnx.ml"] == 4
    with pytest.raises(OnnxsmithError):
        g.node("com.example::Odd", object())
    assert "com.example" not in one.opset_imports


def test_a_function_gets_constant_nodes() -> None:
    one = from_text(
        '<ir_version: 10, opset_import: ["": 21, "own": 1]> g (float[2] x) => (float[2] y) { y = own.twice(x) }'
        '<domain: "own", opset_import: ["": 21]> twice (a) => (b) { b = Add(a, a) }'
    )
    (function,) = one.functions.values()
    (add,) = list(function)
    g = Operators(one, before=add)
    add.replace_input_with(1, (g.tensor("a") * 2.0).value)
    assert [node.op_type for node in function] == ["Constant", "Mul", "Add"]
    assert not check(one)


REFUSED: dict[str, tuple[Callable[[Operators, Any], Any], str, str]] = {
    "unknown operator": (lambda g, x: g.Covn(x), "build/operator", "write Conv"),
    "later operator": (lambda g, x: g.Attention(x, x, x), "build/operator", "opset=23"),
    "deprecated operator": (lambda g, x: g.Upsample(x), "build/operator", "g.Resize"),
    "missing operand": (lambda g, x: g.Conv(x), "build/operands", "W=…"),
    "too many operands": (lambda g, x: g.Softmax(x, 1), "build/operands", "axis=1"),
    "an operand twice": (lambda g, x: g.Add(x, x, B=x), "build/operands", "leave B=… out"),
    "no operand": (lambda g, x: g.Concat(axis=0), "build/operands", "g.Concat"),
    "an object": (lambda g, x: g.Add(x, object()), "build/operands", "numpy"),
    "another dtype": (lambda g, x: g.Add(x, np.zeros(3)), "build/type", 'astype("float32")'),
    "a tensor of another dtype": (lambda g, x: g.Add(x, g.tensor("i")), "build/type", 'g.Cast(i, to="float32")'),
    "a dtype that is not allowed": (lambda g, x: g.Not(x), "build/type", "bool"),
    "/ of integers": (lambda g, x: g.tensor("i") / 2, "build/type", "//"),
    "** of an integer with a negative exponent": (lambda g, x: g.tensor("i") ** -1, "build/type", 'float32") ** b'),
    "** of an integer with a negative array": (
        lambda g, x: g.tensor("i") ** np.array([2, -1]), "build/type", 'float32") ** b',
    ),
    "** with an unknown integer": (lambda g, x: 2 ** g.tensor("i"), "build/type", "g.Pow(a, b)"),
    "** of an integer with a float": (lambda g, x: g.tensor("i") ** 0.5, "build/constant", "g.Cast"),
    "** of an integer with a whole float": (lambda g, x: g.tensor("i") ** 2.0, "build/constant", "g.Cast"),
    "** of integers and a tensor of floats": (lambda g, x: g.tensor("i") ** x, "build/type", 'Cast(i, to="float32")'),
    "** of an array and a tensor of floats": (lambda g, x: np.array([2, 3]) ** x, "build/type", 'astype("float32")'),
    "** with an array of another dtype": (lambda g, x: x ** np.array(0.5), "build/type", 'astype("float32")'),
    "// of an integer with a float": (lambda g, x: g.tensor("i") // x, "build/type", 'g.Cast(i, to="float32")'),
    "% of a float with an integer": (lambda g, x: x % g.tensor("i"), "build/type", 'g.Cast(i, to="float32")'),
    "a text": (lambda g, x: x + "a", "build/constant", "float32"),
    "a float as an integer": (lambda g, x: g.tensor("i") * 1.5, "build/constant", "g.Cast"),
    "too large": (lambda g, x: g.Cast(x, to="float16") * 1e6, "build/constant", "smaller"),
    "out of range": (lambda g, x: g.Cast(x, to="uint8") + 300, "build/constant", "0 to 255"),
    "ragged": (lambda g, x: g.Add(x, [[1, 2], [3]]), "build/constant", "one length"),
    "mixed list": (lambda g, x: g.Add(x, [1, "a"]), "build/constant", "one kind"),
    "unknown attribute": (lambda g, x: g.LeakyRelu(x, alhpa=0.1), "build/attribute", "alpha=…"),
    "missing attribute": (lambda g, x: g.MaxPool(x), "build/attribute", "kernel_shape=…"),
    "an attribute's type": (lambda g, x: g.MaxPool(x, kernel_shape=3), "build/attribute", "[3, 3]"),
    "an attribute's choice": (
        lambda g, x: g.MaxPool(x, kernel_shape=[3, 3], auto_pad="same"), "build/attribute", "'SAME_UPPER'",
    ),
    "a float beyond float32": (lambda g, x: g.LeakyRelu(x, alpha=1e300), "build/attribute", "alpha=1.0"),
    "a tensor as an attribute": (lambda g, x: g.Softmax(x, axis=x), "build/attribute", "Python value"),
    "a dimension's name": (lambda g, x: g.Reshape(x, [x.shape[0], -1]), "build/constant", "g.Shape(x)[axis]"),
    "torch's name": (lambda g, x: g.Softmax(x, dim=1), "build/attribute", "axis=…"),
    "all results as one operand": (lambda g, x: g.Relu(g.TopK(x, 3)), "build/operands", "take one"),
    "a function of numpy": (lambda g, x: np.exp(x), "build/symbolic", "g.Exp"),
    "a Python number without a dtype": (
        lambda g, x: g.QuantizeLinear(x, 0.1, 128), "build/type", 'g.constant(128, "uint8")',
    ),
    "an impossible shape": (lambda g, x: g.Reshape(x, [5, 7]), "build/shape", "-1"),
    "an unknown dtype": (lambda g, x: g.Cast(x, to="flaot32"), "build/dtype", "'float32'"),
    "a truth value": (lambda g, x: bool(x), "build/symbolic", "g.Where"),
    "iteration": (lambda g, x: list(x), "build/symbolic", "g.Split"),
    "numpy": (lambda g, x: np.asarray(x), "build/symbolic", "g.Exp"),
    "an index": (lambda g, x: x[:, 3], "build/index", "smaller"),
    "too many indices": (lambda g, x: x[0, 0, 0, 0, 0], "build/index", "leave"),
    "a mask": (lambda g, x: x[x > 0], "build/index", "g.Compress"),
    "a taken name": (lambda g, x: g.Relu(x, name="y"), "build/name", "'y_1'"),
    "a taken result name": (lambda g, x: g.Relu(x, outputs=["y"]), "build/name", "'y_1'"),
    "an unknown tensor": (lambda g, x: g.Relu(g.tensor("z")), "build/tensor", "inspect"),
    "too many results": (lambda g, x: g.Relu(x, outputs=2), "build/outputs", "outputs=1"),
    "an unknown number": (lambda g, x: g.Split(x, axis=1), "build/outputs", "outputs=2"),
    "shapes": (lambda g, x: g.MatMul(x, np.zeros((3, 4), np.float32)), "build/shape", "weight"),
    "shapes in the second of two": (lambda g, x: (x * 2) @ np.zeros((4, 8), np.float32), "build/shape", "perm=[1, 0]"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    one = model()
    g = Operators(one)
    x = g.tensor("x")
    call, id_, fix = REFUSED[case]
    before = size(one)
    with pytest.raises(OnnxsmithError) as refused:
        call(g, x)
    assert refused.value.problem.id == id_
    assert fix in refused.value.problem.fix
    assert "test_operator_methods.py:" in refused.value.problem.where
    made = len(g.made)
    assert size(one) == (before[0] + made, size(one)[1])
    assert all(value.uses() for value in one.graph.initializers.values())


def test_a_tensor_of_another_model() -> None:
    x = Operators(model()).tensor("x")
    with pytest.raises(OnnxsmithError, match="another model"):
        Operators(model()).Relu(x)


def test_the_names_of_a_refused_call_are_free_again() -> None:
    g = Operators(model())
    with pytest.raises(OnnxsmithError):
        g.MatMul(g.tensor("x"), np.zeros((3, 4), np.float32), name="mine")
    assert g.Relu(g.tensor("x"), name="mine").name == "mine"


def test_a_place_in_a_branch_reads_what_is_around_it() -> None:
    one = from_text(
        head(21) + "g (float[2] x, bool c) => (float[2] y) { a = Neg(x) y = If(c) <"
        "then_branch = t () => (float[2] p) { p = Abs(a) }, else_branch = e () => (float[2] q) { q = Relu(a) }> }"
    )
    branch = next(node for node in one.graph if node.op_type == "If").attributes["then_branch"].as_graph()
    (inner,) = list(branch)
    g = Operators(one, before=inner)
    inner.replace_input_with(0, (g.tensor("a") + g.tensor("x") * 3.0).value)
    assert [node.op_type for node in branch] == ["Mul", "Add", "Abs"]
    assert not check(one)
    with pytest.raises(OnnxsmithError, match="there is no tensor"):
        g.Relu(g.tensor("q"))
    with pytest.raises(OnnxsmithError, match="there is no tensor"):
        Operators(one).tensor("p")
