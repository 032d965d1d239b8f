"""RNN, GRU and LSTM: hidden units go with their gates, in both directions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.pruning.channel_links import Indices, Links, is_weight, static
from onnxsmith.precision.pruning.cuts import Cuts
from onnxsmith.precision.pruning.operators.base import Operator, operand

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_X, _W, _R, _B, _LENGTHS, _PEEPHOLES = 0, 1, 2, 3, 4, 7
_STATES = (5, 6)


@dataclass(frozen=True)
class _Layer:
    """The operands of a node. The weights are [directions, gates · hidden, …], all units of a gate together."""

    node: ir.Node
    hidden: int
    gates: int

    def rows(self, times: int) -> Indices:
        """For each row of a weight that has `times` parts, the hidden unit."""
        return np.tile(np.arange(self.hidden), times)


class Recurrence(Operator):
    """A hidden unit is a row of each gate in both weights and the bias, a column of the recurrent weight, and a part of
    the outputs. Both directions lose the same units, because their weights are one tensor. Channels of the input are
    columns of the weight."""

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
