"""Networks whose time is measured, and changes that make them slower for real, for `benchmarks/gate.py`.

Two networks of about a third of a millisecond a run: six dense layers, and three convolutions. The slower forms compute
the same. Weights in float16 with Casts are not among them: onnxruntime folds the Casts, and the time stays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DRAW = np.random.default_rng(0)
WIDTH, LAYERS, BATCH = 256, 6, 32
CHANNELS, CONVOLUTIONS, PIXELS = 16, 3, 48


def drawn(*shape: int) -> np.ndarray:
    """Weights that keep the size of what goes through them."""
    return (DRAW.standard_normal(shape) * (2 / np.prod(shape[1:] if len(shape) > 2 else shape[:1])) ** 0.5).astype(
        np.float32
    )


def model(nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], shape: list[int]) -> onnx.ModelProto:
    """A model from `x` to `y`, both of one shape."""
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def dense() -> onnx.ModelProto:
    """Six dense layers with Relu."""
    nodes, weights, last = [], {}, "x"
    for at in range(LAYERS):
        end = "y" if at == LAYERS - 1 else f"r{at}"
        weights[f"w{at}"] = drawn(WIDTH, WIDTH)
        nodes += [helper.make_node("MatMul", [last, f"w{at}"], [f"m{at}"]), helper.make_node("Relu", [f"m{at}"], [end])]
        last = end
    return model(nodes, weights, [BATCH, WIDTH])


def pixels() -> onnx.ModelProto:
    """Three convolutions of 3 by 3 with Relu."""
    nodes, weights, last = [], {}, "x"
    for at in range(CONVOLUTIONS):
        end = "y" if at == CONVOLUTIONS - 1 else f"r{at}"
        weights[f"w{at}"] = drawn(CHANNELS, CHANNELS, 3, 3)
        conv = helper.make_node("Conv", [last, f"w{at}"], [f"c{at}"], pads=[1, 1, 1, 1])
        nodes += [conv, helper.make_node("Relu", [f"c{at}"], [end])]
        last = end
    return model(nodes, weights, [1, CHANNELS, PIXELS, PIXELS])


def replaced(graph: onnx.GraphProto, name: str, values: np.ndarray) -> None:
    """Gives an initializer other values."""
    for one in graph.initializer:
        if one.name == name:
            one.CopyFrom(numpy_helper.from_array(values, name))


def values(graph: onnx.GraphProto, name: str) -> np.ndarray:
    """The values of an initializer."""
    return next(numpy_helper.to_array(one) for one in graph.initializer if one.name == name)


def more_work(made: onnx.ModelProto) -> None:
    """All layers run once more, and their result counts zero times."""
    graph = made.graph
    again = []
    for node in graph.node:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for names in (copy.input, copy.output):
            for at, name in enumerate(names):
                names[at] = name if name.startswith("w") else f"again_{name}"
        again.append(copy)
    again[0].input[0] = "first"
    graph.node[-1].output[0] = "first"
    graph.initializer.append(numpy_helper.from_array(np.float32(0), "zero"))
    graph.node.extend(again)
    graph.node.append(helper.make_node("Mul", ["again_y", "zero"], ["nothing"]))
    graph.node.append(helper.make_node("Add", ["first", "nothing"], ["y"]))


def wider(made: onnx.ModelProto) -> None:
    """Every second layer gets as many outputs again, which are zero."""
    graph = made.graph
    for at in range(0, sum(one.name.startswith("w") for one in graph.initializer) - 1, 2):
        first, second = values(graph, f"w{at}"), values(graph, f"w{at + 1}")
        out, into = (1, 0) if first.ndim == 2 else (0, 1)
        replaced(graph, f"w{at}", np.concatenate([first, np.zeros_like(first)], out))
        replaced(graph, f"w{at + 1}", np.concatenate([second, np.zeros_like(second)], into))


def larger_kernels(made: onnx.ModelProto) -> None:
    """Kernels of 3 by 3 become 7 by 7, with zeros around."""
    for node in made.graph.node:
        if node.op_type == "Conv":
            padded = np.pad(values(made.graph, node.input[1]), ((0, 0), (0, 0), (2, 2), (2, 2)))
            replaced(made.graph, node.input[1], padded)
            node.attribute[0].CopyFrom(helper.make_attribute("pads", [3, 3, 3, 3]))


def looped(made: onnx.ModelProto) -> None:
    """Each Relu becomes a Loop over the rows."""
    graph = made.graph
    rows = graph.input[0].type.tensor_type.shape.dim[0].dim_value
    graph.initializer.append(numpy_helper.from_array(np.int64(rows), "rows"))
    for at, node in enumerate(list(graph.node)):
        if node.op_type != "Relu":
            continue
        body = helper.make_graph(
            [
                helper.make_node("Gather", [node.input[0], f"i{at}"], [f"row{at}"], axis=0),
                helper.make_node("Relu", [f"row{at}"], [f"done{at}"]),
                helper.make_node("Identity", [f"go{at}"], [f"on{at}"]),
            ],
            f"body{at}",
            [
                helper.make_tensor_value_info(f"i{at}", TensorProto.INT64, []),
                helper.make_tensor_value_info(f"go{at}", TensorProto.BOOL, []),
            ],
            [
                helper.make_tensor_value_info(f"on{at}", TensorProto.BOOL, []),
                helper.make_tensor_value_info(f"done{at}", TensorProto.FLOAT, None),
            ],
        )
        node.CopyFrom(helper.make_node("Loop", ["rows", ""], [node.output[0]], body=body))


def in_float64(made: onnx.ModelProto) -> None:
    """Each layer computes in float64, between two Casts."""
    graph = made.graph
    nodes = []
    for at, node in enumerate(graph.node):
        if node.op_type in ("MatMul", "Conv"):
            replaced(graph, node.input[1], values(graph, node.input[1]).astype(np.float64))
            nodes.append(helper.make_node("Cast", [node.input[0]], [f"h{at}"], to=TensorProto.DOUBLE))
            end, node.input[0] = node.output[0], f"h{at}"
            node.output[0] = f"k{at}"
            nodes += [node, helper.make_node("Cast", [f"k{at}"], [end], to=TensorProto.FLOAT)]
        else:
            nodes.append(node)
    kept = [onnx.NodeProto.FromString(one.SerializeToString()) for one in nodes]
    del graph.node[:]
    graph.node.extend(kept)


NETWORKS: dict[str, Callable[[], onnx.ModelProto]] = {"dense": dense, "pixels": pixels}
SLOWER: dict[str, dict[str, Callable[[onnx.ModelProto], None]]] = {
    "dense": {"more work": more_work, "wider layers": wider, "a Loop": looped, "float64 between Casts": in_float64},
    "pixels": {"more work": more_work, "wider layers": wider, "larger kernels": larger_kernels},
}
"""Maps each network to what makes it slower."""


def write(folder: Path) -> dict[str, Path]:
    """Writes the networks, and returns their files."""
    files = {}
    for name, make in NETWORKS.items():
        files[name] = folder / f"{name}.onnx"
        onnx.save(make(), files[name])
    return files
