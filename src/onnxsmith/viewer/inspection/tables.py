"""Makes the tables of all nodes and of all tensors."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.clock import advance
from onnxsmith.base.report.parts.item_views import NodeRow, NodeTable, Operand, Statistics, TensorRow, TensorTable
from onnxsmith.graph.reading.exact_text import dtype_name, value_type
from onnxsmith.graph.reading.scopes import nodes
from onnxsmith.graph.reading.statistics import statistics
from onnxsmith.graph.reading.weights import Held, held, place
from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.walk import op_name

SMALLEST = 16
"""Counts the fewest elements of a listed tensor of a `Constant` node. A choice: smaller tensors are axes, shapes and
scalars."""


def node_table(shaped: ir.Model) -> NodeTable:
    """Lists every node of a model with inferred shapes."""
    rows = []
    for index, (scope, node) in enumerate(nodes(shaped)):
        origin = provenance.of(node)
        rows.append(
            NodeRow(
                index=index,
                scope=scope.path,
                depth=scope.depth,
                name=node.name or "",
                op=op_name(node),
                inputs=tuple(_operand(value) for value in node.inputs),
                outputs=tuple(_operand(value) for value in node.outputs),
                module=origin.module,
                source=origin.source,
            )
        )
    return NodeTable(tuple(rows))


def _operand(value: ir.Value | None) -> Operand:
    return Operand("", "") if value is None else Operand(value.name or "", value_type(value))


def tensor_table(model: ir.Model) -> TensorTable:
    """Lists every initializer, and every larger constant, with statistics. Reads one tensor at a time."""
    found = list(held(model))
    listed = [item for item in found if not (item.constant and _size(item) < SMALLEST)]
    rows = []
    for done, item in enumerate(listed):
        advance("statistics", done, len(listed))
        rows.append(_tensor_row(item))
    return TensorTable(tuple(rows), SMALLEST, len(found) - len(listed))


def _size(item: Held) -> int:
    return 0 if item.tensor is None else item.tensor.size


def _tensor_row(item: Held) -> TensorRow:
    tensor = item.tensor
    found, trouble = look(item)
    shape = item.value.shape if tensor is None else tensor.shape
    return TensorRow(
        name=item.name,
        scope=item.scope.path,
        kind="constant" if item.constant else "initializer",
        dtype=dtype_name(item.value.dtype if tensor is None else tensor.dtype),
        shape=tuple(dim for dim in shape if isinstance(dim, int)) if shape is not None else (),
        bytes=0 if tensor is None else tensor.nbytes,
        where=place(tensor),
        statistics=found,
        trouble="" if item.missing else trouble,
    )


def look(item: Held) -> tuple[Statistics | None, str]:
    """Returns the statistics of a tensor, or the reason why there are none: missing or unreadable values."""
    if item.missing or item.tensor is None:
        return None, "its values are missing"
    try:
        return statistics(item.tensor), ""
    except (OSError, ValueError) as error:
        return None, f"the values cannot be read: {error}"
