"""Folds constants: runs nodes with constant inputs once, and turns their results into initializers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.value_replacement import DECLARED, take_over
from onnxsmith.optimizer import growth
from onnxsmith.optimizer.constant_evaluation import Evaluation, shape
from onnxsmith.optimizer.fold_plan import SLACK, FoldPlan
from onnxsmith.optimizer.simplification_state import State

RULE = "fold/constant"
_SMALL = 1024
"""The most bytes that a result of unknown shape may add to the weights, and of a known integer tensor. A choice."""

_INTEGERS: dict[ir.DataType, type[np.signedinteger[Any]]] = {ir.DataType.INT64: np.int64, ir.DataType.INT32: np.int32}


@dataclass
class Folding:
    """Folds a model, with its branches and loop bodies. One object serves all rounds of a model, because a refused node
    stays refused. A folded value becomes an initializer of the main graph, a graph output the result of a Constant.

    Known integers (a size from a declared shape) become initializers without a run. The other nodes with constant
    inputs, chains included, form one model, which one process runs once without optimisations. If that fails, crashes
    or takes longer than a minute, the batch is halved until each failing node is alone.

    Not folded:
    - random operators, seeded or not; Dropout; normalisation in training mode; DequantizeLinear;
    - nodes with subgraphs, nodes of other domains, calls of functions, nodes inside functions;
    - strings, sequences and optionals; large graph outputs; defaults that a caller may replace;
    - groups of nodes whose results are larger than the removed constants and nodes plus `slack` bytes plus the rest of
      `budget`, which rules use up, too (`State.room`);
    - with `spare_narrow`, casts of weights to a wider dtype;
    - results of unknown dtype, and results whose dtype or shape differs from the inferred dtype or shape;
    - models of IR version 3, in which all initializers are inputs.
    """

    state: State
    budget: int = 0
    slack: int = SLACK
    spare_narrow: bool = True
    runtime: str = ""
    _refused: set[ir.Node] = field(default_factory=set)
    _postponed: dict[ir.Node, str] = field(default_factory=dict)
    _evaluation: Evaluation = field(init=False)
    _names: Names | None = None
    """The names in the model, collected at the first constant of a round."""
    _denied: int = 0
    _added: int = 0

    def __post_init__(self) -> None:
        self.state.room = self.budget
        self._evaluation = Evaluation(self.state.model, self.runtime, self._refuse)

    def run(self) -> bool:
        """Folds the model in place; returns whether anything was folded."""
        model = self.state.model
        if not walk.has_own_initializers(model):
            return False
        self._names = None
        changed = self._known_integers()
        self._postponed.clear()
        self._denied = 0
        plan = FoldPlan(
            model, self._refused, self._postponed.__setitem__, int(self.state.room), self.slack, self.spare_narrow
        )
        self._denied = plan.denied
        if plan.nodes:
            changed |= self._accept(plan, self._evaluation.results(plan.nodes))
        self._mark_unfolded()
        return changed

    def _mark_unfolded(self) -> None:
        """Marks each Transpose of a constant that was not folded. Rules that rewrite such a Transpose may now run."""
        for node in walk.nodes(self.state.model.graph):
            if node.op_type == "Transpose" and facts.is_constant(node.inputs[0]):
                node.meta[facts.UNFOLDED] = True

    def finish(self) -> None:
        """Notes the refusals of the last round, and removes the marks. A later round may fold a node that an earlier
        round refused."""
        for node, why in self._postponed.items():
            self.state.journal.refuse(RULE, walk.node_label(node), why)
        for node in walk.nodes(self.state.model.graph):
            node.meta.pop(facts.UNFOLDED, None)

    def notes(self, nbytes: int, least: int) -> list[str]:
        """Returns notes on how much folding enlarged a model of about `nbytes` and at least `least` bytes, and on nodes
        that would have enlarged it too much."""
        return growth.note(self._added, self._denied, len(self._postponed), nbytes, least)

    def _known_integers(self) -> bool:
        changed = False
        for node in walk.nodes(self.state.model.graph):
            if node.domain or node.op_type == "Constant":
                continue
            for value in node.outputs:
                tensor = _integers(value)
                if tensor is not None and self.state.journal.fire(RULE, walk.node_label(node)):
                    self.state.journal.detail([node])
                    self._replace(value, tensor)
                    changed = True
        return changed

    def _refuse(self, node: ir.Node, why: str) -> None:
        self._refused.add(node)
        self.state.journal.refuse(RULE, walk.node_label(node), why)

    def _accept(self, plan: FoldPlan, results: Mapping[ir.Value, ir.TensorProtocol]) -> bool:
        changed = False
        for node in plan.nodes:
            found = {value: results[value] for value in node.outputs if value in results}
            wrong = next((why for value, tensor in found.items() if (why := _mismatch(value, tensor))), "")
            if wrong:
                self._refuse(node, wrong)
                continue
            outside = {value: tensor for value, tensor in found.items() if value.uses() or value.is_graph_output()}
            if not outside or not self.state.journal.fire(RULE, walk.node_label(node)):
                continue
            self.state.journal.detail([node])
            for value, tensor in outside.items():
                self._replace(value, tensor)
            changed = True
        self.state.room -= plan.growth
        self._added += plan.growth
        return changed

    def _replace(self, value: ir.Value, tensor: ir.TensorProtocol) -> None:
        """Replaces the value by an initializer, which gets its name unless another graph has the same name. A graph
        output becomes the result of a Constant, because a node must make it."""
        self.state.stale.update(value.consumers())
        maker = value.producer()
        if value.is_graph_output() and maker is not None and maker.graph is not None:
            tensor.name = value.name
            constant = ir.node("Constant", [], {"value": tensor})
            constant.outputs[0].type, constant.outputs[0].shape = ir.TensorType(tensor.dtype), shape(tensor)
            provenance.inherit([constant], [maker])
            maker.graph.insert_before(maker, constant)
            take_over(value, constant.outputs[0])
            return
        graph = self.state.model.graph
        names = self._names = self._names or Names(self.state.model)
        name = value.name or names.free("folded")
        if names.is_shared(name):
            name = names.free(name)
        else:
            value.name = names.free(f"{name}_folded")
        tensor.name = name
        new = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape(tensor), const_value=tensor)
        new.meta[DECLARED] = value.meta.get(DECLARED)
        graph.register_initializer(new)
        value.replace_all_uses_with(new)


def _tensor_bytes(value: ir.Value) -> int:
    tensor = const_tensor(value)
    return tensor.nbytes if tensor is not None else 0


def _mismatch(value: ir.Value, tensor: ir.TensorProtocol) -> str:
    """Returns the difference between a result and the inferred dtype and shape; "" if they agree."""
    if tensor.dtype != value.dtype:
        return f"its result is {tensor.dtype.name.lower()}, but {str(value.dtype).lower()} was inferred"
    shape = tuple(tensor.shape.numpy())
    inferred = facts.dims(value)
    if inferred is not None:
        fits = len(inferred) == len(shape) and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(inferred, shape, strict=True)
        )
        return "" if fits else f"its result has the shape {list(shape)}, but {list(inferred)} was inferred"
    maker = value.producer()
    inputs = maker.inputs if maker is not None else ()
    room = sum(_tensor_bytes(v) for v in inputs if v is not None and facts.is_constant(v)) + _SMALL
    return "" if tensor.nbytes <= room else f"its result would make the weights {tensor.nbytes - room:,} bytes larger"


def _integers(value: ir.Value) -> ir.TensorProtocol | None:
    """Returns the known elements of an integer value of rank 0 or 1 as a tensor; None if an element is unknown or the
    value is not read."""
    if value.dtype not in _INTEGERS or value.shape is None or len(value.shape) > 1:
        return None
    if not value.uses() and not value.is_graph_output():
        return None
    elements = facts.integers(value)
    if elements is None or not all(isinstance(element, int) for element in elements):
        return None
    shape = (len(elements),) if len(value.shape) else ()
    size = value.shape[0] if len(value.shape) else 1
    if (isinstance(size, int) and size != len(elements)) or 8 * len(elements) > _SMALL:
        return None
    kind = _INTEGERS[value.dtype]
    info = np.iinfo(kind)
    if any(not info.min <= int(element) <= info.max for element in elements):
        return None
    return ir.Tensor(np.array([int(element) for element in elements], kind).reshape(shape), name=value.name)
