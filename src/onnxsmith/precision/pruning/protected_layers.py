"""Finds the layers that the user wants to keep whole."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.precision import unknown_names
from onnxsmith.precision.keep_list import bare, matching, named


def asked_layers(model: ir.Model, patterns: Iterable[str]) -> frozenset[str]:
    """Returns the labels of the nodes that a keep-list names: by the node's name, by the path of its torch module, or
    by that of an enclosing module.

    Raises:
        OnnxsmithError: `prune/unknown-layer`.
    """
    nodes = [(walk.node_label(node), _around(provenance.module_of(node))) for node in model.graph]
    met = {
        entry: {label for label, modules in nodes if matching(bare(entry), [label, *modules])}
        for entry in named(patterns)
    }
    lost = [entry for entry, found in met.items() if not found]
    if lost:
        known = {name for label, modules in nodes for name in (label, *modules)}
        said = unknown_names.told(lost, known)
        raise problem(
            "prune/unknown-layer",
            said.what,
            where=said.where,
            why=f"a keep-list has names of nodes, or paths of torch modules where the file says them{said.near}",
            fix="`onnxsmith inspect MODEL --nodes` lists the names",
        )
    return frozenset[str]().union(*met.values())


def _around(path: str) -> list[str]:
    """Returns the path of a module and of the modules around it: `a.0` and `a`."""
    parts = path.split(".") if path else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
