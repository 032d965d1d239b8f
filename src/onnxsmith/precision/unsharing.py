"""Copies shared weights, for a quantiser that changes a weight for all of its readers."""

from __future__ import annotations

from collections.abc import Collection, Hashable

import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names


def unshare(model: ir.Model, exclude: Collection[str]) -> None:
    """Copies float32 initializers in place, so that the nodes in `exclude`, and nodes in branches and loop bodies,
    share none with the other nodes. Each reader of a vector gets its own copy, because a bias is corrected for one
    node."""
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
    """Returns a key that is equal for all nodes that may share the value."""
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
