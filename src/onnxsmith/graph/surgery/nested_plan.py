"""Plans how to bring a tensor out of branches and bodies, or says why this is impossible. `nested_outputs.py` does the
work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.structure.tensor_paths import Body, Place

SEQUENCES = 13
"""Is the opset since which Loop and If accept and return sequences."""
_OLDEST_SCAN = 9
"""Is the opset since which Scan has its present form. In opset 8 it had a batch axis and sequence lengths."""
_HELD = frozenset(
    {ir.DataType[f"{sign}INT{bits}"] for sign in ("", "U") for bits in (8, 16, 32, 64)}
    | {ir.DataType[name] for name in ("FLOAT", "DOUBLE", "FLOAT16", "BOOL", "STRING", "COMPLEX64", "COMPLEX128")}
)
"""Lists dtypes that sequences hold in every opset. Other dtypes are cast to a wider dtype, which loses nothing."""


@dataclass(frozen=True)
class Carriage:
    """How to bring one tensor out. `dtype` is the dtype of the output. `widened` is true if the tensor's own dtype is
    narrower. `sizes` is true if the output is the tensor's shape, not its values."""

    dtype: ir.DataType | None
    widened: bool = False
    sizes: bool = False


def kind_of(type_: ir.TypeProtocol | None) -> str:
    """Returns the kind of a type: `tensor`, `sequence`, `optional` or `sparse tensor`."""
    if isinstance(type_, ir.OptionalType):
        return "optional"
    if isinstance(type_, ir.SequenceType):
        return "sequence"
    return "sparse tensor" if isinstance(type_, ir.SparseTensorType) else "tensor"


def plan(
    place: Place, known: ir.Value, opset: int, open_dims: Collection[str], *, sizes: bool = False
) -> Carriage | str:
    """Returns how to bring a tensor out, or the reason why this is impossible. `known` has its inferred type and shape.
    Dimensions that consist of `open_dims` only are the same in every iteration of a loop."""
    kind, dtype = kind_of(known.type), known.dtype
    if sizes and (kind != "tensor" or not opset):
        return f"its size cannot be read ({kind})"
    if not place.bodies:
        return Carriage(ir.DataType.INT64 if sizes else dtype, sizes=sizes)
    if kind != "tensor":
        return f"it is not a tensor ({kind}); only tensors can come out of a branch or body"
    if dtype is None:
        return "its dtype is unknown, but a sequence needs a dtype"
    refusal = _refusal(place.bodies, opset, _is_steady(known.shape, open_dims))
    if refusal:
        return refusal
    if sizes:
        return Carriage(ir.DataType.INT64, sizes=True)
    return Carriage(dtype if dtype in _HELD else _wider(dtype), widened=dtype not in _HELD)


def _refusal(bodies: Sequence[Body], opset: int, steady: bool) -> str:
    operators = [body.node.op_type if not body.node.domain else body.node.domain for body in bodies]
    strange = [op for op in operators if op not in ("If", "Loop", "Scan")]
    if strange:
        return f"it is computed in a body of {strange[0]}, which cannot return it to the outer graph"
    if "Scan" in operators and opset < _OLDEST_SCAN:
        return f"it is computed in a Scan of opset {opset}, which has a different form"
    if opset >= SEQUENCES:
        stacked = operators[operators.index("Scan") :] if "Scan" in operators else []
        why = "a Scan cannot carry a list"
    else:
        stacked, why = (
            operators,
            (f"opset {opset} cannot carry a list out of a loop or a branch (possible since opset {SEQUENCES})"),
        )
    turning = [index for index, op in enumerate(stacked) if op != "If"]
    if not turning:
        return ""
    if "If" in stacked[turning[0] :]:
        return f"it is computed in some iterations only, and {why}"
    if len(turning) > 1:
        return f"it is computed in a nested loop, and {why}"
    return "" if steady else f"its shape may differ between iterations, and {why}"


def _is_steady(shape: ir.Shape | None, open_dims: Collection[str]) -> bool:
    if shape is None:
        return False
    named = (dim.value for dim in shape if not isinstance(dim, int))
    return all(name is not None and symbols.names(name) <= set(open_dims) for name in named)


def _wider(dtype: ir.DataType) -> ir.DataType:
    if dtype.is_floating_point():
        return ir.DataType.FLOAT
    return ir.DataType.INT8 if dtype.is_signed() else ir.DataType.UINT8
