"""Finds the values that reach a quantiser, because a rounding difference can become a whole step there.

A rewrite that rounds differently changes the last bit of a number. A quantiser turns this into a whole step if the
number lies at the edge between two steps. A dynamic quantiser may even change the scale of all numbers. So a rewrite
that reassociates is refused before a quantiser, unless the caller allows it."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import walk

_QUANTISERS = frozenset(
    ("QuantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "QAttention")
)
"""Quantisers in ONNX's own domain and in onnxruntime's."""
_ROUNDING = frozenset(("Ceil", "Floor", "Round"))
"""Operators that round to whole numbers, like a quantiser."""
_SHAPE_ONLY = frozenset(("Shape", "Size"))
"""Operators whose results do not depend on the elements of their input."""


class Quantisers:
    """The values that reach a quantiser, each with that quantiser. They are found by a walk up from all quantisers, and
    by further walks from values that rewrites add."""

    def __init__(self, model: ir.Model) -> None:
        self._reaching: dict[ir.Value, ir.Node] = {}
        self._callers: dict[ir.Graph, list[ir.Node]] = {}
        self._functions = model.functions
        nodes = list(walk.all_nodes(model))
        quantisers = [node for node in nodes if _quantises(node)]
        if not quantisers:
            return
        for node in nodes:
            for body in walk.subgraphs(node):
                self._callers.setdefault(body, []).append(node)
            function = self._functions.get(node.op_identifier())
            if function is not None:
                self._callers.setdefault(function.graph, []).append(node)
        for node in quantisers:
            for value in node.inputs:
                self._mark(value, node)

    def behind(self, node: ir.Node) -> ir.Node | None:
        """Returns a quantiser that a result of the node reaches, or None."""
        return next((self._reaching[value] for value in node.outputs if value in self._reaching), None)

    def replaced(self, old: ir.Value, new: ir.Value) -> None:
        """Marks `new` like `old`, which it replaces."""
        if old in self._reaching:
            self._mark(new, self._reaching[old])

    def _mark(self, value: ir.Value | None, quantiser: ir.Node) -> None:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if one is None or one in self._reaching:
                continue
            self._reaching[one] = quantiser
            node = one.producer()
            if node is not None:
                waiting += self._before(node)
            elif one.is_graph_input():
                for caller in self._callers.get(one.graph, ()) if one.graph is not None else ():
                    # a loop's states may feed each other in later iterations, so all of its inputs are marked
                    waiting += [*caller.inputs, *self._inside(caller)]

    def _before(self, node: ir.Node) -> list[ir.Value | None]:
        # rounding of the input cannot change a shape
        if node.op_type in _SHAPE_ONLY and not node.domain:
            return []
        return [*node.inputs, *self._inside(node)]

    def _inside(self, node: ir.Node) -> list[ir.Value | None]:
        """Returns the outputs of the node's branches, bodies or function."""
        function = self._functions.get(node.op_identifier())
        bodies = [*walk.subgraphs(node), *([function.graph] if function is not None else [])]
        return [value for body in bodies for value in body.outputs]


def _quantises(node: ir.Node) -> bool:
    op_type = node.op_type
    if op_type in _QUANTISERS:
        return True
    if op_type != "Cast" and op_type not in _ROUNDING:
        return False
    if node.domain or not node.inputs or node.inputs[0] is None:
        return False
    if op_type == "Cast":
        before, attribute = node.inputs[0].dtype, node.attributes.get("to")
        if attribute is None or attribute.is_ref():
            return False
        by_name = attribute.type == ir.AttributeType.STRING  # before opset 6 `to` was a name
        after = ir.DataType[attribute.as_string()] if by_name else ir.DataType(attribute.as_int())
        is_number = before is None or before.is_floating_point()
        return is_number and after.is_integer()
    return True
