"""Reads a model with a broken graph, so that the page can show the faults. Viewing runs nothing, so the model need not
be valid.

A model that cannot be read is still refused: a file that is not ONNX, a newer version, a damaged tensor, external data
outside the folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import Source, load, load_broken
from onnxsmith.graph.reading.weights import readable
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer import scene
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.numbering import in_order

_WEIGHTS = {"model/external-missing", "model/external-damaged"}
_SHOWN = _WEIGHTS | {
    "model/cyclic", "model/unsorted", "model/undefined-input", "model/undefined-output", "model/no-graph",
    "model/expands",
}  # fmt: skip
"""Names the problems of graphs that can still be drawn."""
MISSING, UNDEFINED, EARLY, CYCLE = "reads missing weights", "reads what nothing makes", "stands too early", "in a cycle"
CLASSES = (MISSING, EARLY, UNDEFINED, CYCLE)
"""Lists the kinds of faults, the worst last."""


@dataclass(eq=False)
class Faults:
    """Holds the faults of a model. `marks` are, by node, the kind of fault and a text."""

    problem: Problem
    marks: dict[ir.Node, tuple[str, str]] = field(default_factory=dict)
    unmade: list[str] = field(default_factory=list)
    """Lists the outputs of the main graph that no node computes, so that no node can be marked for them."""

    @property
    def of_graph(self) -> bool:
        """Whether the graph itself is broken, so that no shapes can be inferred."""
        return self.problem.id not in _WEIGHTS

    def lines(self) -> list[str]:
        """Returns the lines above the picture: the first fault, and the number of nodes with each kind of fault."""
        said = [self.problem.what, self.problem.why, f"to mend it: {self.problem.fix}" if self.problem.fix else ""]
        counts = {one: sum(kind == one for kind, _ in self.marks.values()) for one in reversed(CLASSES)}
        marked = ", ".join(f"{several(count, 'node')}: {kind}" for kind, count in counts.items() if count)
        lines = [f"the file is broken: {'; '.join(text for text in said if text)}"]
        if self.unmade:
            one = len(self.unmade) == 1
            lines.append(f"no node computes the graph {'output' if one else 'outputs'} {', '.join(self.unmade)}")
        return [*lines, f"marked are {marked}"] if marked else lines

    def overlay(self, shown: Viewed) -> scene.Overlay | None:
        """Returns the marks as colours of the nodes; None if there are no marks."""
        numbers = sorted((shown.nodes[node], mark) for node, mark in self.marks.items() if node in shown.nodes)
        if not numbers:
            return None
        kinds = {kind for _, (kind, _) in numbers}
        classes = [kind for kind in CLASSES if kind in kinds]
        return scene.Overlay(
            "faults",
            0,
            "",
            "classes",
            classes,
            "high",
            [number for number, _ in numbers],
            [classes.index(kind) for _, (kind, _) in numbers],
            [f"{kind}: {said}" for _, (kind, said) in numbers],
            "the file itself",
        )


def read(source: Source) -> tuple[ir.Model, Faults | None]:
    """Loads a model. If the graph is broken, also returns its faults. Cycles are opened: the first node of a cycle then
    reads a new value of the same name that no node computes.

    Raises:
        OnnxsmithError: `model/…` if the file cannot be shown.
    """
    try:
        return load(source), None
    except OnnxsmithError as error:
        if error.problem.id not in _SHOWN or not isinstance(source, str | Path):
            raise
        try:
            model = load_broken(source)
            found = Faults(error.problem)
            _mark(model, found)
        except (OnnxsmithError, OSError, ValueError):  # such as external data with an impossible location
            raise error from None
        return model, found


def _mark(model: ir.Model, found: Faults) -> None:
    for graph in walk.graphs_and_functions(model):
        early, cycles = in_order(graph)
        for node, maker in early:
            found.marks[node] = EARLY, f"this node stands before {node_label(maker)}, whose result it reads"
        for cycle in cycles:
            said = " → ".join(node_label(one) for one in [*cycle[:6], *(cycle[:1] if len(cycle) <= 6 else ())])
            said += " → …" if len(cycle) > 6 else ""
            found.marks.update((node, (CYCLE, said)) for node in cycle)
    found.unmade = [value.name or "" for value in model.graph.outputs if captures.is_undefined(value)]
    for node, name, given in _bodies(model):
        unmade = [value.name or "" for value in given if captures.is_undefined(value)]
        if unmade and node not in found.marks:
            found.marks[node] = UNDEFINED, f"in {name}, no node computes the result {', '.join(unmade)}"
    for node in walk.all_nodes(model):
        if node not in found.marks:
            found.marks.update((node, mark) for mark in _of(node))


def _bodies(model: ir.Model) -> Iterator[tuple[ir.Node, str, Sequence[ir.Value]]]:
    """Yields the branches, bodies and functions of nodes, with their names and outputs."""
    for node in walk.all_nodes(model):
        for name, graph in walk.named_subgraphs(node):
            yield node, name, graph.outputs
        function = model.functions.get(node.op_identifier())
        if function is not None:
            yield node, f"the function {function.name}", function.outputs


def _of(node: ir.Node) -> Iterator[tuple[str, str]]:
    """Yields the faults of a node's inputs."""
    read = [value for value in node.inputs if value is not None]
    unknown = [value.name or "" for value in read if captures.is_undefined(value)]
    if unknown:
        yield UNDEFINED, f"nothing makes {', '.join(unknown)}"
        return
    absent = [one for one in read if one.const_value is not None and not _whole(one.const_value)]
    if absent:
        files = dict.fromkeys(str(getattr(one.const_value, "location", "")) for one in absent)
        yield MISSING, f"{', '.join(one.name or '' for one in absent)}: the values are missing in {', '.join(files)}"


def _whole(tensor: ir.TensorProtocol) -> bool:
    """Whether all values of the tensor are present."""
    if not isinstance(tensor, ir.ExternalTensor) or not readable(tensor):
        return readable(tensor)
    return (tensor.offset or 0) + tensor.nbytes <= Path(tensor.path).stat().st_size
