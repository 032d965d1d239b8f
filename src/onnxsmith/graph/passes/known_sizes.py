"""Replaces computed sizes by the Shape of a tensor with these sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.graph.passes.base import May, Pass, PassResult, always
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.known_integers import copy_noted
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.uses import freed
from onnxsmith.graph.structure.value_replacement import take_over

_SINCE = 15
"""Is the opset since which Shape has a start and an end."""
_MOST_PLACES = 8
"""Limits the tensors remembered for each size. A choice: several, because a vector of sizes needs a tensor that has all
of them side by side."""
_Places = dict[facts.Element, list[tuple[ir.Value, int]]]


class KnownSizes(Pass):
    """In the main graph, replaces a vector of integers by the Shape of an earlier tensor, if the integers are provably
    neighbouring dimensions of that tensor. Replaces a scalar by a Shape and a Squeeze, if that saves nodes. The sums
    and quotients by which exporters compute the sizes of convolutions then have no readers.

    Not changed: results of Shape; constants; graph outputs; models of an opset before 15.
    """

    title = "sizes that a tensor has"

    def run(self, model: ir.Model, may: May = always) -> PassResult:
        graph = model.graph
        if graph.opset_imports.get("", 0) < _SINCE:
            return PassResult(model, False)
        where = list(_replaced(model, may))
        return PassResult(model, bool(where), where)


def _replaced(model: ir.Model, may: May) -> Iterator[str]:
    graph, names = model.graph, None
    places: _Places = {}
    for value in graph.inputs:
        _remember(value, places)
    for node in list(graph):
        found = None if node.domain or node.op_type in ("Shape", "Constant") else _found(node, places)
        where = f"{walk.node_label(node)} = {found[0].name}" if found is not None else ""
        if found is not None and may(where):
            names = names or Names(model)
            _replace(graph, node, found, names)
            yield where
            continue
        for value in node.outputs:
            _remember(value, places)


def _remember(value: ir.Value, places: _Places) -> None:
    for axis, dim in enumerate(facts.dims(value) or ()):
        if isinstance(dim, str):
            at = places.setdefault(dim, [])
            if len(at) < _MOST_PLACES:
                at.append((value, axis))


def _found(node: ir.Node, places: _Places) -> tuple[ir.Value, int, int] | None:
    """Returns a tensor with the sizes that the node computes, and their axes as start and end."""
    value = node.outputs[0]
    elements = facts.integers(value) if len(node.outputs) == 1 and value.dtype is ir.DataType.INT64 else None
    if elements is None or not value.uses() or value.is_graph_output():
        return None
    first = next((index for index, element in enumerate(elements) if isinstance(element, str)), None)
    if first is None:
        return None
    for tensor, axis in places.get(elements[first], ()):
        start = axis - first
        if start >= 0 and facts.same((facts.dims(tensor) or ())[start : start + len(elements)], elements):
            return (tensor, start, start + len(elements)) if _pays(node, elements) else None
    return None


def _pays(node: ir.Node, elements: Sequence[facts.Element]) -> bool:
    is_vector = facts.dims(node.outputs[0]) == (len(elements),)
    makers = [value.producer() for value in node.inputs if value is not None]
    squeezed = node.op_type == "Squeeze" and any(maker is not None and maker.op_type == "Shape" for maker in makers)
    return is_vector or (not squeezed and freed(node) > 1)


def _replace(graph: ir.Graph, node: ir.Node, part: tuple[ir.Value, int, int], names: Names) -> None:
    old = node.outputs[0]
    tensor, start, end = part
    shape = ir.node("Shape", [tensor], {"start": start, "end": end})
    shape.outputs[0].shape, shape.outputs[0].type = ir.Shape([end - start]), old.type
    made = [shape]
    if not facts.dims(old):
        shape.outputs[0].name = names.free(f"{old.name}_vector")
        made.append(ir.node("Squeeze", [shape.outputs[0]]))
    for one in made:
        copy_noted(old, one.outputs[0])
    provenance.inherit(made, [node])
    graph.insert_before(node, made)
    take_over(old, made[-1].outputs[0], named=True)
    graph.remove(node, safe=True)
