"""Make a model of sixty nodes with a failure in its middle, bring it down to what fails, and show what came out.

    python plant.py FOLDER

In the middle a square root makes a NaN, and a ReduceMax follows. By the specification the maximum of a NaN and a number
is NaN; onnxruntime gives the number.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnxsmith

LAYERS = 14
WIDTH = 8


class Network:
    """Nodes in order; each takes the one before."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"/layers/{name}", **attributes))
        return name

    def weight(self, *shape: int) -> str:
        array = self.rng.standard_normal(shape).astype(np.float32) / WIDTH**0.5
        self.weights.append(numpy_helper.from_array(array, f"weight_{len(self.weights)}"))
        return self.weights[-1].name

    def layer(self, x: str) -> str:
        """x [batch, 8], and the same out."""
        y = self.add("Add", self.add("MatMul", x, self.weight(WIDTH, WIDTH)), self.weight(WIDTH))
        return self.add("Add", x, self.add("Tanh", y))


def failing() -> onnx.ModelProto:
    """The model; x is float32 [batch, 8]."""
    network, x = Network(), "x"
    for index in range(LAYERS):
        if index == LAYERS // 2:
            root = network.add("Sqrt", x)  # NaN where x is negative
            x = network.add("Add", x, network.add("ReduceMax", root, keepdims=1))
        x = network.layer(x)
    graph = helper.make_graph(
        network.nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", WIDTH])],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", WIDTH])],
        network.weights,
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 18)])


def main(folder: Path) -> None:
    result = onnxsmith.reduce(failing(), folder, check="differs onnxruntime reference")
    print(result.report.headline)
    print("what is left:", *(node.op_type for node in onnx.load(folder / "model.onnx").graph.node))
    for file in sorted(folder.iterdir()):
        print(f"{folder.name}/{file.name}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
