"""Small constants that are computed without a runtime have the bits that a runtime gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.optimizer import constant_evaluation
from onnxsmith.runtimes.base import Options, get

FLOATS = [0.0, -0.0, 1.0, -1.5, 2.5, 3.5, 1 / 3, -2 / 7, 1e-3, 12345.678, 1e30, -1e30, 1e-30, 1e-42, 7.0, 0.1]
NUMBERS: dict[str, Any] = {
    "f": np.array(FLOATS, np.float32),
    "d": np.array(FLOATS, np.float64),
    "l": np.array([0, 1, -1, 2**24 + 1, -(2**24) - 3, 2**30, 77, -77], np.int64),
    "i": np.array([0, 1, -1, 2**24 + 1, -(2**24) - 3, 2**30, 77, -77], np.int32),
    "?": np.array([True, False]),
}
DTYPES = {"f": ir.DataType.FLOAT, "d": ir.DataType.DOUBLE, "l": ir.DataType.INT64, "i": ir.DataType.INT32}
DTYPES["?"] = ir.DataType.BOOL


def made(op_type: str, arrays: list[Any], dtype: ir.DataType, **attributes: Any) -> tuple[ir.Node, list[ir.Tensor]]:
    tensors = [ir.Tensor(array, name=f"c{index}") for index, array in enumerate(arrays)]
    values = [
        ir.Value(name=tensor.name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=tensor.shape)
        for tensor in tensors
    ]
    node = ir.node(op_type, values, attributes)
    node.outputs[0].name, node.outputs[0].type = "y", ir.TensorType(dtype)
    return node, tensors


def run(node: ir.Node) -> Any:
    """What onnxruntime gives without its optimisations."""
    values = [value for value in node.inputs if value is not None]
    graph = ir.Graph([], node.outputs, nodes=[node], initializers=values, opset_imports={"": 20}, name="g")
    with get("onnxruntime").prepare(ir.Model(graph, ir_version=9), Options(optimization="disable")) as session:
        return session.run({})["y"]


def same(node: ir.Node, tensors: list[ir.Tensor]) -> bool:
    found = constant_evaluation.computed(node, tensors)
    assert found is not None
    theirs = np.asarray(run(node))
    ours = found.numpy()
    return (ours.dtype, ours.shape, ours.tobytes()) == (theirs.dtype, theirs.shape, theirs.tobytes())


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("kind", ["f", "d"])
def test_arithmetic(op_type: str, kind: str) -> None:
    column, row = NUMBERS[kind][:, None], NUMBERS[kind][[2, 3, 4, 6, 7, 8, 9, 14, 15]]
    assert same(*made(op_type, [column[:10], row], DTYPES[kind]))


@pytest.mark.parametrize("kind", ["f", "d"])
def test_roots(kind: str) -> None:
    assert same(*made("Sqrt", [np.abs(NUMBERS[kind])], DTYPES[kind]))


@pytest.mark.parametrize("to", "fdli?")
@pytest.mark.parametrize("kind", "fdli?")
def test_casts(kind: str, to: str) -> None:
    numbers = NUMBERS[kind]
    numbers = numbers[np.abs(numbers) < 2**30] if kind != "?" else numbers
    assert same(*made("Cast", [numbers], DTYPES[to], to=int(DTYPES[to])))


def test_expansion() -> None:
    assert same(*made("Expand", [np.float32([[1], [2]]), np.array([3, 1, 4])], ir.DataType.FLOAT))
    assert same(*made("Expand", [np.float32(5), np.array([2, 2])], ir.DataType.FLOAT))


@pytest.mark.parametrize(
    ("op_type", "arrays", "dtype"),
    [
        ("Exp", [np.float32([1])], ir.DataType.FLOAT),  # no operator with one answer
        ("Sqrt", [np.float32([-1])], ir.DataType.FLOAT),  # no number
        ("Div", [np.float32([1]), np.float32([0])], ir.DataType.FLOAT),  # infinity
        ("Add", [np.array([2**62]), np.array([2**62])], ir.DataType.INT64),  # may overflow
        ("Add", [np.float32([1, 2]), np.float32([1, 2, 3])], ir.DataType.FLOAT),  # fails in a runtime
        ("Add", [np.float32([1]), np.float64([1])], ir.DataType.FLOAT),
        ("Cast", [np.float32([1e20])], ir.DataType.INT64),  # out of range
        ("Cast", [np.float32([np.nan])], ir.DataType.INT32),
        ("Cast", [np.float64([1e300])], ir.DataType.FLOAT),
        ("Sqrt", [np.float16([4])], ir.DataType.FLOAT16),
        ("Sqrt", [np.ones(1 << 15, np.float32)], ir.DataType.FLOAT),  # large
        ("Expand", [np.float32([1]), np.array([1 << 40])], ir.DataType.FLOAT),
        ("Expand", [np.float32([1, 2]), np.array([3])], ir.DataType.FLOAT),
    ],
)
def test_what_is_left_to_a_runtime(op_type: str, arrays: list[Any], dtype: ir.DataType) -> None:
    assert constant_evaluation.computed(*made(op_type, arrays, dtype)) is None


def test_an_attribute_of_an_older_opset_is_left_to_a_runtime() -> None:
    arrays = [np.float32([1]), np.float32([2])]
    assert constant_evaluation.computed(*made("Add", arrays, ir.DataType.FLOAT, broadcast=1)) is None
