"""One initializer for all that are equal."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.model import walk
from onnxsmith.model.contents import contents, outline
from onnxsmith.passes.base import Pass, PassResult


class SharedInitializers(Pass):
    """Initializers of one graph with the same dtype, shape and bytes become the first of them.

    By bytes, not by value: 0.0 and -0.0 stay apart, and so do NaNs of different bits.

    Left alone: initializers that are graph inputs (a caller may replace one and not the other) or graph outputs,
    strings, those that carry or are named in quantisation annotations, and equal ones of different graphs.
    """

    title = "equal initializers shared"

    def run(self, model: ir.Model) -> PassResult:
        where: list[str] = []
        for graph in walk.graphs(model):
            where += _shared(graph)
        return PassResult(model, bool(where), where)


def _shared(graph: ir.Graph) -> Iterator[str]:
    annotated = _annotated(graph)
    alike: dict[object, list[ir.Value]] = {}
    for value in graph.initializers.values():
        if value.const_value is None or value.is_graph_input() or value.is_graph_output() or value.name in annotated:
            continue
        alike.setdefault(outline(value.const_value), []).append(value)
    for values in alike.values():
        if len(values) == 1:
            continue  # never hashed: most large tensors are the only ones of their shape
        kept: dict[object, ir.Value] = {}
        for value in values:
            assert value.const_value is not None
            key = contents(value.const_value)
            if key is None:
                continue
            first = kept.setdefault(key, value)
            if first is not value:
                value.replace_all_uses_with(first)
                del graph.initializers[value.name or ""]
                yield f"{value.name} = {first.name}"


def _annotated(graph: ir.Graph) -> set[str]:
    """Names that quantisation annotations bind: of the tensors they describe, and of their scales and zero points."""
    names: set[str] = set()
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
    for value in values:
        parameters = value.meta.get("quant_parameter_tensor_names")
        if parameters:
            names |= {value.name or "", *parameters.values()}
    return names
