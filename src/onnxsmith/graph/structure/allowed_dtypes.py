"""Finds operands whose dtype the operator does not accept in the model's opset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import onnx_ir as ir

from onnxsmith.graph.structure import schema, walk

_find = cache(schema.find)


@dataclass(frozen=True)
class Refused:
    """A node with an operand of a dtype that the operator does not accept. `since` is the first opset in which it does;
    None if there is none."""

    node: ir.Node
    dtype: str
    since: int | None


def refused(model: ir.Model, dtype: ir.DataType) -> Iterator[Refused]:
    """Yields the nodes of ONNX's own operators that have an operand of `dtype` and do not accept it."""
    version = model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))
    for node in walk.all_nodes(model):
        if node.domain not in ("", "ai.onnx"):
            continue
        places = [at for at, value in enumerate(node.inputs) if value is not None and value.dtype == dtype]
        if places and not _takes(node.op_type, version, places, dtype):
            newer = [one for one in schema.versions(node.op_type, "") if one > version]
            since = next((one for one in newer if _takes(node.op_type, one, places, dtype)), None)
            yield Refused(node, dtype.name.lower(), since)


def _takes(op_type: str, version: int, places: list[int], dtype: ir.DataType) -> bool:
    found = _find(op_type, "", version)
    if found is None:
        return True
    parameters = [found.input(at) for at in places]
    return all(one is None or f"tensor({dtype.name.lower()})" in one.types for one in parameters)
