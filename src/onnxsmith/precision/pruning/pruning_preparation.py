"""Prepares the model through which channels are followed: constants become initializers, functions are inlined, moved
weights are stored, and sizes that are known before a run become constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.precision.pruning.channel_links import is_weight
from onnxsmith.precision.pruning.moved_weights import Moved, moved
from onnxsmith.precision.weight_counts import own_weights, said_constant


@dataclass(frozen=True)
class Working:
    """The model with inferred shapes, and notes on its preparation."""

    model: ir.Model
    notes: tuple[str, ...]
    is_rewritten: bool = False
    """Whether simplifier rules changed nodes, or weights were computed."""
    moved: Moved = field(default_factory=Moved)
    """The weights whose elements were moved from other stored tensors."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """The names of the copies of shared vectors, each with the name of its original."""


RULES = ("algebra/transpose-between-reshapes", "algebra/zero-state")
"""Rules that change no weight. The first separates axes that exporters join for a transpose (attention). The second
removes initial states of zeros, whose sizes are computed (recurrent layers)."""


def working(loaded: ir.Model, *, rewritten: bool = True) -> Working:
    """Returns a prepared copy of the model, which shares its weights. Unless `rewritten` is off, a few simplifier rules
    remove nodes that hide channels; the result is not compared here."""
    made, inlining = _without_functions(cloned(own_weights(loaded)))
    note = _replaceable(loaded)
    _own_defaults(made)
    _lift(made)
    _bypass(made)
    names = {value.name: node.name for node in made.graph for value in node.outputs if node.name}
    places = moved(made) if rewritten else Moved()
    made, part = simplified(made, only=RULES, in_place=True) if rewritten else (made, None)
    for node in made.graph:
        node.name = next((names[value.name] for value in node.outputs if value.name in names), node.name)
    _type(made)
    model, not_inferred = inferred(made)
    _fix_sizes(model)
    copies = _separate(model)
    for node, name in zip(model.graph, _names(model), strict=True):
        node.name = name
    notes = tuple(one for one in (inlining, not_inferred, note) if one)
    fired = part is not None and any(entry.rule in RULES for entry in part.fired)
    return Working(model, notes, fired or bool(places.steps), places, copies)


def _type(model: ir.Model) -> None:
    """Gives each initializer the type and the shape of its tensor."""
    for value in model.graph.initializers.values():
        if value.const_value is not None:
            value.type = ir.TensorType(value.const_value.dtype)
            value.shape = ir.Shape(value.const_value.shape.numpy())


def _without_functions(model: ir.Model) -> tuple[ir.Model, str]:
    """Returns the model with its functions inlined, and a note. Nodes without a name in the file are named by their
    results, which identify the call."""
    calls = Counter(node.op_identifier()[1] for node in model.graph if node.op_identifier() in model.functions)
    known = {node.name or "" for node in walk.all_nodes(model)} - {""}
    made, trouble = inlined(model)
    if trouble or not calls:
        return made, trouble
    for node in made.graph:
        if not any((node.name or "").endswith(name) for name in known):
            node.name = f"{node.op_type}:{node.outputs[0].name}"
    said = ", ".join(f"{count} of {name}" for name, count in calls.items())
    return made, (
        f"calls of functions were replaced by their nodes ({said}): the layers of a function are now named by their "
        "results (call/result), and the pruned file has no functions"
    )


def _replaceable(loaded: ir.Model) -> str:
    """Notes that weights were graph inputs, because a caller that replaces them would need pruned weights."""
    return said_constant(sum(value.name in loaded.graph.initializers for value in loaded.graph.inputs))


def _own_defaults(model: ir.Model) -> None:
    """Removes the weights from the graph inputs."""
    graph = model.graph
    for value in [value for value in graph.inputs if value.name in graph.initializers]:
        graph.inputs.remove(value)


def _names(model: ir.Model) -> list[str]:
    """Returns a unique name for each node, for the report."""
    seen: set[str] = set()
    found = []
    for node in model.graph:
        name = node.name if node.name and node.name not in seen else f"{node.op_type}:{node.outputs[0].name}"
        seen.add(name)
        found.append(name)
    return found


def _lift(model: ir.Model) -> None:
    """Turns the Constant nodes of the main graph that hold tensors into initializers."""
    graph = model.graph
    outputs = set(graph.outputs)
    for node in list(graph):
        value = node.outputs[0] if node.op_type == "Constant" and not node.domain else None
        tensor = None if value is None else const_tensor(value)
        if value is None or tensor is None or value in outputs:
            continue
        _replace(graph, value, tensor)
        graph.remove(node, safe=True)


def _bypass(model: ir.Model) -> None:
    """Lets readers of a weight's Identity read the weight. Exporters write such an Identity if two layers have equal
    weights."""
    graph = model.graph
    outputs = set(graph.outputs)
    for node in list(graph):
        value = node.inputs[0] if node.op_type == "Identity" and not node.domain else None
        if value is None or not is_weight(value) or node.outputs[0] in outputs:
            continue
        for use in list(node.outputs[0].uses()):
            use.node.replace_input_with(use.idx, value)
        graph.remove(node, safe=True)


def _fix_sizes(model: ir.Model) -> None:
    """Turns integers that inference knows, sizes of axes and numbers computed from them, into initializers. Removes
    nodes that nothing reads then."""
    graph = model.graph
    outputs = set(graph.outputs)
    stale: list[ir.Node] = []
    for node in list(graph):
        for value in node.outputs:
            known = facts.integers(value) if value.dtype in _INTEGERS and value not in outputs else None
            if not known or not value.uses() or not all(isinstance(number, int) for number in known):
                continue
            shape = [] if value.shape is None or len(value.shape) == 0 else [len(known)]
            array = np.array(known, np.int64).reshape(shape)
            assert value.dtype is not None
            _replace(graph, value, ir.tensor(array, dtype=value.dtype))
            stale.append(node)
    _sweep(graph, stale, outputs)


_INTEGERS = {ir.DataType.INT64, ir.DataType.INT32}


def _sweep(graph: ir.Graph, stale: list[ir.Node], outputs: set[ir.Value]) -> None:
    """Removes nodes whose results nothing reads, and then the nodes that only those read."""
    while stale:
        node = stale.pop()
        if node.graph is not graph or any(value.uses() or value in outputs for value in node.outputs):
            continue
        makers = [value.producer() for value in node.inputs if value is not None]
        graph.remove(node, safe=True)
        stale += [maker for maker in makers if maker is not None]


def _replace(graph: ir.Graph, value: ir.Value, tensor: ir.TensorProtocol) -> None:
    """Lets the readers of a value read an initializer, which takes over its name."""
    made = ir.Value(name=value.name, const_value=tensor, shape=ir.Shape(tensor.shape.numpy()),
                    type=ir.TensorType(tensor.dtype))  # fmt: skip
    for use in list(value.uses()):
        use.node.replace_input_with(use.idx, made)
    value.name = None
    graph.initializers[made.name or ""] = made


def _separate(model: ir.Model) -> dict[str, str]:
    """Gives each reader of a shared vector, such as the bias of several layers, its own copy, so that one layer can
    lose channels while another keeps them. Returns the names of the copies, each with the name of its vector."""
    names = Names(model)
    copies: dict[str, str] = {}
    for value in list(model.graph.initializers.values()):
        tensor = value.const_value
        if tensor is None or value.is_graph_output() or tensor.dtype not in _FLOATS:
            continue
        if tensor.size <= 1 or tensor.size != max(tensor.shape.numpy()):
            continue
        for use in list(value.uses())[1:]:
            if use.node.graph is not model.graph:
                continue
            name = names.free(f"{value.name}_of_{use.node.outputs[0].name}")
            made = ir.Value(name=name, const_value=ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=name),
                            shape=ir.Shape(tensor.shape.numpy()), type=ir.TensorType(tensor.dtype))  # fmt: skip
            use.node.replace_input_with(use.idx, made)
            model.graph.initializers[name] = made
            copies[name] = value.name or ""
    return copies


def rejoined(model: ir.Model, copies: Mapping[str, str]) -> None:
    """Merges the copies of a vector that are still equal."""
    graph = model.graph
    kept: dict[tuple[str, bytes], ir.Value] = {}
    for name, original in [*((one, one) for one in dict.fromkeys(copies.values())), *copies.items()]:
        value = graph.initializers.get(name)
        if value is None or value.const_value is None or value.is_graph_output():
            continue
        same = kept.setdefault((original, np.asarray(value.const_value.numpy()).tobytes()), value)
        if same is not value:
            for use in list(value.uses()):
                use.node.replace_input_with(use.idx, same)
            del graph.initializers[name]


_FLOATS = {ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE}
