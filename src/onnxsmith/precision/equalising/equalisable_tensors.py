"""Finds the tensors whose channels can be divided in the nodes that write them and multiplied in the products that read
them."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.precision.equalising.channel_operands import Operand, reader, writers
from onnxsmith.precision.ranges import Channels


@dataclass(frozen=True)
class Pair:
    """A tensor between the constants that write its channels and those that read them."""

    tensor: str
    channels: Channels
    writers: tuple[Operand, ...]
    readers: tuple[Operand, ...]

    def said(self) -> str:
        """Names the nodes: `norm → query, key`."""
        nodes = dict.fromkeys(one.node.name or one.node.op_type for one in self.readers)
        return f"{self.writers[0].node.name or self.writers[0].node.op_type} → {', '.join(nodes)}"


def pairs(model: ir.Model) -> list[Pair]:
    """The pairs of the main graph, each tensor once.

    Refused:
    1. A reader that is no product with a constant weight, such as the Add of a residual connection.
    2. A tensor that is a graph output, or that a branch or a loop body reads.
    3. A writer without a constant for each channel, or whose result other nodes read as well.
    4. An activation between that is not positively homogeneous, such as Gelu or Clip.
    """
    found = []
    for node in model.graph:
        for value in node.outputs:
            pair = _pair(model.graph, value)
            if pair is not None:
                found.append(pair)
    return found


def _pair(graph: ir.Graph, value: ir.Value) -> Pair | None:
    if value.is_graph_output() or not value.uses():
        return None
    readers: list[Operand] = []
    channels: Channels | None = None
    for use in value.uses():
        read = reader(use.node, use.idx) if use.node.graph is graph else None
        if read is None or (channels is not None and read[0] != channels):
            return None
        channels = read[0]
        readers.append(read[1])
    assert channels is not None
    written = writers(value, channels)
    return None if written is None else Pair(value.name or "", channels, tuple(written), tuple(readers))
