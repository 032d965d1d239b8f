"""Models of 100 to 1,000 nodes with one failure planted in each: where, and of which kind, follows from a seed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Builder:
    """Nodes in order, with names as an exporter gives them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self._count = 0

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """The first output of a new node."""
        self._count += 1
        names = [f"/model/{op}_{self._count}_output_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name=f"/model/{op}_{self._count}", **attributes))
        return names[0]

    def weight(self, *shape: int) -> str:
        return self.constant(self.rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:]))))

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        self._count += 1
        name = f"onnx::weight_{self._count}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def model(self, inputs: dict[str, list[Any]], outputs: list[str], opset: int = 18) -> onnx.ModelProto:
        ports = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()]
        results = [onnx.ValueInfoProto(name=name) for name in outputs]
        graph = helper.make_graph(self.nodes, "main_graph", ports, results, self.weights)
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


Plant = Callable[[Builder, str], str]
"""Puts the failure after a float tensor, and gives the tensor that the model goes on with, of the same shape."""


def cnn(b: Builder, size: int, at: float, plant: Plant) -> onnx.ModelProto:
    """Residual blocks of Conv, BatchNormalization and Relu, the channels twice as many every third of the way."""
    x, channels, planted = "image", 8, False
    x = b.add("Conv", x, b.weight(channels, 3, 3, 3), pads=[1, 1, 1, 1])
    stage = 0
    while len(b.nodes) < size - 4:
        if len(b.nodes) > size * (stage + 1) / 3 and stage < 2:
            stage, channels = stage + 1, channels * 2
            x = b.add("Conv", x, b.weight(channels, channels // 2, 3, 3), pads=[1, 1, 1, 1], strides=[2, 2])
        if not planted and len(b.nodes) >= size * at:
            x, planted = plant(b, x), True
        y = b.add("Conv", x, b.weight(channels, channels, 3, 3), pads=[1, 1, 1, 1])
        norm = [b.constant(np.ones(channels)), b.constant(np.zeros(channels))]
        y = b.add("BatchNormalization", y, *norm, b.constant(np.zeros(channels)), b.constant(np.ones(channels)))
        y = b.add("Relu", y)
        x = b.add("Mul", b.add("Add", x, y), b.constant(0.7))
    x = b.add("Flatten", b.add("GlobalAveragePool", x))
    return b.model({"image": ["batch", 3, 16, 16]}, [b.add("Gemm", x, b.weight(channels, 10))])


def transformer(b: Builder, size: int, at: float, plant: Plant) -> onnx.ModelProto:
    """Layers of attention and a feed-forward net, each with its LayerNormalization."""
    width, heads, planted = 16, 2, False
    x = "hidden"
    while len(b.nodes) < size - 2:
        if not planted and len(b.nodes) >= size * at:
            x, planted = plant(b, x), True
        n = b.add("LayerNormalization", x, b.constant(np.ones(width)), b.constant(np.zeros(width)))
        parts = []
        for _ in range(3):
            p = b.add("Add", b.add("MatMul", n, b.weight(width, width)), b.weight(width))
            p = b.add("Reshape", p, b.constant([0, -1, heads, width // heads], np.int64))
            parts.append(b.add("Transpose", p, perm=[0, 2, 1, 3]))
        q, k, v = parts
        scores = b.add("MatMul", q, b.add("Transpose", k, perm=[0, 1, 3, 2]))
        scores = b.add("Softmax", b.add("Div", scores, b.constant(np.sqrt(width / heads))))
        y = b.add("Transpose", b.add("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = b.add("MatMul", b.add("Reshape", y, b.constant([0, -1, width], np.int64)), b.weight(width, width))
        x = b.add("Add", x, y)
        n = b.add("LayerNormalization", x, b.constant(np.ones(width)), b.constant(np.zeros(width)))
        h = b.add("MatMul", n, b.weight(width, 4 * width))
        h = b.add("Mul", h, b.add("Sigmoid", h))
        x = b.add("Add", x, b.add("MatMul", h, b.weight(4 * width, width)))
    return b.model({"hidden": ["batch", "tokens", width]}, [b.add("MatMul", x, b.weight(width, 20))])


def recurrent(b: Builder, size: int, at: float, plant: Plant) -> onnx.ModelProto:
    """LSTM and GRU layers with gates and shortcuts between them."""
    x, width, planted = "sequence", 8, False
    while len(b.nodes) < size - 2:
        if not planted and len(b.nodes) >= size * at:
            x, planted = plant(b, x), True
        kind, gates = ("LSTM", 4) if len(b.nodes) % 2 else ("GRU", 3)
        weights = [b.weight(1, gates * width, width), b.weight(1, gates * width, width)]
        y = b.add(kind, x, *weights, hidden_size=width)
        y = b.add("Squeeze", y, b.constant([1], np.int64))
        gate = b.add("Sigmoid", b.add("MatMul", y, b.weight(width, width)))
        y = b.add("Mul", y, gate)
        x = b.add("Tanh", b.add("Add", x, y))
    return b.model({"sequence": [5, "batch", width]}, [b.add("ReduceMean", x, b.constant([0], np.int64))])


def loops(b: Builder, size: int, at: float, plant: Plant) -> onnx.ModelProto:
    """Loops with a state and a scanned output, and Ifs whose branches read what is outside, one after another. The
    failure stands in the body of a loop."""
    x, width, planted = "x", 8, False
    while len(b.nodes) < size - 2:
        here = not planted and len(b.nodes) >= size * at
        planted = planted or here
        looped = len(b.nodes) % 2 or here
        x = _loop(b, x, width, plant if here else None) if looped else _choice(b, x, width)
        for _ in range(3):
            x = b.add("Tanh", b.add("Add", b.add("MatMul", x, b.weight(width, width)), b.weight(width)))
    return b.model({"x": ["batch", width]}, [b.add("Softmax", x)])


def _loop(b: Builder, x: str, width: int, plant: Plant | None) -> str:
    inner = Builder(int(b.rng.integers(1000)))
    inner._count = b._count + 1000
    y = inner.add("Tanh", inner.add("MatMul", "state", inner.weight(width, width)))
    y = plant(inner, y) if plant else y
    y = inner.add("Add", y, x)
    scan = inner.add("ReduceSum", y, keepdims=0)
    go = inner.add("Identity", "go")
    b._count = inner._count + 1
    ports = [helper.make_tensor_value_info("step", INT64, []), helper.make_tensor_value_info("go", BOOL, [])]
    ports.append(helper.make_tensor_value_info("state", FLOAT, ["batch", width]))
    results = [helper.make_tensor_value_info(go, BOOL, []), helper.make_tensor_value_info(y, FLOAT, None)]
    results.append(helper.make_tensor_value_info(scan, FLOAT, None))
    body = helper.make_graph(inner.nodes, "body", ports, results, inner.weights)
    return b.add("Loop", b.constant(3, np.int64), b.constant(True, bool), x, outputs=2, body=body)


def _choice(b: Builder, x: str, width: int) -> str:
    question = b.add("Greater", b.add("ReduceSum", x, keepdims=0), b.constant(0.0))
    branches = {}
    for name, op in (("then_branch", "Sin"), ("else_branch", "Cos")):
        inner = Builder(int(b.rng.integers(1000)))
        inner._count = b._count + 500
        y = inner.add("Mul", inner.add(op, x), inner.weight(width))
        b._count = inner._count + 1
        branches[name] = helper.make_graph(
            inner.nodes, name, [], [helper.make_tensor_value_info(y, FLOAT, None)], inner.weights
        )
    return b.add("If", question, **branches)


def detector(b: Builder, size: int, at: float, plant: Plant) -> onnx.ModelProto:
    """A pyramid of three scales with heads for boxes and scores; the best are taken by TopK and gathered."""
    x, channels, planted = "image", 8, False
    x = b.add("Conv", x, b.weight(channels, 3, 3, 3), pads=[1, 1, 1, 1])
    levels = []
    for level in range(3):
        while len(b.nodes) < size * (level + 1) * 0.27:
            if not planted and len(b.nodes) >= size * at:
                x, planted = plant(b, x), True
            y = b.add("Conv", x, b.weight(channels, channels, 3, 3), pads=[1, 1, 1, 1])
            x = b.add("Add", x, b.add("Mul", y, b.add("Sigmoid", y)))
        levels.append(x)
        x = b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    boxes, scores = [], []
    for level in levels:
        y = level
        while len(b.nodes) < size * 0.85:
            y = b.add("Relu", b.add("Conv", y, b.weight(channels, channels, 1, 1)))
        for kind, width in ((boxes, 4), (scores, 1)):
            z = b.add("Transpose", b.add("Conv", y, b.weight(width, channels, 1, 1)), perm=[0, 2, 3, 1])
            kind.append(b.add("Reshape", z, b.constant([0, -1, width], np.int64)))
    every = b.add("Sigmoid", b.add("Squeeze", b.add("Concat", *scores, axis=1), b.constant([2], np.int64)))
    if not planted:
        every = plant(b, every)
    b.add("TopK", every, b.constant([5], np.int64), outputs=2, axis=1)
    best, order = b.nodes[-1].output
    index = b.add("Unsqueeze", order, b.constant([2], np.int64))
    index = b.add("Expand", index, b.constant([1, 1, 4], np.int64))
    found = b.add("GatherElements", b.add("Concat", *boxes, axis=1), index, axis=1)
    return b.model({"image": [1, 3, 16, 16]}, [found, best])


# What is planted


def unknown_operator(b: Builder, x: str) -> str:
    return b.add("Geluu", x)


def mixed_types(b: Builder, x: str) -> str:
    return b.add("Add", x, b.constant([1], np.int64))


def unknown_attribute(b: Builder, x: str) -> str:
    return b.add("Softmax", x, axes=[1])


def no_kernel(b: Builder, x: str) -> str:
    half = b.add("Cast", x, to=TensorProto.BFLOAT16)
    return b.add("Cast", b.add("Erf", half), to=FLOAT)


def bad_reshape(b: Builder, x: str) -> str:
    return b.add("Reshape", x, b.constant([7, 13, 1], np.int64))


def bad_index(b: Builder, x: str) -> str:
    """An index that depends on what is computed, and lies outside."""
    high = b.add("Cast", b.add("Add", b.add("Mul", x, b.constant(0.0)), b.constant(99.0)), to=INT64)
    flat = b.add("Gather", b.constant(np.arange(5)), high)
    return b.add("Add", x, flat)


def division(b: Builder, x: str) -> str:
    """The smallest 64-bit integer over -1: x86 traps, and onnxruntime does not look."""
    whole = b.add("Cast", b.add("Mul", x, b.constant(0.0)), to=INT64)
    low = b.add("Sub", whole, b.constant(-(2**63), np.int64))
    low = b.add("Mul", low, b.constant(1, np.int64))
    rest = b.add("Div", low, b.add("Sub", whole, b.constant(1, np.int64)))
    return b.add("Add", x, b.add("Cast", rest, to=FLOAT))


def lost_nan(op: str) -> Plant:
    """One element becomes NaN; onnxruntime's ReduceMax and ReduceMin lose it, the specification's do not."""

    def plant(b: Builder, x: str) -> str:
        least = b.add("ReduceMin", x, keepdims=0)
        root = b.add("Sqrt", b.add("Sub", b.add("Sub", x, least), b.constant(1e-9)))
        return b.add("Add", x, b.add(op, root, keepdims=1))

    return plant


def suppression(b: Builder, x: str) -> str:
    """Without thresholds, which may be left out; the reference evaluator refuses that."""
    boxes = b.add("Reshape", x, b.constant([1, -1, 4], np.int64))
    scores = b.add("Transpose", b.add("ReduceMean", boxes, b.constant([2], np.int64)), perm=[0, 2, 1])
    best = b.add("NonMaxSuppression", boxes, scores, b.constant(3, np.int64))
    return b.add("Add", x, b.add("Cast", b.add("ReduceSum", best, keepdims=0), to=FLOAT))


def negative_power(b: Builder, x: str) -> str:
    whole = b.add("Cast", b.add("Mul", x, b.constant(3.0)), to=INT64)
    square = b.add("Add", b.add("Mul", whole, whole), b.constant(2, np.int64))
    return b.add("Add", x, b.add("Cast", b.add("Pow", square, b.constant(-1, np.int64)), to=FLOAT))


def endless(b: Builder, x: str) -> str:
    """A loop whose condition never becomes false."""
    ports = [helper.make_tensor_value_info("turn", INT64, []), helper.make_tensor_value_info("more", BOOL, [])]
    ports.append(helper.make_tensor_value_info("value", FLOAT, None))
    nodes = [
        helper.make_node("Tanh", ["value"], ["bounded"]),
        helper.make_node("Mul", ["bounded", "bounded"], ["squared"]),
        helper.make_node("Sub", ["bounded", "squared"], ["next"]),
        helper.make_node("Identity", ["more"], ["again"]),
    ]
    results = [helper.make_tensor_value_info("again", BOOL, []), helper.make_tensor_value_info("next", FLOAT, None)]
    body = helper.make_graph(nodes, "endless", ports, results)
    return b.add("Loop", "", b.constant(True, bool), x, body=body)


def huge_product(b: Builder, x: str) -> str:
    wide = b.add("ConstantOfShape", b.constant([9000, 9000], np.int64))
    product = b.add("MatMul", wide, wide)
    return b.add("Add", x, b.add("ReduceMean", product, keepdims=0))


def erf_pair(b: Builder, x: str) -> str:
    """One half of a pair; the other half is an operator of the family."""
    return b.add("Erf", x)


def reaches(first: str, second: str) -> Callable[[Path, Any], bool]:
    """Fails when a result of a `first` flows into a `second`, however far away."""

    def check(path: Path, feeds: Any) -> bool:
        model = onnx.load(path, load_external_data=False)
        tainted: set[str] = set()
        for node in model.graph.node:
            if node.op_type == second and tainted & set(node.input):
                return True
            if node.op_type == first or tainted & set(node.input):
                tainted |= set(node.output)
        return False

    return check


@dataclass(frozen=True)
class Planted:
    """One model and the check that it fails. `least` are the nodes that its makers know to be enough."""

    name: str
    family: Callable[[Builder, int, float, Plant], onnx.ModelProto]
    size: int
    at: float
    plant: Plant
    check: Any
    least: int
    options: dict[str, Any] = field(default_factory=dict)

    def model(self) -> onnx.ModelProto:
        seed = sum(self.name.encode())
        return self.family(Builder(seed), self.size, self.at, self.plant)


_CHECKER = Path(__file__).parent / "own_check.py"
_OWN = f'command {sys.executable} "{_CHECKER}" {{model}}'
_SAVED = f'command {sys.executable} "{_CHECKER}" {{model}} {{inputs}}'

PLANTED = (
    Planted("cnn-unknown-operator", cnn, 300, 0.5, unknown_operator, "refuses onnxruntime", 1),
    Planted("transformer-mixed-types", transformer, 800, 0.7, mixed_types, "refuses onnxruntime", 1),
    Planted("detector-unknown-attribute", detector, 400, 0.3, unknown_attribute, "refuses onnxruntime", 1),
    Planted("recurrent-no-kernel", recurrent, 250, 0.6, no_kernel, "refuses onnxruntime", 1),
    Planted("transformer-bad-reshape", transformer, 300, 0.5, bad_reshape, "refuses onnxruntime", 1),
    Planted("cnn-bad-index", cnn, 1000, 0.8, bad_index, "refuses onnxruntime", 1),
    Planted("loops-mixed-types", loops, 200, 0.5, mixed_types, "refuses onnxruntime", 1),
    Planted("cnn-crash", cnn, 500, 0.4, division, "crashes onnxruntime", 1),
    Planted("transformer-crash", transformer, 1000, 0.5, division, "crashes onnxruntime", 1),
    Planted("loops-crash", loops, 150, 0.5, division, "crashes onnxruntime", 1),
    Planted("cnn-differs", cnn, 200, 0.5, lost_nan("ReduceMax"), "differs onnxruntime reference", 1),
    Planted("transformer-differs", transformer, 400, 0.6, lost_nan("ReduceMin"), "differs onnxruntime reference", 1),
    Planted("detector-differs", detector, 150, 0.2, suppression, "differs onnxruntime reference", 1),
    Planted("recurrent-differs", recurrent, 120, 0.5, negative_power, "differs onnxruntime reference", 1),
    Planted("transformer-endless", transformer, 300, 0.5, endless, "slow onnxruntime 2", 2),
    Planted("detector-huge", detector, 250, 0.9, huge_product, "slow onnxruntime 2", 2),
    Planted("recurrent-command", recurrent, 300, 0.4, lost_nan("ReduceMax"), _SAVED, 2),
    Planted("cnn-command", cnn, 600, 0.2, erf_pair, _OWN, 2),
    Planted("transformer-pair", transformer, 600, 0.3, erf_pair, reaches("Erf", "Softmax"), 2),
    Planted("cnn-pair", cnn, 900, 0.1, erf_pair, reaches("Erf", "Gemm"), 2),
)
"""Twenty models; the last four fail for two nodes far apart, or only by a check of their own."""
