"""Helpers that hold graphs to each other by structure, whatever their values are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir


def assert_same_graph(found: ir.Model, wanted: ir.Model) -> None:
    """The same operators on the same values in the same order, equal attributes and constants, equal interface."""
    names: dict[ir.Value, ir.Value] = {}
    for mine, theirs in zip(found.graph.inputs, wanted.graph.inputs, strict=True):
        assert mine.name == theirs.name
        names[mine] = theirs
    _assert_same_nodes(found.graph, wanted.graph, names)
    for mine, theirs in zip(found.graph.outputs, wanted.graph.outputs, strict=True):
        assert mine.name == theirs.name
        assert mine.dtype == theirs.dtype
        assert names.get(mine, mine) is theirs or mine.is_initializer()


def _assert_same_nodes(found: ir.Graph, wanted: ir.Graph, names: dict[ir.Value, ir.Value]) -> None:
    assert [node.op_type for node in found] == [node.op_type for node in wanted]
    for node, other in zip(found, wanted, strict=True):
        assert len(node.inputs) == len(other.inputs), node
        for value, expected in zip(node.inputs, other.inputs, strict=True):
            _assert_same_value(value, expected, names)
        assert _attributes(node) == _attributes(other), node
        for name, branch in _branches(node).items():
            _assert_same_nodes(branch, _branches(other)[name], names)
        names.update(zip(node.outputs, other.outputs, strict=True))


def _assert_same_value(value: ir.Value | None, expected: ir.Value | None, names: dict[ir.Value, ir.Value]) -> None:
    if value is None or expected is None:
        assert value is expected
        return
    if value in names:
        assert names[value] is expected
        return
    assert value.const_value is not None
    assert expected.const_value is not None
    a, b = value.const_value.numpy(), expected.const_value.numpy()
    assert a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=1e-6)
    names[value] = expected


def _attributes(node: ir.Node) -> dict[str, Any]:
    branches = _branches(node)
    return {name: attribute.value for name, attribute in node.attributes.items() if name not in branches}


def _branches(node: ir.Node) -> dict[str, ir.Graph]:
    graphs = {name: a for name, a in node.attributes.items() if a.type == ir.AttributeType.GRAPH}
    return {name: attribute.as_graph() for name, attribute in graphs.items()}
