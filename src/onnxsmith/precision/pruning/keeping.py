"""Finds the layers that the user wants to keep whole."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnxsmith.model.graph import provenance, walk
from onnxsmith.precision.keep import matching
from onnxsmith.problem import problem


def asked_layers(model: ir.Model, patterns: Iterable[str]) -> frozenset[str]:
    """The labels of the nodes that a keep-list names: by the node's name, or by the path of its torch module or of one
    around it.

    Raises:
        OnnxsmithError: `prune/unknown-layer`.
    """
    found: set[str] = set()
    nodes = [(walk.node_label(node), _around(provenance.module_of(node))) for node in model.graph]
    for pattern in patterns:
        met = {label for label, modules in nodes if matching(pattern, [label, *modules])}
        if not met:
            raise problem(
                "prune/unknown-layer",
                f"no node is called {pattern!r}",
                why="a keep-list has names of nodes, or paths of torch modules where the file says them",
                fix="`onnxsmith inspect MODEL --nodes` lists the names",
            )
        found |= met
    return frozenset(found)


def _around(path: str) -> list[str]:
    """The path of a module, and those of the modules that it lies in: `a.0` and `a`."""
    parts = path.split(".") if path else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
