"""Chooses example sizes at which the nodes of a model fit together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx_ir as ir

from onnxsmith.graph.shapes import dims, runtime_operators
from onnxsmith.graph.structure import walk

_MOST = 1 << 13
"""Limits an example size. A choice: larger than most sequences and images."""
_FEATURES = {"LSTM": (-1, -1), "GRU": (-1, -1), "RNN": (-1, -1), "MatMul": (-1, -2), "Conv": (1, 1)}
"""Maps operators to the axis of the first operand and that of the weight which have one size. The weight of a
DynamicQuantizeLSTM is transposed. Conv has the size times its groups."""


def fitting(model: ir.Model, examples: Mapping[str, int], known: Mapping[str, int]) -> dict[str, int]:
    """Returns example sizes in place of `examples`: a weight's size where a weight fixes it, and else such sizes that
    no expression in the shapes of `model` is below 1. `known` are the sizes of other symbols."""
    found = {name: size for name, (size, _) in fixed_by_weights(model).items() if name in examples}
    sizes = {**examples, **found}
    free = examples.keys() - found.keys()
    texts = {text for value in walk.values(model) for text in _texts(value) if free & set(dims.names_in(text))}
    for _ in range(_MOST.bit_length()):
        low = [text for text in texts if _is_low(text, {**known, **sizes})]
        names = {name for text in low for name in dims.names_in(text) if name in free and sizes[name] < _MOST}
        if not names:
            break
        sizes |= {name: 2 * sizes[name] for name in names}
    return sizes


def fixed_by_weights(model: ir.Model) -> dict[str, tuple[int, ir.Node]]:
    """Returns the symbols whose sizes weights fix, with the size and the node that reads the weight."""
    found: dict[str, tuple[int, ir.Node]] = {}
    for node in walk.all_nodes(model):
        kind = runtime_operators.kind(node)
        if kind not in _FEATURES or len(node.inputs) < 2 or node.inputs[0] is None or node.inputs[1] is None:
            continue
        axis, of_weight = _FEATURES[kind]
        data, weight = node.inputs[0].shape, node.inputs[1].shape
        if kind != node.op_type and kind == "LSTM":
            of_weight = -2
        if data is None or weight is None or len(data) < 2 or len(weight) < 2 or node.inputs[1].const_value is None:
            continue
        dim, size = data[axis], weight[of_weight]
        times = node.attributes.get_int("group", 1) if kind == "Conv" else 1
        if isinstance(dim, ir.SymbolicDim) and dim.value and isinstance(size, int):
            found.setdefault(dim.value, (size * times, node))
    return found


def _texts(value: ir.Value) -> Iterator[str]:
    for dim in value.shape or ():
        if isinstance(dim, ir.SymbolicDim) and dim.value:
            yield dim.value


def _is_low(text: str, sizes: Mapping[str, int]) -> bool:
    found = dims.amount(text, sizes)
    return found is not None and found < 1
