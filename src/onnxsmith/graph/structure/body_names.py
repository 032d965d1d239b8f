"""Renames tensors in branches and bodies that have the name of a visible tensor of an outer graph.

The ONNX IR specification ("Names Within a Graph") forbids such names. onnxruntime reads the inner tensor; OpenVINO
refuses the file.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned


def renamed(model: ir.Model) -> tuple[ir.Model, tuple[str, ...]]:
    """Returns a copy in which these tensors have names of their own, and the new names: `state → state_1`. Returns the
    model itself if it has none."""
    if not any(True for _ in hidden(model)):
        return model, ()
    copy = cloned(model)
    names, said = Names(copy), []
    for value in list(hidden(copy)):
        old = value.name or ""
        value.name = names.free(old)
        said.append(f"{old} → {value.name}")
    return copy, tuple(said)


def hidden(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the tensors in branches and bodies whose name an outer graph has given before."""
    owners: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for owner in owners:
        yield from _hidden(owner, frozenset())


def _hidden(graph: ir.Graph | ir.Function, outer: frozenset[str | None]) -> Iterator[ir.Value]:
    held = graph.initializers.values() if isinstance(graph, ir.Graph) else ()
    own = list(dict.fromkeys((*graph.inputs, *held)))
    yield from (value for value in own if value.name in outer)
    visible = {value.name for value in own}
    for node in graph:
        for inner in walk.subgraphs(node):
            yield from _hidden(inner, outer | visible)
        yield from (value for value in node.outputs if value.name and value.name in outer)
        visible.update(value.name for value in node.outputs if value.name)
