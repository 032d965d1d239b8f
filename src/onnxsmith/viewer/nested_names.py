"""Makes the names that reports give to nodes in branches and bodies. These names include the names of the nodes around
them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.graph.structure.walk import named_subgraphs, node_label
from onnxsmith.viewer.model_scene import Viewed


def nested_names(model: Viewed) -> Iterator[tuple[str, int]]:
    """Yields names and numbers of the nodes in bodies. `bisect` and `quantize` write `cond/then_branch/relu`, `check`
    writes `cond/relu`."""
    for node in model.source.graph:
        yield from _inside(node, (node_label(node),), model)


def _inside(owner: ir.Node, names: Sequence[str], model: Viewed) -> Iterator[tuple[str, int]]:
    for body, graph in named_subgraphs(owner):
        for node in graph:
            inner = [f"{name}/{step}{node_label(node)}" for name in names for step in (f"{body}/", "")]
            if node in model.nodes:
                yield from ((name, model.nodes[node]) for name in inner)
            yield from _inside(node, inner, model)
