"""Finds the newest versions that the installed onnx can read and write."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
import onnx_ir as ir

from onnxsmith.graph.structure import walk


@dataclass(frozen=True)
class Versions:
    """`onnx` is the version of the package, `ir` the newest IR version, `opset` the newest opset of the ONNX domain."""

    onnx: str
    ir: int
    opset: int


def newest() -> Versions:
    """Returns the versions of the installed onnx."""
    return Versions(onnx.__version__, int(onnx.IR_VERSION), onnx.defs.onnx_opset_version())


_NEEDED = {
    ir.DataType.FLOAT8E4M3FN: 9, ir.DataType.FLOAT8E4M3FNUZ: 9, ir.DataType.FLOAT8E5M2: 9,
    ir.DataType.FLOAT8E5M2FNUZ: 9, ir.DataType.INT4: 10, ir.DataType.UINT4: 10, ir.DataType.FLOAT4E2M1: 11,
    ir.DataType.FLOAT8E8M0: 12, ir.DataType.INT2: 13, ir.DataType.UINT2: 13,
}  # fmt: skip
"""Maps dtypes to the IR version in which they appeared (onnx.proto, enumeration Version)."""
_OPSETS = 3
"""Is the first IR version that imports opsets (onnx.proto, enumeration Version)."""
FUNCTIONS = 8
"""Is the first IR version with local functions (onnx.proto, enumeration Version)."""


def least_ir(model: ir.Model) -> int:
    """Returns the least IR version that can hold the model: the one that the standard's table pairs with its opset
    (onnx, `helper.VERSION_TABLE`), or a later one if local functions, constants or a dtype of the model need it. A
    runtime of that opset's time reads it."""
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in model.opset_imports.items()]
    least = max(_OPSETS, onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True))
    if model.functions:
        least = max(least, FUNCTIONS)
    if any(not value.is_graph_input() for graph in walk.graphs(model) for value in graph.initializers.values()):
        least = max(least, walk.FIRST_WITH_CONSTANTS)
    held: set[ir.DataType | None] = {tensor.dtype for tensor in walk.tensors(model)}
    held |= {value.dtype for value in model.graph.inputs} | {value.dtype for value in model.graph.outputs}
    held |= {value.dtype for node in walk.all_nodes(model) for value in node.outputs}
    return max(least, *(_NEEDED.get(dtype, 0) for dtype in held if dtype is not None), 0)


def drop_unused_imports(model: ir.Model) -> None:
    """Removes the opset imports of domains that no node and no local function of the model has. The import of ONNX's
    own domain stays, because it is the model's opset."""
    used = {node.domain for node in walk.all_nodes(model)} | {domain for domain, *_ in model.functions}
    for domain in set(model.opset_imports) - used - {"", "ai.onnx"}:
        del model.opset_imports[domain]


def newest_opset(ir_version: int) -> int:
    """Returns the newest opset that a file of this IR version may import (onnx, `helper.VERSION_TABLE`)."""
    allowed = [row[2] for row in onnx.helper.VERSION_TABLE if row[1] <= ir_version]
    return max(allowed, default=onnx.defs.onnx_opset_version())
