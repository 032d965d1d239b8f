"""A model while it is edited: what its values were called before, and which values the edits change on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.editing.selecting import Selecting
from onnxsmith.model.graph import walk
from onnxsmith.model.graph.fresh import Names


@dataclass
class Work:
    """The state of an edit.

    `changed` holds the values whose numbers an edit changes on purpose, with the step that does so; what depends on
    them is not compared. `original` maps the values of the main graph to their names in the original model. `outputs`
    and `inputs` map the names of ports to their names in the original; a new port has None. `adapt_reference` and
    `adapt_candidate` change copies of the two models before they are compared, where their interfaces differ.
    """

    model: ir.Model
    changed: dict[ir.Value, str] = field(default_factory=dict)
    original: dict[ir.Value, str] = field(default_factory=dict)
    inputs: dict[str, str | None] = field(default_factory=dict)
    outputs: dict[str, str | None] = field(default_factory=dict)
    adapt_reference: list[Callable[[ir.Model], None]] = field(default_factory=list)
    adapt_candidate: list[Callable[[ir.Model], None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    step: str = ""

    def __post_init__(self) -> None:
        graph = self.model.graph
        values = (*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs))
        self.original = {value: value.name for value in values if value.name}
        self.inputs = {value.name or "": value.name or "" for value in graph.inputs}
        self.outputs = {value.name or "": value.name or "" for value in graph.outputs}

    @property
    def find(self) -> Selecting:
        """Finds nodes and tensors by selectors."""
        return Selecting(self.model)

    @property
    def names(self) -> Names:
        """Makes names that no value has."""
        return Names(self.model)

    def change(self, *values: ir.Value) -> None:
        """Notes that the current step changes the numbers of these values on purpose."""
        self.changed.update(dict.fromkeys(values, self.step))

    def become(self, model: ir.Model) -> None:
        """Replaces the model by a converted copy. Values keep their meaning by name."""
        old = {value.name or "": self.original.get(value) for value in self.original}
        changed = {value.name or "": step for value, step in self.changed.items()}
        self.model = model
        graph = model.graph
        values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]
        self.original = {value: name for value in values if (name := old.get(value.name or ""))}
        self.changed = {value: changed[value.name] for value in values if value.name in changed}

    def affected(self) -> set[ir.Value]:
        """The values that depend on a changed value."""
        found = set(self.changed)
        for function in self.model.functions.values():
            if any(value in found for node in walk.nodes(function) for value in node.outputs):
                found |= {v for n in walk.all_nodes(self.model) if n.op_identifier() == function.identifier() for v in n.outputs}
        _spread(self.model.graph, found)
        return found


def _spread(graph: ir.Graph, found: set[ir.Value]) -> bool:
    """Adds what depends on `found`, in the order of the nodes; returns whether a value of the graph did."""
    from onnxsmith.model.graph import captures

    some = False
    for node in graph:
        reads = any(value in found for value in node.inputs if value is not None)
        for inner in captures.subgraphs(node):
            if reads:
                found.update(inner.inputs)
            reads = _spread(inner, found) or reads
        if reads or any(value in found for value in node.outputs):
            found.update(node.outputs)
            some = True
    return some or any(value in found for value in graph.outputs)
