"""Lists the nodes, tensors, weights and functions that have another name in the second model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import Renaming
from onnxsmith.comparison.graphs.function_pairing import FunctionPairs
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.graph.reading.scopes import function_name


def renamings(a: ir.Model, b: ir.Model, found: Found, functions: FunctionPairs) -> list[Renaming]:
    """Returns the names that differ, without those of inputs and outputs, which are the interface."""
    return list(_renamings(a, b, found, functions))


def _renamings(a: ir.Model, b: ir.Model, found: Found, functions: FunctionPairs) -> Iterator[Renaming]:
    if a.graph.name != b.graph.name:
        yield Renaming("graph", a.graph.name or "", b.graph.name or "")
    for one, other in functions.pairs:
        if one != other:
            yield Renaming("function", function_name(a.functions[one]), function_name(b.functions[other]))
    ports = {*a.graph.inputs, *a.graph.outputs}
    for first, second, path in found.paths:
        if first.name != second.name:
            yield Renaming("node", first.name or "", second.name or "", path)
        for value, partner in zip(first.outputs, second.outputs, strict=False):
            if value.name != partner.name and value not in ports and value.name and partner.name:
                yield Renaming("tensor", value.name, partner.name, path)
    for value, partner in found.pairs.values.items():
        if value.is_graph_input() and value not in ports and value.name != partner.name:
            yield Renaming("tensor", value.name or "", partner.name or "")
    seen: set[ir.Value] = set()
    for value, partner in found.weights.pairs():
        if value.name != partner.name and value not in ports and value not in seen:
            seen.add(value)
            yield Renaming("weight", value.name or "", partner.name or "")
