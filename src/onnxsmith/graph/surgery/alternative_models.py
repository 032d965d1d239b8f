"""Makes one model from two with the same inputs and outputs: an If runs either of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

import onnx_ir as ir

from onnxsmith.graph.shapes.dims import names_in
from onnxsmith.graph.structure import attribute_keys, captures, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import names

Condition = Callable[[ir.tape.Tape, Mapping[str, ir.Value]], ir.Value]
"""Writes the nodes of a condition onto the tape and returns the condition, one bool. Gets the inputs and node results
of the first graph by name, and may return one of them."""


def either(condition: Condition, first: ir.Model, second: ir.Model) -> ir.Model:
    """Returns a model that runs `first` if the condition holds, else `second`.

    Both have the same inputs, outputs, opsets and dtypes, in the same order; the names are those of `first`. Nodes that
    compute the same from the inputs in both models stay before the If, and so do nodes that the condition needs. Equal
    weights are stored once. Symbolic dimensions of inputs get their names in `first`. Other dimensions of `second` get
    new names, because one name could mean two sizes.
    """
    whole, other = cloned(first), cloned(second)
    _rename(other, whole)
    graph = whole.graph
    taken = Names(whole)
    outputs, others = list(graph.outputs), list(other.graph.outputs)
    graph.outputs.clear()
    other.graph.outputs.clear()
    same = {**_moved_weights(other, graph, taken), **_pairs(graph, other.graph)}
    others = [same.get(value, value) for value in others]
    tape = ir.tape.Tape()
    known = [*graph.inputs, *(value for node in graph for value in node.outputs)]
    chosen = condition(tape, {value.name or "": value for value in known})
    before = {value.producer() for value in same.values()} | _needed([chosen, *_read(tape)])
    made = {value for node in before if node is not None for value in node.outputs}
    is_either = [not (one is two and one in made) for one, two in zip(outputs, others, strict=True)]
    then_branch = _branch("then", graph, [node for node in graph if node not in before], _where(is_either, outputs))
    rest = [node for node in other.graph if not any(value in same for value in node.outputs)]
    else_branch = _branch("else", other.graph, rest, _where(is_either, others))
    branches = [ir.AttrGraph("then_branch", then_branch), ir.AttrGraph("else_branch", else_branch)]
    node = ir.Node("", "If", [chosen], branches, num_outputs=sum(is_either))
    if (asked := chosen.producer()) is not None:
        node.metadata_props.update(asked.metadata_props)  # the origin of the condition
    for value in tape.initializers:
        value.name = taken.free(value.name or "size")
        graph.register_initializer(value)
    graph.extend([*tape.nodes, node])
    for value in (value for one in tape.nodes for value in one.outputs):
        value.name = taken.free(value.name or "side")
    for value, one, two in zip(node.outputs, then_branch.outputs, else_branch.outputs, strict=True):
        value.name, value.type = taken.free(f"{one.name}_of_sides"), one.type
        value.shape = _common(one.shape, two.shape)
    results = iter(node.outputs)
    graph.outputs.extend(
        [next(results) if chosen_from else one for one, chosen_from in zip(outputs, is_either, strict=True)]
    )
    for domain, version in other.opset_imports.items():
        whole.opset_imports.setdefault(domain, version)
    for identifier, function in other.functions.items():
        whole.functions.setdefault(identifier, function)
    return whole


def _where(wanted: Sequence[bool], values: Sequence[ir.Value]) -> list[ir.Value]:
    return [value for value, is_wanted in zip(values, wanted, strict=True) if is_wanted]


def _read(tape: ir.tape.Tape) -> list[ir.Value]:
    """Returns the values that the nodes of a tape read."""
    return [value for node in tape.nodes for value in node.inputs if value is not None]


def _needed(values: Iterable[ir.Value]) -> set[ir.Node | None]:
    """Returns the nodes of a graph that these values depend on."""
    found: set[ir.Node | None] = set()
    todo = [value.producer() for value in values]
    while todo:
        node = todo.pop()
        if node is None or node in found:
            continue
        found.add(node)
        todo.extend(value.producer() for value in (*node.inputs, *captures.captured(node)) if value is not None)
    return found


def _rename(model: ir.Model, like: ir.Model) -> None:
    """Gives the dimensions of inputs the names that they have in the model `like`, and new names to all other
    dimensions and to the nodes."""
    symbols: dict[str, str] = {}
    for own, wanted in zip(model.graph.inputs, like.graph.inputs, strict=True):
        for old, new in zip(own.shape or (), wanted.shape or (), strict=False):
            if isinstance(old, ir.SymbolicDim) and isinstance(new, ir.SymbolicDim) and old.value and new.value:
                symbols[old.value] = new.value
    taken = _symbols(like)
    for name in sorted(_symbols(model) - symbols.keys()):
        symbols[name] = next(free for number in count(1) if (free := f"{name}_{number}") not in taken)
        taken.add(symbols[name])
    names.rename_symbols(model, symbols)
    known = {node.name for node in walk.all_nodes(like)}
    for node in walk.all_nodes(model):
        if node.name in known:
            node.name = f"{node.name}_other"


def _symbols(model: ir.Model) -> set[str]:
    """Returns the names in the symbolic dimensions of a model's values."""
    shapes = [value.shape for value in walk.values(model) if value.shape is not None]
    dims = {dim.value for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim)}
    return {name for dim in dims if dim is not None for name in names_in(dim)}


