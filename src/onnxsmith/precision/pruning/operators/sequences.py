"""Follows channels through attention and recurrent layers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Cuts, Indices, Links, is_weight, rank, static
from onnxsmith.precision.pruning.operators.base import Operator, integer, operand, origin

_Q, _K, _V, _MASK = 0, 1, 2, 3
_CACHES = (4, 5)
_FLAT = 3
"""The rank of operands that have all heads on the last axis. Other operands are [batch, heads, length, size]."""


@dataclass(frozen=True)
class _Heads:
    """The heads of an operand or of the result: `count` heads along `axis`, each with `size` elements."""

    value: ir.Value
    axis: int
    count: int
    size: int

    def firsts(self) -> Indices:
        """Returns, for each element along the axis, the first element of its head."""
        return np.arange(self.count * self.size) // self.size * self.size


class Attention(Operator):
    """Attention of opset 23: whole heads are removed.

    A head of the keys and values is removed with all heads of the queries that read it, and with their parts of the
    result. The elements within a head stay: queries and keys are summed over them, and their number determines the
    scale. Heads stay if their keys are kept from run to run, or if the mask has a part for each head.
    """

    ops = ("Attention",)

    def link(self, node: ir.Node, links: Links) -> None:
        found = _heads(node)
        if found is None:
            return
        queries, keys, values, result = found
        live = [one for one in found[:3] if links.is_live(one.value, one.axis)]
        if not live:
            return
        why = self._fixed(node, found[:3], live)
        for one in live:
            if why:
                links.pin(one.value, one.axis, f"{links.label} {why}")
            elif one.size > 1:
                links.tie(one.value, one.axis, one.value, one.axis, None, one.firsts())
        if why:
            return
        each = queries.count // keys.count
        at = np.arange(queries.count)
        links.tie(queries.value, queries.axis, result.value, result.axis, at * queries.size, at * result.size)
        if result.size > 1:
            links.tie(result.value, result.axis, result.value, result.axis, None, result.firsts())
        for one in (keys, values):
            links.tie(queries.value, queries.axis, one.value, one.axis, at * queries.size, at // each * one.size)
        self._others(node, found, links)

    def _fixed(self, node: ir.Node, given: tuple[_Heads, ...], live: list[_Heads]) -> str:
        """Says why all heads stay; "" if they may be removed."""
        fixed = [one for one in given if one not in live]
        mask = operand(node, _MASK)
        if fixed:
            return f"combines the heads with {fixed[0].value.name!r}, {origin(fixed[0].value)}, whose heads stay"
        if any(operand(node, place) is not None for place in _CACHES):
            return "keeps keys and values from run to run"
        if any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
            return "returns its keys or products as outputs"
        if mask is not None and (rank(mask) is None or (rank(mask) or 0) > _FLAT - 1) and static(mask, -3) != 1:
            return "has a mask for each head"
        return ""

    def _others(self, node: ir.Node, found: tuple[_Heads, ...], links: Links) -> None:
        """Links the other live axes. The elements within a head of the values pass; those of queries and keys are
        summed over."""
        for one in found[:3]:
            for axis in links.live_axes(one.value):
                if axis == one.axis:
                    continue
                if one is found[_V] and axis == _FLAT:
                    links.tie(one.value, axis, found[-1].value, axis)
                else:
                    links.pin(one.value, axis, f"{links.label} computes from all channels together")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        for place, name in ((_Q, "q_num_heads"), (_K, "kv_num_heads")):
            value = node.inputs[place]
            kept, count = cuts.of(value, 2), static(value, 2)
            if name in node.attributes and rank(value) == _FLAT and kept is not None and count:
                node.attributes[name] = ir.AttrInt64(name, len(kept) * integer(node, name, 1) // count)


def _heads(node: ir.Node) -> tuple[_Heads, ...] | None:
    """Returns the heads of queries, keys, values and the result; None if they are unknown."""
    counts = [integer(node, name, 0) for name in ("q_num_heads", "kv_num_heads", "kv_num_heads", "q_num_heads")]
    found = []
    for value, count in zip((*node.inputs[:3], node.outputs[0]), counts, strict=True):
        flat = rank(value) == _FLAT
        size = static(value, 2 if flat else 1)
        if value is None or not size or rank(value) not in (_FLAT, _FLAT + 1) or (flat and (not count or size % count)):
            return None
        found.append(_Heads(value, 2, count, size // count) if flat else _Heads(value, 1, size, 1))
    queries, keys, values, result = found
    fits = queries.count % keys.count == 0 and keys.count == values.count and queries.count == result.count
    return (queries, keys, values, result) if fits else None


_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_X, _W, _R, _B, _LENGTHS, _PEEPHOLES = 0, 1, 2, 3, 4, 7
_STATES = (5, 6)


@dataclass(frozen=True)
class _Layer:
    """The operands of a recurrent node. The weights are [directions, gates · hidden, …], with the units of a gate next
    to each other."""

    node: ir.Node
    hidden: int
    gates: int

    def rows(self, times: int) -> Indices:
        """Returns the hidden unit of each row of a weight with `times` parts."""
        return np.tile(np.arange(self.hidden), times)


class Recurrence(Operator):
    """RNN, GRU and LSTM: hidden units are removed with their gates, in both directions.

    A hidden unit is a row of each gate in both weights and the bias, a column of the recurrent weight, and a part of
    the outputs. Both directions lose the same units, because their weights are one tensor. Channels of the input are
    columns of the weight.
    """

    ops = ("GRU", "LSTM", "RNN")

    def link(self, node: ir.Node, links: Links) -> None:
        x, weight, recurrent = node.inputs[:3]
        gates = _GATES[node.op_type]
        stored = [operand(node, index) for index in (_W, _R, _B, _PEEPHOLES)]
        hidden = static(recurrent, 2)
        if hidden is None or not all(value is None or is_weight(value) for value in stored):
            return
        assert x is not None
        assert weight is not None
        if static(weight, 1) != gates * hidden:
            return
        if links.is_live(x, 2):
            links.tie(x, 2, weight, 2)
            links.sums(x, 2, weight, 2)
        self._units(links, _Layer(node, hidden, gates))

    def _units(self, links: Links, layer: _Layer) -> None:
        node, gates = layer.node, layer.gates
        results = [(value, 3 if place == 0 else 2) for place, value in enumerate(node.outputs) if value.name]
        if not results or any(static(*one) != layer.hidden for one in results):
            return
        first, *others = results
        weight, recurrent, bias, peepholes = (operand(node, index) for index in (_W, _R, _B, _PEEPHOLES))
        assert weight is not None
        assert recurrent is not None
        links.open(*first)
        for value, axis in others:
            links.tie(*first, value, axis)
        links.tie(*first, recurrent, 2)
        links.sums(*first, recurrent, 2)
        for stored, parts in ((weight, gates), (recurrent, gates), (bias, 2 * gates), (peepholes, gates - 1)):
            if stored is not None:
                links.tie(stored, 1, *first, None, layer.rows(parts))
        for place in _STATES:
            state = operand(node, place)
            if state is None:
                continue
            if links.is_live(state, 2) or is_weight(state):
                links.tie(*first, state, 2)
            else:
                links.pin(*first, f"{links.label} begins with a state whose size is fixed: {state.name!r}")

    def rewrite(self, node: ir.Node, cuts: Cuts) -> None:
        kept = cuts.of(node.inputs[_R], 2)
        if kept is not None:
            node.attributes["hidden_size"] = ir.AttrInt64("hidden_size", len(kept))
