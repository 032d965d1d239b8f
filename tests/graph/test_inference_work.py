"""Shape inference does work that is linear in the file: function calls are counted, so that no clock is asked."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.optimizer.simplification_rounds import simplified


def work(does: Callable[[], object]) -> int:
    """How many functions are called, those of C included."""
    calls = 0

    def count(_: FrameType, event: str, __: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        does()
    finally:
        sys.setprofile(None)
    return calls


def model(nodes: list[ir.Node], inputs: list[ir.Value], arrays: dict[ir.Value, np.ndarray[Any, Any]]) -> ir.Model:
    """The model of these nodes; the last one's first result is its output."""
    for index, node in enumerate(nodes):
        for place, value in enumerate(node.outputs):
            value.name = f"v{index}_{place}"
    for value, array in arrays.items():
        value.const_value = ir.tensor(array, name=value.name)
    graph = ir.Graph(
        inputs, [nodes[-1].outputs[0]], nodes=nodes, initializers=list(arrays), opset_imports={"": 18}, name="g"
    )
    return ir.Model(graph, ir_version=9)


def concat_of_constants(size: int) -> ir.Model:
    a, b = ir.Value(name="a"), ir.Value(name="b")
    array = np.zeros(size, np.float32)
    return model([ir.node("Concat", [a, b], {"axis": 0})], [], {a: array, b: array})


def doublings(count: int, start: str) -> ir.Model:
    x = ir.Value(name="x", shape=ir.Shape(["n", "m"]), type=ir.TensorType(ir.DataType.FLOAT))
    held = ir.Value(name="held")
    nodes = [ir.node("Shape", [x])] if start == "shape" else []
    arrays = {held: np.array([1, 2, 3])} if start == "constant" else {}
    value = nodes[0].outputs[0] if nodes else held if arrays else x
    for _ in range(count):
        nodes.append(ir.node("Concat", [value, value], {"axis": 0}))
        value = nodes[-1].outputs[0]
    nodes.append(ir.node("Shape", [value]))
    return model(nodes, [x], arrays)


def parts(count: int) -> ir.Model:
    x = ir.Value(name="x", shape=ir.Shape([count, 2]), type=ir.TensorType(ir.DataType.FLOAT))
    return model([ir.node("Split", [x], {"axis": 0, "num_outputs": count}, num_outputs=count)], [x], {})


_CALLS = itertools.count()


def concat_of_sizes(count: int) -> ir.Model:
    call = next(_CALLS)  # names that no model had before: sums of others are remembered
    inputs = [
        ir.Value(name=f"x{n}", shape=ir.Shape([f"n{call}_{n}"]), type=ir.TensorType(ir.DataType.FLOAT))
        for n in range(count)
    ]
    return model([ir.node("Concat", inputs, {"axis": 0})], inputs, {})


@pytest.mark.parametrize(
    ("make", "size", "most"),
    [(concat_of_constants, 50_000, 1.1), (parts, 500, 2.2), (concat_of_sizes, 200, 2.2)],
)
def test_twice_the_file_is_no_more_than_twice_the_work(make: Callable[[int], ir.Model], size: int, most: float) -> None:
    Inference(make(size))  # what is imported and remembered by the first is no part of it
    once, twice = work(lambda: Inference(make(size))), work(lambda: Inference(make(2 * size)))
    assert twice <= most * once + 500


@pytest.mark.parametrize("start", ["constant", "shape", "input"])
def test_a_vector_may_be_doubled_many_times(start: str) -> None:
    Inference(doublings(3, start))
    assert work(lambda: Inference(doublings(40, start))) <= 3 * work(lambda: Inference(doublings(20, start)))
    found, _ = simplified(doublings(40, start))
    assert sum(len(node.inputs) for node in found.graph) <= 2 * 42


def test_parts_beyond_those_that_are_followed_have_their_sizes() -> None:
    x = ir.Value(name="x", shape=ir.Shape([300, 2]), type=ir.TensorType(ir.DataType.FLOAT))
    sizes = ir.Value(name="sizes")
    split = ir.node("Split", [x, sizes], {"axis": 0}, num_outputs=100)
    made = model([split], [x], {sizes: np.array([1, 5] * 50)})
    Inference(made)
    assert [value.shape for value in split.outputs[:2]] == [ir.Shape([1, 2]), ir.Shape([5, 2])]
