"""Einstein sums."""

from __future__ import annotations

import re

import onnx_ir as ir

from onnxsmith.graph.shapes import symbols
from onnxsmith.viewer.inspection.mac_rules.base import Dim, Dims, MacRule, Products, dims_in


class Einsum(MacRule):
    """The product of the sizes of all labels, once for each operand after the first; 0 for one operand.

    Source: the definition of the operator (ONNX, Einsum) as nested loops over all labels. A runtime that contracts
    three or more operands pair by pair may need fewer.
    """

    operators = ("Einsum",)

    def products(self, node: ir.Node) -> Products | None:
        equation = re.sub(r"\s", "", node.attributes.get_string("equation", "") or "")
        terms = equation.partition("->")[0].split(",")
        if len(terms) != len(node.inputs):
            return None
        sizes: dict[str, list[Dim]] = {}
        for index, term in enumerate(terms):
            shape = dims_in(node, index)
            labels = None if shape is None else _labels(term, shape)
            if shape is None or labels is None:
                return None
            for label, dim in zip(labels, shape, strict=True):
                sizes.setdefault(label, []).append(dim)
        whole = [symbols.broadcast(found) for found in sizes.values()]
        known = [dim for dim in whole if dim is not None]
        return [(len(terms) - 1, *known)] if len(known) == len(whole) else None


def _labels(term: str, shape: Dims) -> list[str] | None:
    """Returns a label for each axis; the axes of an ellipsis are numbered from the right. None if the ranks differ."""
    before, dots, after = term.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        return None
    return [*before, *(f"...{hidden - place}" for place in range(hidden)), *after]
