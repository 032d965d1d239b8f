"""Splits recurrent operations of a traced program into one operation for each layer.

PyTorch computes all layers of an LSTM in one operation, ONNX in one node for each layer. Splitting makes the tensors
between the layers comparable. The split operations have the sequence as their first axis, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import getitem
from typing import Any

import torch
from torch.fx import Node

from onnxsmith.base.seams.torch import trees as pytree

MADE = "onnxsmith.made"
"""Marks, as a key of the metadata, operations added here, which no exported file has."""
_KINDS = {
    torch.ops.aten.lstm.input: 2,
    torch.ops.aten.gru.input: 1,
    torch.ops.aten.rnn_tanh.input: 1,
    torch.ops.aten.rnn_relu.input: 1,
}
"""Maps an operator to its number of state tensors."""


def unstacked(module: torch.fx.GraphModule) -> None:
    """Splits every recurrent operation of several layers. The names of its results stay."""
    for node in list(module.graph.nodes):
        if is_stacked(node) and all(_place(user) is not None for user in node.users):
            _unstack(node, _KINDS[node.target])
    module.graph.lint()


def is_stacked(node: Node) -> bool:
    """Whether the node computes several recurrent layers."""
    return node.target in _KINDS and int(node.args[-5]) > 1  # type: ignore[arg-type]


def _place(user: Node) -> int | None:
    return int(user.args[1]) if user.target is getitem and isinstance(user.args[1], int) else None


def _unstack(node: Node, states: int) -> None:
    x, given, weights, biased, layers, _, training, both_ways, batch_first = node.args
    begun: Sequence[Any] = given if states == 2 else [given]  # type: ignore[assignment]
    parameters: list[Any] = list(weights)  # type: ignore[arg-type]
    ways, each = 2 if both_ways else 1, len(parameters) // int(layers)  # type: ignore[arg-type]
    with node.graph.inserting_before(node):
        here: Any = _made(node, torch.ops.aten.transpose.int, (x, 0, 1)) if batch_first else x
        ends: list[list[Any]] = [[] for _ in range(states)]
        for layer in range(int(layers)):  # type: ignore[arg-type]
            first = [
                _made(node, torch.ops.aten.slice.Tensor, (state, 0, layer * ways, (layer + 1) * ways))
                for state in begun
            ]
            own = parameters[layer * each : (layer + 1) * each]
            one = (here, first if states == 2 else first[0], own, biased, 1, 0.0, training, both_ways, False)
            made = _made(node, node.target, one)
            here = _made(node, getitem, (made, 0))
            for number, state in enumerate(ends):
                state.append(_made(node, getitem, (made, number + 1)))
        for user in list(node.users):
            place = _place(user)
            if place:
                user.target, user.args = torch.ops.aten.cat.default, (ends[place - 1], 0)
            elif batch_first:
                user.target, user.args = torch.ops.aten.transpose.int, (here, 0, 1)
            else:
                user.target, user.args = torch.ops.aten.alias.default, (here,)
    node.graph.erase_node(node)
    for other in reversed(node.graph.nodes):
        if MADE in other.meta and not other.users:
            node.graph.erase_node(other)


def _made(old: Node, target: Any, args: Any) -> Node:
    """Adds a node at the insertion point, with the source line of `old`."""
    number = sum(MADE in node.meta for node in old.graph.nodes)
    made = old.graph.create_node("call_function", target, args, name=f"{old.name}__layers_{number}")
    made.meta = {MADE: True, **{key: value for key, value in old.meta.items() if key != "val"}}
    values = torch.fx.node.map_arg(args, lambda node: node.meta["val"])
    known = [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]
    mode = next((value.fake_mode for value in known if hasattr(value, "fake_mode")), None)
    if mode is not None:
        with mode:
            made.meta["val"] = target(*values)
    else:
        made.meta["val"] = None
    return made
