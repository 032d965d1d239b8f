"""Groups nodes by torch module. If the file names no modules, groups nodes by the scopes in node names, or by
operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx_ir as ir

from onnxsmith.graph.structure import provenance
from onnxsmith.graph.structure.walk import op_name

Path = tuple[str, ...]
"""Lists the steps to a group: ("layers", "0", "conv")."""

_DEEPEST = 12
"""Limits the steps of a path; deeper modules count in their ancestor of this depth. A choice that bounds the cost of
odd names."""


def grouping(nodes: Iterable[ir.Node]) -> tuple[str, str, Callable[[ir.Node], Path]]:
    """Returns how to group: `module`, `scope` or `operator`, the separator of a path's steps, and the function for the
    path of a node.

    Modules come from the nodes' metadata, into which torch's exporter writes them. A scope is the part of a node's name
    before the last `/` (`/layer1/conv/Conv`). Scopes are used if at least half of the names have one.
    """
    found = list(nodes)
    if any(provenance.module_of(node) for node in found):
        return "module", ".", lambda node: tuple(provenance.module_of(node).split(".")[:_DEEPEST])
    if 2 * sum("/" in (node.name or "").strip("/") for node in found) >= max(len(found), 1):
        return "scope", "/", _scope
    return "operator", "", lambda node: (op_name(node),)


def _scope(node: ir.Node) -> Path:
    steps = [step for step in (node.name or "").split("/") if step]
    return tuple(steps[:-1][:_DEEPEST]) or ("",)
