"""Treats initializers that are also graph inputs as constants while sizes are opened.

Before IR version 4 every initializer has to be a graph input too, and some exporters list all of them in later
versions. The shape of a Reshape is then an input with a default, and the default holds the size that set-dim replaces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import onnx_ir as ir

from onnxsmith.editor.edited_model import Work, depending

_Uses = Mapping[ir.Value, list[tuple[ir.Node, int]]]


@contextmanager
def as_constants(work: Work, opened: Collection[ir.Value]) -> Iterator[list[str]]:
    """Makes every input with a default a constant in the block, except the `opened` inputs. All are inputs again
    afterwards. Yields a list that then holds the names of the inputs that are no longer read where they were read:
    their default was replaced, so a value from the caller would be ignored."""
    graph = work.model.graph
    inputs = list(graph.inputs)
    defaults = [value for value in inputs if value.const_value is not None and value not in opened]
    uses = {value: [(use.node, use.idx) for use in value.uses()] for value in defaults}
    for value in defaults:
        graph.inputs.remove(value)
    replaced: list[str] = []
    try:
        yield replaced
    finally:
        graph.inputs.clear()
        graph.inputs.extend(inputs)
        for value in defaults:
            graph.initializers[value.name or ""] = value
    replaced.extend(value.name or "" for value in defaults if _is_replaced(work, value, uses))


def _is_replaced(work: Work, value: ir.Value, uses: _Uses) -> bool:
    """Whether a node that read the value reads another one now, which is not computed from it."""
    moved = [node.inputs[index] for node, index in uses[value] if node.inputs[index] is not value]
    if not moved:
        return False
    computed = depending(work.model, {value})
    return any(operand not in computed for operand in moved)
