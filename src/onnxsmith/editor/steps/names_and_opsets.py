"""`rename`, `strip`, `opset`: change names, texts and the opset."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import problem
from onnxsmith.base.words import listed, several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure import fresh, quantization_annotations, tensor_paths, versions, walk
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.names import rename_ports, rename_symbols


@dataclass(frozen=True)
class Rename(Step):
    """Renames one thing to `to`: `tensor` (graph inputs and outputs are tensors), `node`, or the symbolic dimension
    `dim`. The numbers stay the same."""

    first = ("tensor", "to")

    tensor: Any = None
    to: str = ""
    node: Any = None
    dim: str | None = None

    def apply(self, work: Work) -> str:
        chosen = [name for name in ("tensor", "node", "dim") if getattr(self, name) is not None]
        if len(chosen) != 1 or not isinstance(self.to, str) or not self.to:
            raise problem(
                "edit/step-argument",
                "rename needs one of tensor, node and dim, and a new name in `to`",
                why=f"the step has {', '.join(chosen) or 'none of them'} and to = {self.to!r}",
                fix='write tensor = "x", to = "image"',
            )
        return getattr(self, f"_{chosen[0]}")(work)  # type: ignore[no-any-return]

    def _node(self, work: Work) -> str:
        node = work.find.node(self.node)
        if any(one.name == self.to and one is not node for one in walk.all_nodes(work.model)):
            free = fresh.unused(self.to, {node.name for node in walk.all_nodes(work.model)})
            raise problem(
                "edit/name-taken",
                f"another node is called {self.to!r}",
                fix=f"choose a name that is free, such as {free}",
            )
        old, node.name = walk.node_label(node), self.to
        return f"node {old} → {self.to}"

    def _tensor(self, work: Work) -> str:
        value = work.find.tensor(self.tensor)
        old = value.name or ""
        taken = [place for place in tensor_paths.places(work.model) if place.value.name == self.to]
        if taken and taken[0].value is not value:
            raise problem(
                "edit/name-taken",
                f"another tensor is called {self.to!r}",
                why=_said(taken[0]),
                fix=f"choose a name that is free, such as {work.names.free(self.to)}, or rename the other tensor first",
            )
        graph = work.model.graph
        if value.is_graph_output() and value.is_graph_input() and value in graph.inputs:
            # One value is both: the input is renamed, and the output keeps its name by an Identity.
            at = [index for index, one in enumerate(graph.outputs) if one is value]
            rename_ports(
                work.model,
                [self.to if one is value else one.name or "" for one in graph.inputs],
                [one.name or "" for one in graph.outputs],
            )
            assert all(graph.outputs[index].name == old for index in at)
            work.inputs[self.to] = work.inputs.pop(old, None)
            return f"input {old} → {self.to}; the output keeps its name"
        value.name = self.to
        quantization_annotations.rename(work.model, old, self.to)
        for ports, held in ((work.inputs, graph.inputs), (work.outputs, graph.outputs)):
            if value in held:
                ports[self.to] = ports.pop(old, None)
        return f"tensor {old} → {self.to}"

    def _dim(self, work: Work) -> str:
        assert self.dim is not None
        known = symbols(signature(work.model))
        if self.dim not in known:
            near = tensor_paths.near(self.dim, list(known))
            raise problem(
                "edit/no-match",
                f"no symbolic dimension is called {self.dim!r}",
                why=f"the model has {listed(known) or 'none'}",
                fix=f"write {' or '.join(map(repr, near[:1] or known))}" if known else "leave the step out",
            )
        if self.to in known:
            raise problem(
                "edit/name-taken",
                f"another dimension is called {self.to!r}",
                why="two dimensions of the same name must have the same size",
                fix=f"choose a name that is free, such as {fresh.unused(self.to, known)}",
            )
        rename_symbols(work.model, {self.dim: self.to})
        return f"dimension {self.dim} → {self.to}"


def _said(place: tensor_paths.Place) -> str:
    """Returns a description of a tensor's role in the model."""
    value, node = place.value, place.value.producer()
    made = "an initializer"
    if node is not None:
        made = f"the result of {f'{node.name} ({walk.op_name(node)})' if node.name else walk.op_name(node)}"
    if value.is_graph_input():
        made = "a graph input" if not place.bodies else "an input"
    where = f" of {'/'.join(place.path)}" if place.bodies else ""
    output = ", and an output of that body" if place.bodies else ", and a graph output"
    return f"it is {made}{where}" + (output if value.is_graph_output() else "")


KINDS = ("docs", "provenance", "metadata", "shapes")


