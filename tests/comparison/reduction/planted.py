"""Small models with a failure planted in the middle of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Chain:
    """Float tensors of one shape, one after another; weights as they are asked for."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=f"node_{name}", **attributes))
        return name

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array, dtype), name))
        return name

    def through(self, x: str, count: int) -> str:
        """`count` nodes further."""
        for index in range(count):
            match index % 4:
                case 0:
                    x = self.add("MatMul", x, self.constant(self.rng.standard_normal((4, 4)) / 2))
                case 1:
                    x = self.add("Tanh", x)
                case 2:
                    x = self.add("Add", x, self.constant(self.rng.standard_normal(4)))
                case _:
                    x = self.add("Sigmoid", x)
        return x

    def model(self, output: str, *, shape: tuple[int | str, ...] = ("batch", 4), opset: int = 18) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "chain",
            [helper.make_tensor_value_info("x", FLOAT, shape)],
            [onnx.ValueInfoProto(name=output)],
            self.weights,
        )
        return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def unknown(chain: Chain, x: str) -> str:
    """An operator that nobody has."""
    return chain.add("Geluu", x)


def lost_nan(chain: Chain, x: str) -> str:
    """onnxruntime's ReduceMax loses a NaN that numpy's keeps."""
    root = chain.add("Sqrt", chain.add("Sub", x, chain.constant(0.5)))
    return chain.add("Add", x, chain.add("ReduceMax", root))


def wrapped(chain: Chain, x: str) -> str:
    """OpenVINO computes 64-bit integers in 32."""
    whole = chain.add("Cast", chain.add("Mul", x, chain.constant(0.0)), to=INT64)
    large = chain.add("Sub", whole, chain.constant(-(2**40), np.int64))
    return chain.add("Add", x, chain.add("Mul", chain.add("Cast", large, to=FLOAT), chain.constant(2.0**-40)))


def crash(chain: Chain, x: str) -> str:
    """The smallest 64-bit integer over -1, where x86 traps."""
    whole = chain.add("Cast", chain.add("Mul", x, chain.constant(0.0)), to=INT64)
    low = chain.add("Add", whole, chain.constant(-(2**63), np.int64))
    return chain.add("Add", x, chain.add("Cast", chain.add("Div", low, chain.constant(-1, np.int64)), to=FLOAT))


def endless(chain: Chain, x: str) -> str:
    """A loop that never ends."""
    ports = [
        helper.make_tensor_value_info("turn", INT64, []),
        helper.make_tensor_value_info("more", TensorProto.BOOL, []),
        helper.make_tensor_value_info("value", FLOAT, None),
    ]
    nodes = [helper.make_node("Tanh", ["value"], ["next"]), helper.make_node("Identity", ["more"], ["again"])]
    results = [
        helper.make_tensor_value_info("again", TensorProto.BOOL, []),
        helper.make_tensor_value_info("next", FLOAT, None),
    ]
    return chain.add(
        "Loop", "", chain.constant(True, bool), x, body=helper.make_graph(nodes, "endless", ports, results)
    )


def planted(plant: Any, count: int = 12) -> onnx.ModelProto:
    """`count` nodes, the failure, `count` more."""
    chain = Chain()
    return chain.model(chain.through(plant(chain, chain.through("x", count)), count))


def operators(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def flows(first: str, second: str) -> Any:
    """A check that fails when a result of `first` flows into `second`."""

    def check(path: Path, feeds: Mapping[str, Any]) -> bool:
        reached: set[str] = set()
        for node in onnx.load(path).graph.node:
            if node.op_type == second and reached & set(node.input):
                return True
            if node.op_type == first or reached & set(node.input):
                reached |= set(node.output)
        return False

    return check
