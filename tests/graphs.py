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
    assert [node.op_type for node in found.graph] == [node.op_type for node in wanted.graph]
    for node, other in zip(found.graph, wanted.graph, strict=True):
        assert len(node.inputs) == len(other.inputs), node
        for value, expected in zip(node.inputs, other.inputs, strict=True):
            _assert_same_value(value, expected, names)
        assert _attributes(node) == _attributes(other), node
        names.update(zip(node.outputs, other.outputs, strict=True))
    for mine, theirs in zip(found.graph.outputs, wanted.graph.outputs, strict=True):
        assert mine.name == theirs.name
        assert mine.dtype == theirs.dtype
        assert names.get(mine, mine) is theirs or mine.is_initializer()


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
    return {name: attribute.value for name, attribute in node.attributes.items()}
