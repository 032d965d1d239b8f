"""Replaces calls of model-local functions by the functions' bodies, so that the tensors inside can be reached."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Set
from graphlib import TopologicalSorter

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned

_CALL = "onnxsmith.call"
"""Is the metadata key that marks a call during inlining; the inliner copies it to the nodes of the body."""
_MODULES = "onnxsmith.modules:"
"""Is the metadata key of a call during inlining that holds the torch modules around it."""
_NAME = "onnxsmith.name"
"""Is the metadata key of a function's value that holds its name inside the function."""


def inlined(model: ir.Model, *, only: Collection[ir.OperatorIdentifier] | None = None) -> tuple[ir.Model, str]:
    """Returns a copy of `model` (weights shared) without calls, and an empty text. On failure the calls stay, and the
    text is the reason. With `only`, calls of other functions stay.

    Values of a body are named after its call: `call/name`, with a number if that name is taken. The torch modules of a
    body's nodes are put inside the module of the call.
    """
    copy = cloned(model)
    if not copy.functions:
        return copy, ""
    gone = set(copy.functions) if only is None else set(only)
    name_outputs(copy, gone)
    own = {value for graph in walk.main_graphs(copy) for value in _values(graph)}
    results = set(copy.graph.outputs)
    kept = {value.name for value in results}
    for node in walk.all_nodes(copy):
        if node.op_identifier() in gone:
            node.metadata_props[_CALL] = walk.node_label(node).removeprefix("-> ")
            kept |= {value.name for value in node.outputs if value in own}
    for function in copy.functions.values():
        _own_outputs(function)
        for graph in (function.graph, *walk.nested(function)):
            for value in _values(graph):
                value.metadata_props[_NAME] = value.name or ""
    try:
        moves = _marked_modules(copy, gone & set(copy.functions))
        InlinePass(None if only is None else lambda function: function.identifier() in only)(copy)
    except Exception as error:  # noqa: BLE001 — the pass raises several kinds of errors
        reason = " ".join(str(error.__cause__ or error).split())
        return cloned(model), f"the functions could not be inlined: {reason}"
    _name(copy, own, kept)
    for function in copy.functions.values():  # the functions that stay
        for graph in (function.graph, *walk.nested(function)):
            for value in _values(graph):
                value.metadata_props.pop(_NAME, None)
    _move(copy, moves)
    return copy, ""


def name_outputs(model: ir.Model, functions: Collection[ir.OperatorIdentifier]) -> None:
    """Names the outputs that calls of these functions leave out. The inliner gives a node in the body the outputs of
    the call, and only an optional output may have no name."""
    names = Names(model)
    for node in walk.all_nodes(model):
        if node.op_identifier() in functions:
            for value in node.outputs:
                value.name = value.name or names.free("left_out")


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from dict.fromkeys((*graph.inputs, *graph.initializers.values()))
    for node in graph:
        yield from (value for value in node.outputs if value.name)


def _own_outputs(function: ir.Function) -> None:
    """Gives outputs that are inputs, or are listed twice, a value of their own, because the inliner renames function
    outputs."""
    seen: set[ir.Value] = set(function.inputs)
    for index, value in enumerate(function.outputs):
        if value in seen:
            node = ir.node("Identity", [value])
            function.append(node)
            node.outputs[0].name = f"{value.name}_output_{index}"
            function.outputs[index] = node.outputs[0]
        seen.add(value)


def _marked_modules(model: ir.Model, gone: Set[ir.OperatorIdentifier]) -> dict[str, list[str]]:
    """Writes the torch modules around each call into its metadata, under one key per function, so that a node out of
    nested functions has the modules of each call. Returns the modules of each function's own nodes by key, called
    functions before their callers."""
    calls = {
        identifier: {node.op_identifier() for node in walk.nodes(model.functions[identifier])} for identifier in gone
    }
    order = TopologicalSorter({one: called & gone for one, called in calls.items()})
    moves = {}
    for identifier in order.static_order():
        moves[_key(identifier)] = provenance.modules_of(walk.nodes(model.functions[identifier]))
    for node in walk.all_nodes(model):
        around = provenance.modules_of([node]) if node.op_identifier() in gone else []
        if around:
            node.metadata_props[_key(node.op_identifier())] = repr(around)
            if moves[_key(node.op_identifier())]:
                provenance.forget_merged(node)  # each node of the body names its own merged operations
    return moves


def _key(identifier: ir.OperatorIdentifier) -> str:
    return f"{_MODULES}{identifier}"


def _move(model: ir.Model, moves: dict[str, list[str]]) -> None:
    for node in walk.all_nodes(model):
        for key, modules in moves.items():
            around = node.metadata_props.pop(key, "")
            if around:
                provenance.move(node, modules, ast.literal_eval(around))


def _name(model: ir.Model, own: set[ir.Value], kept: set[str | None]) -> None:
    """Names the values that came out of functions. Graph outputs and the results of calls keep their names."""
    new: list[tuple[ir.Value, str]] = []
    for node in walk.nodes(model.graph):
        call = node.metadata_props.pop(_CALL, "")
        new += [(value, call) for value in node.outputs if value.name and value not in own]
        for graph in walk.subgraphs(node):
            inner = dict.fromkeys((*graph.inputs, *graph.initializers.values()))
            new += [(value, call) for value in inner if value not in own]
    for function in model.functions.values():  # a function that stays may have called an inlined one
        for node in walk.nodes(function):
            node.metadata_props.pop(_CALL, None)
            for value in node.outputs:
                value.metadata_props.pop(_NAME, None)
    names = Names(model)
    for value, _ in new:
        names.drop(value.name or "")
    outputs = set(model.graph.outputs)
    for value, call in sorted(new, key=lambda item: 0 if item[0] in outputs else 1 if item[0].name in kept else 2):
        name = value.metadata_props.pop(_NAME, value.name or "")
        value.name = names.free(value.name or "" if value.name in kept else f"{call}/{name}")