@dataclass(frozen=True)
class Strip(Step):
    """Removes `what`, one or several of: docs (doc strings), provenance (the origin of nodes: metadata of nodes and
    values), metadata (of the model), shapes (declared shapes of intermediate tensors). The outputs keep their
    numbers."""

    first = ("what",)

    what: str | list[str] | tuple[str, ...] = ("docs", "provenance")

    def apply(self, work: Work) -> str:
        kinds = [self.what] if isinstance(self.what, str) else list(self.what)
        wrong = [kind for kind in kinds if kind not in KINDS]
        if wrong or not kinds:
            raise problem(
                "edit/step-argument",
                f"strip cannot remove {', '.join(map(repr, wrong)) or 'nothing'}",
                why=f"it removes {', '.join(KINDS)}; it keeps the weights, because the model computes with them"
                if "weights" in wrong
                else f"it removes {', '.join(KINDS)}",
                fix=_kinds_to_write([kind for kind in kinds if kind not in wrong], wrong),
            )
        return ", ".join(several(_REMOVE[kind](work.model), _NOUNS[kind]) for kind in kinds)


def _kinds_to_write(right: list[str], wrong: list[str]) -> str:
    """Returns the fix for kinds that are not known: those with a similar name in their place, else an example."""
    near = [(near_names(str(kind), KINDS, 1) or [""])[0] for kind in wrong]
    kept = list(dict.fromkeys([*right, *filter(None, near)]))
    if kept:
        return f"write what = {json.dumps(kept[0] if len(kept) == 1 else kept)}"
    return f'choose among {", ".join(KINDS)}, for example what = "{KINDS[0]}"'


def _docs(model: ir.Model) -> int:
    count = 0
    holders: list[Any] = [
        model,
        *walk.graphs(model),
        *model.functions.values(),
        *walk.all_nodes(model),
        *walk.values(model),
    ]
    for one in holders:
        if one.doc_string:
            one.doc_string, count = None, count + 1
    for node in walk.all_nodes(model):
        for attribute in node.attributes.values():
            if attribute.doc_string:
                attribute.doc_string, count = None, count + 1
    return count


def _provenance(model: ir.Model) -> int:
    graphs = [*walk.graphs(model), *model.functions.values()]
    holders: list[Any] = [*walk.all_nodes(model), *walk.values(model), *graphs]
    return sum(_cleared(one.metadata_props) for one in holders)


def _metadata(model: ir.Model) -> int:
    return _cleared(model.metadata_props)


def _cleared(texts: dict[str, str]) -> int:
    count = len(texts)
    texts.clear()
    return count


def _shapes(model: ir.Model) -> int:
    count = 0
    kept = {value for graph in walk.graphs(model) for value in (*graph.inputs, *graph.outputs)}
    for node in walk.all_nodes(model):
        for value in node.outputs:
            if value not in kept and value.shape is not None and isinstance(value.type, ir.TensorType):
                value.shape, value.type, count = None, None, count + 1
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value not in kept and value.type is not None and value.const_value is not None:
                value.shape, value.type, count = None, None, count + 1
    return count


_NOUNS = {
    "docs": "doc string",
    "provenance": "provenance text",
    "metadata": "metadata text",
    "shapes": "declared shape",
}
_REMOVE = {"docs": _docs, "provenance": _provenance, "metadata": _metadata, "shapes": _shapes}


@dataclass(frozen=True)
class Opset(Step):
    """Converts the model to opset `to`, up or down, and writes it in IR version `ir_version`. By default this is the
    version that the opset came with, or a later one that the model needs. The outputs keep their numbers."""

    first = ("to",)

    to: int
    ir_version: int | None = None

    def apply(self, work: Work) -> str:
        before, ir_before = opset_conversion.of(work.model), work.model.ir_version
        made = opset_conversion.convert(work.model, self.to, asked_by="`onnxsmith opset MODEL {opset} -o OUT`")
        least, newest = versions.least_ir(made), versions.newest().ir
        wanted = self.ir_version
        if wanted is None:
            wanted = ir_before if made is work.model else least
        elif not least <= wanted <= newest:
            raise problem(
                "edit/ir-version",
                f"the model cannot be written in IR version {wanted}",
                why=f"opset {self.to} and the content of the model need at least IR version {least}, and the "
                f"installed onnx writes at most {newest}",
                fix=f"choose an IR version from {least} to {newest}, or leave the IR version out",
            )
        if made is not work.model:
            work.rewritten += opset_conversion.rewritten(work.model, made)
            work.become(made)
        work.model.ir_version = wanted
        said = f", IR version {ir_before} → {wanted}" if wanted != ir_before else ""
        return f"opset {before} → {self.to}{said}"
