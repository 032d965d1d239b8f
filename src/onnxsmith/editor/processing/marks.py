"""Marks the nodes of processing in a model, finds them again, and takes them out.

Each node has the metadata `onnxsmith.processing`, the name of its processing: "preprocess x". One node of each
processing also has `onnxsmith.processing.restores`, which is the interface without it, as JSON: the input that the
processing replaced, or the outputs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.graph_cleanup import remove
from onnxsmith.graph.structure import walk

MARK = "onnxsmith.processing"
RESTORES = "onnxsmith.processing.restores"
BEFORE, AFTER = "preprocess", "postprocess"


@dataclass(frozen=True)
class Processing:
    """One processing in a model: its name, its nodes in graph order, and what taking it out restores."""

    name: str
    nodes: tuple[ir.Node, ...]
    end: ir.Node
    """The node that has the interface. The last one of a preprocessing: it gives what was an input."""
    restores: Mapping[str, Any]

    @property
    def is_before(self) -> bool:
        """Whether it stands before the model, not behind it."""
        return self.name.startswith(BEFORE)


def port(value: ir.Value, index: int) -> dict[str, Any]:
    """Returns an input or output as JSON has it."""
    dims = None if value.shape is None else [dim if isinstance(dim, int) else dim.value for dim in value.shape]
    return {"name": value.name, "dtype": value.dtype.name if value.dtype else None, "shape": dims, "index": index}


def mark(nodes: Sequence[ir.Node], end: ir.Node, name: str, restores: Mapping[str, Any]) -> None:
    """Writes the marks."""
    for node in nodes:
        node.metadata_props[MARK] = name
    end.metadata_props[RESTORES] = json.dumps(restores, ensure_ascii=False)


def found(model: ir.Model) -> list[Processing]:
    """Returns the processing in the main graph of a model.

    Raises:
        OnnxsmithError: `edit/no-processing` if its metadata cannot be read.
    """
    nodes: dict[str, list[ir.Node]] = {}
    for node in model.graph:
        if MARK in node.metadata_props:
            nodes.setdefault(node.metadata_props[MARK], []).append(node)
    return [_read(name, held) for name, held in nodes.items()]


def _read(name: str, nodes: list[ir.Node]) -> Processing:
    ends = [node for node in nodes if RESTORES in node.metadata_props]
    try:
        held: dict[str, Any] = json.loads(ends[0].metadata_props[RESTORES] if len(ends) == 1 else "{}")
        ports = held["outputs"] if name.startswith(AFTER) else [held["input"], *held["outputs"]]
        for one in ports:
            assert isinstance(one["name"], str)
            int(one["index"])
            _shape(one["shape"])
            _type(one["dtype"])
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
        raise damaged(name, f"the metadata {RESTORES} of its nodes is missing or damaged") from error
    return Processing(name, tuple(nodes), ends[0], held)


def damaged(name: str, why: str) -> OnnxsmithError:
    """Returns the problem that processing cannot be taken out."""
    return problem(
        "edit/no-processing",
        f"the processing {name!r} cannot be taken out",
        where=name,
        why=why,
        fix="take the processing out of the file that `onnxsmith edit` wrote, before other changes",
    )


def _shape(dims: Any) -> ir.Shape | None:
    return None if dims is None else ir.Shape(dims)


def _type(dtype: str | None) -> ir.TensorType | None:
    return None if dtype is None else ir.TensorType(ir.DataType[dtype])


def declared(value: ir.Value, held: Mapping[str, Any]) -> ir.Value:
    """Gives a value the name, dtype and shape of a port, and returns it."""
    value.name, value.type, value.shape = held["name"], _type(held["dtype"]), _shape(held["shape"])
    return value


def picture_of(model: ir.Model, processing: Processing) -> tuple[ir.Value, list[ir.Node]]:
    """Returns the picture that a preprocessing reads, and the nodes between it and what was the input, the last first.

    Raises:
        OnnxsmithError: `edit/no-processing` if there are several inputs, or none.
    """
    nodes: dict[ir.Node, None] = {}
    pictures: dict[ir.Value, None] = {}
    left = [processing.end]
    while left:
        node = left.pop(0)
        nodes.pop(node, None)
        nodes[node] = None
        for value in node.inputs:
            producer = value.producer() if value is not None else None
            if producer is not None:
                left.append(producer)
            elif value is not None and value in model.graph.inputs and not value.is_initializer():
                pictures[value] = None
    if len(pictures) != 1:
        raise damaged(processing.name, f"it reads {len(pictures)} inputs, not one picture")
    order = {node: at for at, node in enumerate(model.graph)}
    return next(iter(pictures)), sorted(nodes, key=lambda node: -order.get(node, -1))


def take_out(model: ir.Model, processing: Processing) -> tuple[list[ir.Value], list[ir.Value]]:
    """Takes processing out, and restores the inputs or outputs. Returns the ports that were removed, and those that
    were restored.

    Raises:
        OnnxsmithError: `edit/no-processing` if something else reads a tensor of the processing.
    """
    return _take_input(model, processing) if processing.is_before else _take_outputs(model, processing)


def _take_input(model: ir.Model, processing: Processing) -> tuple[list[ir.Value], list[ir.Value]]:
    graph = model.graph
    picture, nodes = picture_of(model, processing)
    end = processing.end.outputs[0]
    inner = [value for node in nodes for value in node.outputs if value is not end]
    _refuse_readers(processing, nodes, [*inner, picture])
    held = processing.restores["input"]
    input_ = ir.Value(doc_string=picture.doc_string, metadata_props=dict(picture.metadata_props))
    end.name = None
    end.replace_all_uses_with(declared(input_, held), replace_graph_outputs=True)
    graph.inputs[list(graph.inputs).index(picture)] = input_
    _remove(model, nodes)
    model.metadata_props.update(processing.restores["metadata"])
    version = int(processing.restores["ir_version"])
    if version < walk.FIRST_WITH_CONSTANTS and all(one.is_graph_input() for one in graph.initializers.values()):
        model.ir_version = version
    return [picture], [input_]


def shapes_before(model: ir.Model, processing: Processing) -> dict[ir.Value, ir.Shape | None]:
    """Returns the shapes that the outputs had before a preprocessing, which fixed the sizes of the picture."""
    held = {one["name"]: _shape(one["shape"]) for one in processing.restores["outputs"]}
    pairs = {value: held[value.name] for value in model.graph.outputs if value.name in held}
    return {value: shape for value, shape in pairs.items() if _rank(shape) == _rank(value.shape)}


def _rank(shape: ir.Shape | None) -> int | None:
    return None if shape is None else len(shape)


def _take_outputs(model: ir.Model, processing: Processing) -> tuple[list[ir.Value], list[ir.Value]]:
    graph = model.graph
    made = [value for node in processing.nodes for value in node.outputs]
    gone = [value for value in graph.outputs if value in made]
    _refuse_readers(processing, processing.nodes, [value for value in made if value not in gone])
    values = {value.name: value for node in graph for value in node.outputs} | {one.name: one for one in graph.inputs}
    values |= {value.name: value for value in graph.initializers.values()}
    lost = [one["name"] for one in processing.restores["outputs"] if one["name"] not in values]
    if lost:
        raise damaged(processing.name, f"no tensor is called {lost[0]!r} any more")
    kept = [value for value in graph.outputs if value not in gone]
    restored = []
    for one in sorted(processing.restores["outputs"], key=lambda one: int(one["index"])):
        value = values[one["name"]]
        if not processing.restores["kept"]:
            kept.insert(min(int(one["index"]), len(kept)), declared(value, one))
        restored.append(value)
    graph.outputs.clear()
    graph.outputs.extend(kept)
    _remove(model, list(reversed(processing.nodes)))
    for key in processing.restores["labels"]:
        model.metadata_props.pop(key, None)
    return gone, restored


def _refuse_readers(processing: Processing, nodes: Iterable[ir.Node], values: Iterable[ir.Value]) -> None:
    """Refuses if a node outside of the processing reads one of its tensors, or if such a tensor is an output."""
    own = set(nodes)
    for value in values:
        others = [walk.node_label(use.node) for use in value.uses() if use.node not in own]
        if others or value.is_graph_output():
            reader = f"node {others[0]} reads" if others else "an output is"
            raise damaged(processing.name, f"{reader} its tensor {value.name!r}")


def _remove(model: ir.Model, nodes: Sequence[ir.Node]) -> None:
    """Removes nodes, consumers first, and the constants that only they read."""
    read = [value for node in nodes for value in node.inputs if value is not None]
    remove(nodes)
    for value in read:
        if value.is_initializer() and not value.uses() and not value.is_graph_output():
            model.graph.initializers.pop(value.name or "", None)


def cut(model: ir.Model, name: str, renamed: Mapping[str, str]) -> ir.Model:
    """Returns a model of the comparison without this processing, but with the names of its ports as they are. `renamed`
    maps names of outputs to the tensors that were outputs before. The unread nodes stay; the comparison removes
    them."""
    processing = next((one for one in found(model) if one.name == name), None)
    if processing is None:
        return model
    graph = model.graph
    if processing.is_before:
        picture, _ = picture_of(model, processing)
        end, input_ = processing.end.outputs[0], ir.Value()
        declared(input_, {**processing.restores["input"], "name": picture.name})
        graph.inputs[list(graph.inputs).index(picture)] = input_
        picture.name = None
        copy = ir.node("Identity", [input_])
        copy.outputs[0].name, end.name = end.name, None
        copy.outputs[0].type, copy.outputs[0].shape = input_.type, input_.shape
        end.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
        graph.insert_before(processing.end, copy)
        return model
    values = {value.name: value for node in graph for value in node.outputs} | {one.name: one for one in graph.inputs}
    for at, value in enumerate(graph.outputs):
        if value.name and value.name in renamed:
            copy = ir.node("Identity", [values[renamed[value.name]]])
            copy.outputs[0].name, value.name = value.name, None
            copy.outputs[0].type = copy.inputs[0].type  # type: ignore[union-attr]
            copy.outputs[0].shape = copy.inputs[0].shape  # type: ignore[union-attr]
            graph.append(copy)
            graph.outputs[at] = copy.outputs[0]
    return model
