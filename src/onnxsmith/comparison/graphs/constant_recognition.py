"""Recognises the constants of two models, initializers and `Constant` nodes, by their values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import onnx_ir as ir

from onnxsmith.comparison.graphs.interning import Level, Numbers
from onnxsmith.graph.reading import weights
from onnxsmith.graph.structure import sparse, tensor_keys, walk

_READABLE_WHOLE = 3 * 4096
"""Bytes up to which the sample of a tensor is the whole tensor (`tensor_keys.glimpse`)."""


class Constants:
    """The constants of two models. Equal tensors get equal numbers, whatever their names."""

    def __init__(self, numbers: Numbers, models: Iterable[ir.Model]) -> None:
        self._numbers = numbers
        self._tensors: dict[ir.Value, ir.TensorProtocol | None] = {}
        self._held: dict[ir.Graph, set[int]] = {}
        samples: dict[ir.Value, int] = {}
        alike: list[dict[int, list[ir.Value]]] = []
        for model in models:
            groups: dict[int, list[ir.Value]] = defaultdict(list)
            for value, tensor in _stored(model):
                if value not in self._tensors:
                    self._tensors[value] = tensor
                    samples[value] = numbers.of(_sample(tensor))
                    groups[samples[value]].append(value)
            alike.append(groups)
        self._exact = samples | self._told_apart(alike)

    def _told_apart(self, alike: list[dict[int, list[ir.Value]]]) -> dict[ir.Value, int]:
        """Returns new numbers for constants of one model that have equal samples, after reading them whole. For all
        others a sample is enough to find the counterpart, because each pair is later compared element by element."""
        found: dict[ir.Value, int] = {}
        ambiguous = {sample for groups in alike for sample, values in groups.items() if len(values) > 1}
        for sample in ambiguous:
            for value in (value for groups in alike for value in groups.get(sample, ())):
                tensor = self._tensors[value]
                if tensor is not None and tensor.nbytes > _READABLE_WHOLE:
                    found[value] = self._numbers.of(_whole(tensor, sample))
        return found

    def __contains__(self, value: ir.Value) -> bool:
        return value in self._tensors

    def has(self, number: int, graph: ir.Graph) -> bool:
        """Whether a graph has a constant with this number."""
        held = self._held.get(graph)
        if held is None:
            values = [*graph.initializers.values(), *(v for node in graph for v in node.outputs if v in self)]
            held = self._held[graph] = {self._exact[value] for value in values}
        return number in held

    def tensor(self, value: ir.Value) -> ir.TensorProtocol | None:
        """Returns the tensor of a constant; None if its values are missing."""
        return self._tensors[value]

    def number(self, value: ir.Value, level: Level) -> int:
        """Returns the number of a constant. At `SHAPED` and `BARE` it only stands for dtype and shape."""
        return self._exact[value] if level is Level.EXACT else self._numbers.of(("constant", *_type(value)))


def _stored(model: ir.Model) -> Iterator[tuple[ir.Value, ir.TensorProtocol | None]]:
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            yield value, _readable(value.const_value)
    for node in walk.all_nodes(model):
        if is_constant(node):
            yield node.outputs[0], _readable(weights.constant(node))


def is_constant(node: ir.Node) -> bool:
    """Whether the node is a `Constant` whose value is in the file, not given by the caller of a function."""
    return weights.is_constant(node) and not any(attribute.is_ref() for attribute in node.attributes.values())


def _readable(tensor: ir.TensorProtocol | None) -> ir.TensorProtocol | None:
    return tensor if tensor is not None and weights.readable(tensor) else None


def _type(value: ir.Value) -> tuple[ir.DataType | None, tuple[int | str, ...] | None]:
    tensor = value.const_value
    if tensor is not None:
        return tensor.dtype, tuple(tensor.shape.numpy())
    shape = value.shape
    return value.dtype, None if shape is None else tuple(str(dim) for dim in shape)


def _sample(tensor: ir.TensorProtocol | None) -> tuple[object, ...]:
    if tensor is None:
        return ("missing",)
    if tensor.dtype == ir.DataType.STRING:
        return ("strings", *tensor_keys.with_strings(tensor))
    message = sparse.message_of(tensor)
    if message is not None:
        return ("sparse", *tensor_keys.outline(tensor), message.values.SerializeToString(), _indices(message))
    sample = tensor_keys.glimpse(tensor)
    return (
        "tensor",
        *(tensor_keys.outline(tensor) if sample is not None else tensor_keys.contents(tensor) or ()),
        sample,
    )


def _indices(message: object) -> bytes:
    indices: bytes = message.indices.SerializeToString()  # type: ignore[attr-defined]
    return indices


def _whole(tensor: ir.TensorProtocol, sample: int) -> tuple[object, ...]:
    if tensor.dtype == ir.DataType.STRING or sparse.message_of(tensor) is not None:
        return ("sample", sample)  # the sample is whole
    return ("whole", *(tensor_keys.contents(tensor) or ()))
