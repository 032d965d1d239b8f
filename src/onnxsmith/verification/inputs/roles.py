"""Finds the structure of a whole input, from the nodes that read it.

Limits on each number are not enough for a shape, for corners of boxes or for offsets: these numbers depend on each
other, or on the size of the tensor to which they are applied.
"""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes.dims import written
from onnxsmith.verification.inputs.input_readers import Owners, Reader, constant, readers
from onnxsmith.verification.inputs.role_values import Role, Shape


def role(value: ir.Value, inside: Owners | None = None) -> Role | None:
    """Returns the first role that a reader gives the input; None if the input's numbers are independent."""
    found = None
    subtracted: dict[ir.Node, set[int]] = {}
    corners = value.shape is not None and len(value.shape) > 0 and value.shape[-1] == 4
    for reader in readers(value, inside):
        if reader.node.op_type == "Sub" and corners:
            # Two parts of each row are subtracted, as in the sides of a box.
            subtracted.setdefault(reader.node, set()).add(reader.index)
        given = _of_operand(reader, value)
        if given is not None and given.kind != "mask":
            return given
        found = found or given
    if any(len(operands) == 2 for operands in subtracted.values()):
        return Role("sides")
    return found


def _of_operand(reader: Reader, value: ir.Value) -> Role | None:
    node, index = reader.node, reader.index
    kind = _OPERANDS.get((node.op_type, index))
    if kind == "regions" and value.shape is not None and value.shape[-1:] == (5,):
        kind = "numbered regions"  # a column with the numbers of the images was cut off, as for torchvision's roi_align
    if node.op_type == "Gather" and index == 1 and _is_float(value) and value.shape[-1:] == (5,):  # type: ignore[index]
        kind = "numbered regions"  # a column of a table of floats is an index: the image of each region
    direct = reader.gain == reader.over == 1 and reader.shift == 0
    if kind is None:
        return _mask(reader, value)
    if kind in ("distinct", "distinct tuples") and _text(node, "reduction") not in ("", "none"):
        return None  # with a reduction, a repeated index is well defined
    whole = direct and _same_length(node.inputs[index], value)
    if kind in _WHOLE and not whole:
        return Role("ascending", _shape(node.inputs[0])) if kind in ("starts", "ends") and direct else None
    return Role(kind, _shape(node.inputs[0]), _number(node, kind))


_OPERANDS = {
    ("Reshape", 1): "shape", ("Expand", 1): "larger shape", ("Squeeze", 1): "axes of one", ("Unsqueeze", 1): "new axes",
    ("Slice", 1): "starts", ("Slice", 2): "ends", ("Slice", 3): "axes", ("Slice", 4): "steps", ("Pad", 1): "pads",
    ("Pad", 3): "axes", ("Split", 1): "parts", ("SplitToSequence", 1): "parts",
    ("Resize", 1): "region", ("Resize", 2): "scales",
    ("Resize", 3): "resized", ("Upsample", 1): "scales", ("Tile", 1): "repeats", ("Range", 0): "start",
    ("Range", 1): "limit", ("Range", 2): "step",
    ("ScatterElements", 1): "distinct", ("ScatterND", 1): "distinct tuples",
    ("NonMaxSuppression", 0): "boxes", ("RoiAlign", 1): "regions", ("MaxRoiPool", 1): "numbered regions",
    ("GridSample", 1): "grid", ("Inverse", 0): "matrix", ("Det", 0): "matrix", ("MaxUnpool", 1): "places",
    **{(f"Reduce{name}", 1): "axes" for name in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum",
                                                 "LogSumExp", "SumSquare")},
    ("CenterCropPad", 1): "larger shape",
}  # fmt: skip
_WHOLE = {
    "shape", "larger shape", "axes of one", "new axes", "starts", "ends", "axes", "steps", "pads", "parts", "scales",
    "resized", "repeats", "region", "start", "limit", "step",
}  # fmt: skip
"""Lists the roles that need the input to be the whole operand, not a part of it."""


def _is_float(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_floating_point() and value.shape is not None


def _mask(reader: Reader, value: ir.Value) -> Role | None:
    """Recognises a mask with a row for each example: an integer that is cast to bool, or subtracted from 1."""
    node, rank = reader.node, len(value.shape) if value.shape is not None else 0
    if rank < 2 or value.dtype is None or not value.dtype.is_integer():
        return None
    to_bool = node.op_type == "Cast" and node.attributes["to"].as_int() == ir.DataType.BOOL.value
    ones = constant(node.inputs[0]) if node.op_type == "Sub" and reader.index == 1 else None
    from_one = ones is not None and ones.size == 1 and ones[0] == 1
    return Role("mask") if to_bool or from_one else None


def _number(node: ir.Node, kind: str) -> float:
    if kind == "regions" or kind == "numbered regions":
        scale = node.attributes.get("spatial_scale")
        return scale.as_float() if scale is not None else 1.0
    if kind in ("boxes", "parts", "distinct"):
        name = "center_point_box" if kind == "boxes" else "axis"
        attribute = node.attributes.get(name)
        return attribute.as_int() if attribute is not None else 0
    return 0


def _text(node: ir.Node, name: str) -> str:
    attribute = node.attributes.get(name)
    return attribute.as_string() if attribute is not None else ""


def _same_length(operand: ir.Value | None, value: ir.Value) -> bool:
    """Whether operand and input have the same shape, as far as both are known."""
    if operand is value or operand is None or operand.shape is None or value.shape is None:
        return True
    return operand.shape == value.shape


def _shape(value: ir.Value | None) -> Shape:
    if value is None or value.shape is None:
        return ()
    return written(value.shape)
