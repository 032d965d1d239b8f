"""Gives nodes weights of their own, for a quantiser that changes a weight for all of its readers."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names


def unshare(model: ir.Model, exclude: Collection[str]) -> None:
    """Copies float32 initializers in place: nodes in `exclude`, and those of branches and loop bodies, share none with
    the others. Each reader of a vector gets one of its own, because a bias is corrected for one node."""
    names = Names(model)
    for value in list(model.graph.initializers.values()):
        if value.dtype != ir.DataType.FLOAT or value.const_value is None:
            continue
        uses: dict[Hashable, list[tuple[ir.Node, int]]] = {}
        for use in value.uses():
            uses.setdefault(_owner(use.node, value, model.graph, exclude), []).append((use.node, use.idx))
        for shared in list(uses.values())[1:]:
            copy = _copy(model, value, names)
            for node, index in shared:
                node.replace_input_with(index, copy)


def _owner(node: ir.Node, value: ir.Value, graph: ir.Graph, exclude: Collection[str]) -> Hashable:
    """The same for all nodes that may share the value."""
    if value.shape is not None and value.shape.rank() == 1:
        return id(node)
    return node.graph is not graph or node.name in exclude


def _copy(model: ir.Model, value: ir.Value, names: Names) -> ir.Value:
    assert value.const_value is not None
    name = names.free(f"{value.name}_copy")
    tensor = ir.tensor(value.const_value.numpy(), name=name)
    copy = ir.Value(name=name, const_value=tensor, type=value.type, shape=value.shape)
    model.graph.initializers[name] = copy
    return copy
