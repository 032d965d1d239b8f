"""What an odd model is made of, and short ways to make one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
SEED = np.random.default_rng(20240607)


@dataclass
class Odd:
    """A model with one input set. `files` are data files that lie beside it, by their relative path."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Any]
    files: Mapping[str, bytes] = field(default_factory=dict)


def floats(*shape: int) -> np.ndarray:
    """Values of a normal distribution, float32."""
    return SEED.standard_normal(shape).astype(np.float32)


def text(name: str, source: str, feeds: Mapping[str, Any], *, ir: int = 8, opset: int = 17) -> Odd:
    """A model from ONNX text. A text without a header gets one."""
    if not source.lstrip().startswith("<"):
        source = f'<ir_version: {ir}, opset_import: ["": {opset}]>\n{source}'
    return Odd(name, onnx.parser.parse_model(source), feeds)


def value(name: str, dims: Sequence[Any] | None = ("N", 3), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """A declaration of a tensor; with `dims` None its rank is unknown."""
    return helper.make_tensor_value_info(name, dtype, dims)


def weight(name: str, array: np.ndarray) -> onnx.TensorProto:
    """An initializer."""
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    *,
    ir: int = 8,
    opset: int = 17,
    imports: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of one graph."""
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights))
    domains = {"": opset} if imports is None else imports
    ids = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    made = helper.make_model(graph, opset_imports=ids, functions=list(functions))
    made.ir_version = ir
    return made


def affine(**options: Any) -> onnx.ModelProto:
    """`y = Relu(x @ w + b)`, the body of most of these models."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
        helper.make_node("Add", ["m", "b"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["y"], name="relu"),
    ]
    weights = [weight("w", floats(3, 4)), weight("b", floats(4))]
    return model(nodes, [value("x")], [value("y", ("N", 4))], weights, **options)


X = {"x": floats(2, 3)}
