"""Merges equal initializers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.passes.base import May, Pass, PassResult, always
from onnxsmith.graph.structure import quantization_annotations, walk
from onnxsmith.graph.structure.tensor_keys import contents, glimpse, outline


class SharedInitializers(Pass):
    """Merges initializers of one graph with the same dtype, shape and bytes into the first of them.

    A Constant may be a graph output. An initializer that equals it is merged into it.

    Bytes are compared, not values: 0.0 and -0.0 stay separate, and so do NaNs with different bits.

    Not merged: initializers that are graph inputs (a caller may replace one of two) or graph outputs, strings,
    initializers with quantisation annotations or named in them, and equal initializers of different graphs.
    """

    title = "equal initializers shared"

    def run(self, model: ir.Model, may: May = always) -> PassResult:
        where: list[str] = []
        for graph in walk.graphs(model):
            where += _shared(graph, may)
        return PassResult(model, bool(where), where)


def _shared(graph: ir.Graph, may: May) -> Iterator[str]:
    annotated = _annotated(graph)
    alike: dict[object, list[ir.Value]] = {}
    initializers = [value for value in graph.initializers.values() if not value.is_graph_output()]
    for value in (*filter(_is_constant_node, graph.outputs), *initializers):
        tensor = const_tensor(value)
        if tensor is None or value.is_graph_input() or value.name in annotated:
            continue
        alike.setdefault(outline(tensor), []).append(value)
    for values in _alike_at_a_glimpse(alike.values()):
        kept: dict[object, ir.Value] = {}
        for value in values:
            key = contents(_tensor(value))
            if key is None:
                continue
            first = kept.setdefault(key, value)
            where = f"{value.name} = {first.name}"
            if first is not value and value.is_initializer() and may(where):
                _move_to_front(graph, first.producer())
                value.replace_all_uses_with(first)
                del graph.initializers[value.name or ""]
                yield where


def _is_constant_node(value: ir.Value) -> bool:
    maker = value.producer()
    return maker is not None and maker.op_type == "Constant" and not maker.domain


def _tensor(value: ir.Value) -> ir.TensorProtocol:
    tensor = const_tensor(value)
    assert tensor is not None
    return tensor


def _move_to_front(graph: ir.Graph, constant: ir.Node | None) -> None:
    """Moves a Constant before all readers of the initializer that it replaces."""
    if constant is not None and graph[0] is not constant:
        front = graph[0]
        graph.remove(constant)
        graph.insert_before(front, constant)


def _alike_at_a_glimpse(groups: Iterable[list[ir.Value]]) -> Iterator[list[ir.Value]]:
    """Yields groups of initializers with equal samples of their bytes, which may be equal. So most large tensors are
    never read in full."""
    for group in groups:
        seen: dict[bytes, list[ir.Value]] = {}
        for value in group if len(group) > 1 else ():
            tensor = _tensor(value)
            bytes_ = None if tensor.dtype == ir.DataType.STRING else glimpse(tensor)
            if bytes_ is not None:
                seen.setdefault(bytes_, []).append(value)
        yield from (values for values in seen.values() if len(values) > 1)


def _annotated(graph: ir.Graph) -> set[str]:
    """Returns the names in quantisation annotations: the annotated tensors, their scales and zero points."""
    names: set[str] = set()
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    for value in values:
        parameters = value.meta.get(quantization_annotations.KEY)
        if parameters:
            names |= {value.name or "", *parameters.values()}
    return names
