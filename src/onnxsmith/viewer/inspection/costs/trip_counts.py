"""Finds how often the body of a loop runs."""

from __future__ import annotations

import re

import onnx_ir as ir

from onnxsmith.graph.shapes import known_integers, symbols
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer.inspection.mac_rules.base import Dim, dims_in, operand

UNKNOWN = "trips_"
"""Is the prefix of the symbol for an unknown number of runs."""
_ENDLESS = 1 << 31
"""Names the trip count from which a loop runs "until the condition is false". A choice: exporters write the largest
int64."""


def trips(node: ir.Node, body: ir.Graph) -> tuple[Dim, str]:
    """Returns the number of runs of a body, which may be symbolic, and the assumption that the number needs; "" if the
    number is certain.

    An unknown number is the symbol `trips_NODE`, which is 1 unless a user gives it a size.
    """
    label = node_label(node)
    found = _scanned(node, body) if node.op_type == "Scan" else _counted(node) if node.op_type == "Loop" else None
    if found is None:
        symbol = f"{UNKNOWN}{re.sub(r'[^A-Za-z0-9_]+', '_', label).strip('_')}"
        return (
            symbol,
            f"{node.op_type} {label}: the number of runs is unknown, so it is the symbol {symbol}, 1 by default",
        )
    if node.op_type == "Loop" and not known_integers.runs_to_its_limit(node, body):
        return found, f"Loop {label}: counted for {found} runs; its condition may end it earlier"
    return found, ""


def _scanned(node: ir.Node, body: ir.Graph) -> Dim | None:
    """Returns the length of the axis that a Scan walks along."""
    count = node.attributes.get_int("num_scan_inputs", 0)
    first = len(node.inputs) - count
    axes = node.attributes.get_ints("scan_input_axes", [0] * count)
    for place in range(max(count, 0)):
        shape = dims_in(node, first + place)
        if shape and place < len(axes) and -len(shape) <= axes[place] < len(shape):
            return shape[axes[place]]
    return None


def _counted(node: ir.Node) -> Dim | None:
    """Returns the trip count of a Loop."""
    found = known_integers.elements(operand(node, 0)) or [None]
    if isinstance(found[0], int):
        return max(found[0], 0) if found[0] < _ENDLESS else None
    return symbols.largest([found[0], 0]) if found[0] is not None else None
