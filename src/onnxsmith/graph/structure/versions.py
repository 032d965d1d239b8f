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
    ir.DataType.INT4: 10, ir.DataType.UINT4: 10, ir.DataType.FLOAT4E2M1: 11, ir.DataType.FLOAT8E8M0: 12,
    ir.DataType.INT2: 13, ir.DataType.UINT2: 13,
}  # fmt: skip
"""The IR version in which a dtype appeared (onnx.proto, enumeration Version)."""
_OLDEST = 8
"""The oldest IR version that is written. A choice: functions need 8, and every runtime in use reads 8."""


def least_ir(model: ir.Model, *, oldest: int = _OLDEST) -> int:
    """Returns the least IR version that can hold the model, at least `oldest`. More runtimes read an older version;
    runtimes that cannot read `oldest` are rare."""
    opsets = [onnx.helper.make_opsetid("", version) for domain, version in model.opset_imports.items() if not domain]
    least = max(oldest, onnx.helper.find_min_ir_version_for(opsets))
    held: set[ir.DataType | None] = {tensor.dtype for tensor in walk.tensors(model)}
    held |= {value.dtype for value in model.graph.inputs} | {value.dtype for value in model.graph.outputs}
    held |= {value.dtype for node in walk.all_nodes(model) for value in node.outputs}
    return max(least, *(_NEEDED.get(dtype, 0) for dtype in held if dtype is not None), 0)


def newest_opset(ir_version: int) -> int:
    """Returns the newest opset that a file of this IR version may import (onnx, `helper.VERSION_TABLE`)."""
    allowed = [row[2] for row in onnx.helper.VERSION_TABLE if row[1] <= ir_version]
    return max(allowed, default=onnx.defs.onnx_opset_version())
