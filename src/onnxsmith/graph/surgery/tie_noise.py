"""Lets a model break ties in another way: small changes of the elements that an operator puts in order.

Elements that are equal up to rounding have no order of their own, and two correct computations may order them
differently. A change of the model's inputs does not show this if it moves all these elements alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import infer_in_place
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery.node_insertion import Inserter

SWITCH, SEED, WHOLE = "onnxsmith.ties", "onnxsmith.ties.seed", "onnxsmith.ties.whole"
"""Names the inputs that are added, scalars of float32 that are 0 by default. 1 switches the changes on; a seed draws
them; 1 changes elements of few digits as well."""
_ORDERS = {"TopK": 0, "ArgMax": 0, "ArgMin": 0, "Hardmax": 0, "NonMaxSuppression": 1}
"""Lists operators that put elements in order, with the operand that has the elements."""
_DTYPES: dict[ir.DataType, type[np.floating[Any]]] = {
    ir.DataType.FLOAT: np.float32, ir.DataType.DOUBLE: np.float64,
    ir.DataType.FLOAT16: np.float16,
}  # fmt: skip
_LEAST_OPSET = 11
"""Is the opset in which Range appeared, and Equal took floats (ONNX operator changelog)."""
_FRACTION = 256
"""Multiples of 1/256 are exact on purpose, and have one right order. `verification/probe.py` has the same number."""


def with_tie_noise(model: ir.Model) -> bool:
    """Adds the three inputs and the changes to the model itself, in the main graph and its bodies. Returns False, and
    changes nothing, if no operator of the model puts floats in order, or if its opset is older than 11."""
    places = _places(model)
    if not places or model.opset_imports.get("", 0) < _LEAST_OPSET:
        return False
    if any(value is not None and value.dtype is None for value in map(_elements, places)):
        infer_in_place(model)
    places = [node for node in places if (value := _elements(node)) is not None and value.dtype in _DTYPES]
    if not places:
        return False
    switch, seed, whole = (_input(model, name) for name in (SWITCH, SEED, WHOLE))
    names = Names(model)
    for node in places:
        _change(node, switch, seed, whole, names)
    return True


def puts_in_order(model: ir.Model) -> bool:
    """Whether an operator of the model puts elements in order."""
    return bool(_places(model))


def _places(model: ir.Model) -> list[ir.Node]:
    return [node for graph in walk.main_graphs(model) for node in graph if _elements(node) is not None]


def _elements(node: ir.Node) -> ir.Value | None:
    index = _ORDERS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    return node.inputs[index] if index is not None and index < len(node.inputs) else None


def _input(model: ir.Model, name: str) -> ir.Value:
    value = ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([]))
    value.const_value = ir.tensor(np.float32(0), name=name)
    model.graph.register_initializer(value)
    model.graph.inputs.append(value)
    return value


def _change(node: ir.Node, switch: ir.Value, seed: ir.Value, whole: ir.Value, names: Names) -> None:
    """Multiplies each element by 1 ± an ulp, and adds the smallest number, so that zeros get an order too."""
    index = _ORDERS[node.op_type]
    data = node.inputs[index]
    assert data is not None
    assert data.dtype is not None
    dtype = _DTYPES[data.dtype]
    limits = np.finfo(dtype)
    write = Inserter(node, "ties", 0, names.free)

    def scalar(value: float, of: type[np.generic] = np.float32) -> ir.Value:
        return write.constant(value, of)

    shape = write.op("Shape", data)
    count = write.op("Range", scalar(0, np.int64), write.op("Size", data), scalar(1, np.int64))
    # The fraction of a large sine, which is as good as drawn at random.
    angle = write.op("Mul", write.op("Cast", count, to=ir.DataType.FLOAT), scalar(12.9898))
    wave = write.op("Mul", write.op("Sin", write.op("Add", angle, seed)), scalar(43758.547))
    drawn = write.op("Sub", write.op("Sub", wave, write.op("Floor", wave)), scalar(0.5))
    amount = write.op("Reshape", write.op("Mul", drawn, switch), shape)
    typed = write.op("Cast", amount, to=data.dtype)
    factor = write.op("Add", scalar(1, dtype), write.op("Mul", typed, scalar(4 * float(limits.eps), dtype)))
    least = write.op("Mul", typed, scalar(4 * float(limits.smallest_normal), dtype))
    changed = write.op("Add", write.op("Mul", data, factor), least)
    digits = write.op("Mul", write.op("Cast", data, to=ir.DataType.FLOAT), scalar(_FRACTION))
    exact = write.op("Equal", write.op("Floor", digits), digits)
    kept = write.op("And", exact, write.op("Not", write.op("Cast", whole, to=ir.DataType.BOOL)))
    stays = write.op("Or", kept, write.op("Not", write.op("Cast", switch, to=ir.DataType.BOOL)))
    node.replace_input_with(index, write.op("Where", stays, data, changed))
