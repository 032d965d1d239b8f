"""Gives each node a unique name."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned


class NodeNames(Fix):
    """The specification allows each node name only once in a graph. onnxruntime refuses a file in which two nodes share
    a name."""

    rank = 4

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        made = cloned(model)
        known: set[str] = set()
        taken = {node.name for node in walk.all_nodes(made) if node.name}
        count = 0
        for node in walk.all_nodes(made):
            if node.name in known:
                count += 1
                number = 1
                while f"{node.name}_{number}" in taken:
                    number += 1
                node.name = f"{node.name}_{number}"
                taken.add(node.name)
            known |= {node.name} if node.name else set()
        if count:
            yield "nodes have names of their own", made
