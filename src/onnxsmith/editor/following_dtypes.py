"""Follows dtypes through the nodes that stay when other nodes are removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, pasted
from onnxsmith.editor.edited_model import Work
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.structure import schema, walk


@dataclass
class Following:
    """Holds the dtypes after a removal. `gone` are the removed nodes. `stands` maps each result of a removed node to
    the tensor that replaces it. `new` maps results of the remaining nodes to another dtype, and `origin` maps them to
    the removed node that is the reason."""

    work: Work
    gone: Collection[ir.Node]
    stands: Mapping[ir.Value, ir.Value]
    new: dict[ir.Value, ir.DataType] = field(default_factory=dict)
    origin: dict[ir.Value, ir.Node] = field(default_factory=dict)

    def run(self) -> None:
        """Propagates the dtypes to the graph outputs, whose dtypes must not change.

        Raises:
            OnnxsmithError: `edit/dtype` with the first node, or output, that cannot take the other dtype.
        """
        changed = any(self._dtype(value) != value.dtype for value in self.stands)
        while changed:
            nodes = [node for node in walk.all_nodes(self.work.model) if node not in self.gone]
            changed = sum(self._follow(node) for node in nodes) > 0
        for graph in walk.graphs(self.work.model):
            for value in graph.outputs:
                if self._differs(value):
                    of = f"the graph {graph.name}" if graph.name else "its graph"
                    why = f"{value.name} is an output of {of}, whose dtype has to stay {dtypes.shown(value.dtype)}"
                    raise self._refusal(value, why)

    def said(self) -> str:
        """Returns a note with the nodes that compute in another dtype now; "" if there are no such nodes."""
        nodes = dict.fromkeys(value.producer() for value in self.new)
        names = [walk.node_label(node) for node in nodes if node is not None]
        if not names:
            return ""
        pairs = dict.fromkeys(
            f"{dtypes.shown(new)}, before in {dtypes.shown(value.dtype)}" for value, new in self.new.items()
        )
        return f"computed in {'; '.join(pairs)}: {first_few(names, _SHOWN)}"

    def _dtype(self, value: ir.Value) -> ir.DataType | None:
        if value in self.stands:
            return self._dtype(self.stands[value])
        return self.new.get(value, value.dtype)

    def _differs(self, value: ir.Value) -> bool:
        now = self._dtype(value)
        return now is not None and value.dtype is not None and now != value.dtype

    def _follow(self, node: ir.Node) -> bool:
        """Sets the dtypes of a node's results; returns whether a dtype changed."""
        reads = [value for value in node.inputs if value is not None]
        other = next((value for value in reads if self._differs(value)), None)
        if other is None:
            return False
        bound = self._bound(node, other)
        known = self._schema(node)
        changed = False
        for index, value in enumerate(node.outputs):
            formal = known.output(index) if known is not None else None
            now = bound.get(formal.type) if formal is not None else None
            if now is not None and value.dtype is not None and now != self._dtype(value):
                self.new[value], self.origin[value], changed = now, self._removed(other), True
        # This Cast only undid the removed one.
        if node.op_type == "Cast" and not node.domain and self._dtype(other) == node.outputs[0].dtype:
            raise self._refusal(other, f"{walk.node_label(node)} (Cast) would have nothing to do", along=node)
        return changed

    def _bound(self, node: ir.Node, other: ir.Value) -> dict[str, ir.DataType]:
        """Returns the dtype of each type variable of the operator.

        Raises:
            OnnxsmithError: `edit/dtype` if the operator does not allow the new dtype.
        """
        known, said = self._schema(node), f"{walk.node_label(node)} ({walk.op_name(node)})"
        odd = any(not isinstance(value.type, ir.TensorType) for value in node.outputs if value.name)
        if known is None or odd or walk.has_subgraphs(node):
            raise self._refusal(
                other, f"{said} reads this tensor, and the specification does not define the dtype of the result"
            )
        bound: dict[str, ir.DataType] = {}
        for index, value in enumerate(node.inputs):
            formal = known.input(index)
            now = self._dtype(value) if value is not None else None
            if value is None or formal is None or now is None:
                continue
            if formal.types and f"tensor({now.name.lower()})" not in formal.types:
                raise self._refusal(other, f"{said} does not accept {dtypes.shown(now)}")
            if not formal.mixed and bound.setdefault(formal.type, now) != now:
                both = f"{dtypes.shown(bound[formal.type])} and {dtypes.shown(now)}"
                raise self._refusal(other, f"{said} would read {both}, but requires operands of one dtype")
        return bound

    def _schema(self, node: ir.Node) -> schema.Schema | None:
        if node.op_identifier() in self.work.model.functions:
            return None
        return schema.find(node.op_type, node.domain, self.work.opsets(node).get(node.domain, 1))

    def _removed(self, value: ir.Value) -> ir.Node:
        """Returns the removed node that causes a tensor's new dtype."""
        if value in self.origin:
            return self.origin[value]
        node = value.producer()
        assert node is not None
        return node

    def _refusal(self, value: ir.Value, why: str, along: ir.Node | None = None) -> OnnxsmithError:
        node = self._removed(value)
        result, stands = node.outputs[0], self._dtype(node.outputs[0])
        fix = "keep an operand of the same dtype, or put another node in its place with the step replace"
        fix = self._behind() or fix
        if along is not None:
            names = ", ".join(f'"{walk.node_label(one)}"' for one in (*self.gone, along))
            fix = f"also remove the Cast that converts back, in the same step: node = [{names}]"
        return problem(
            "edit/dtype",
            f"{walk.node_label(node)} cannot be removed: the result is of {dtypes.shown(result.dtype)}, but the "
            f"operand that would replace it is of {dtypes.shown(stands)}",
            why=why,
            fix=fix,
        )

    def _behind(self) -> str:
        """Returns the command that makes the results of the removed nodes inputs of the model, if all these nodes read
        graph inputs; "" otherwise."""
        graph = self.work.model.graph
        for node in self.gone:
            if node.graph is not graph or node.inputs[0] not in graph.inputs or node.outputs[0].is_graph_output():
                return ""
        read = [value for value in graph.inputs if any(use.node not in self.gone for use in value.uses())]
        starts = [node.outputs[0] for node in self.gone]
        names = [("from", value) for value in (*starts, *read)] + [("to", value) for value in graph.outputs]
        ends = " ".join(f"--{option} {pasted(value.name or '')}" for option, value in names)
        return f"cut the model behind these nodes: `onnxsmith extract MODEL {ends} -o part.onnx`"


_SHOWN = 3
"""Limits the nodes that a note names. A choice: one line."""