def _moved_weights(model: ir.Model, graph: ir.Graph, taken: Names) -> dict[ir.Value, ir.Value]:
    """Moves the model's initializers into `graph`, and gives the model's other values names that are free there. Leaves
    out initializers whose content `graph` has already; returns these with the initializers of `graph` to read
    instead."""
    stored = {key: value for value in graph.initializers.values() if (key := _content(value.const_value)) is not None}
    found: dict[ir.Value, ir.Value] = {}
    for value in list(model.graph.initializers.values()):
        key = _content(value.const_value)
        del model.graph.initializers[value.name or ""]
        if key is not None and key in stored:
            found[value] = stored[key]
            value.replace_all_uses_with(stored[key])
            continue
        value.name = taken.free(value.name or "weight")
        graph.register_initializer(value)
        if key is not None:
            stored[key] = value
    for inner in walk.main_graphs(model):
        nested = (*inner.inputs, *inner.initializers.values()) if inner is not model.graph else ()
        for value in (*nested, *(value for node in inner for value in node.outputs)):
            value.name = taken.free(value.name) if value.name else value.name
    return found


def _content(tensor: ir.TensorProtocol | None) -> tuple[object, ...] | None:
    """Returns the dtype, shape and a hash of the bytes; None for strings and for missing values."""
    if tensor is None or tensor.dtype == ir.DataType.STRING:
        return None
    return tensor.dtype, tuple(tensor.shape), hashlib.blake2b(tensor.tobytes()).digest()


def _pairs(graph: ir.Graph, other: ir.Graph) -> dict[ir.Value, ir.Value]:
    """Pairs values of `other` with equal values of `graph`: inputs, and results of nodes that compute the same from
    equal values. Makes the readers of the former read the latter."""
    found = dict(zip(other.inputs, graph.inputs, strict=True))
    for theirs, ours in found.items():
        theirs.replace_all_uses_with(ours)
    known: dict[object, ir.Node] = {}
    for node in graph:
        known.setdefault(_key(node), node)
    for node in other:
        twin = known.get(_key(node))
        if twin is None or walk.has_subgraphs(node) or _is_random(node):
            continue
        for theirs, ours in zip(node.outputs, twin.outputs, strict=True):
            found[theirs] = ours
            theirs.replace_all_uses_with(ours)
    return found


def _key(node: ir.Node) -> object:
    return node.op_identifier(), attribute_keys.of_holder(node), tuple(map(id, node.inputs)), len(node.outputs)


def _is_random(node: ir.Node) -> bool:
    return node.op_type in walk.RANDOM and not node.domain


def _branch(name: str, graph: ir.Graph, nodes: Sequence[ir.Node], outputs: Sequence[ir.Value]) -> ir.Graph:
    """Moves the nodes out of their graph into a branch. An output that no node of the branch makes gets an Identity."""
    graph.remove(nodes)
    made = {value for node in nodes for value in node.outputs}
    results: list[ir.Value] = []
    nodes = list(nodes)
    for value in outputs:
        if value in made and value not in results:
            results.append(value)
            continue
        node = ir.node("Identity", [value])
        copy = node.outputs[0]
        copy.name, copy.type, copy.shape = f"{value.name}_{name}", value.type, value.shape
        nodes.append(node)
        results.append(copy)
    return ir.Graph((), results, nodes=nodes, name=f"{name}_side")


def _common(one: ir.Shape | None, two: ir.Shape | None) -> ir.Shape | None:
    """Returns the common shape, with an unknown dimension on axes that differ."""
    if one is None or two is None or len(one) != len(two):
        return None
    return ir.Shape([a if a == b else None for a, b in zip(one, two, strict=True)])
