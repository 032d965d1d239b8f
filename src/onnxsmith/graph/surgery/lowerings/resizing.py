"""Resize, Upsample and GridSample, written as older opsets have them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.symbols import Element
from onnxsmith.graph.surgery.lowerings.base import Lowering, numbers, operand, rank
from onnxsmith.graph.surgery.node_insertion import Inserter


class ResizeAxes(Lowering):
    """Lowers a Resize with a list of axes.

    Writes the scales or sizes of all axes.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 18}
    reads = ("axes",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        attribute = node.attributes.get("axes")
        if attribute is None:
            return ""
        data, dims = node.inputs[0], rank(node.inputs[0])
        if dims is None:
            return "the number of dimensions is unknown"
        roi = operand(node, 1)
        if roi is not None and numbers(roi) != []:
            return "the operator has a region of interest for some of the axes"
        axes = [int(axis) % dims for axis in attribute.as_ints()]
        scales, sizes = operand(node, 2), operand(node, 3)
        if sizes is None:
            known = facts.constant(scales)
            if known is not None:
                full = np.ones(dims, np.float32)
                full[axes] = known
                node.replace_input_with(2, write.constant(full, np.float32))
            else:
                ones = write.constant(np.ones(dims), np.float32)
                node.replace_input_with(2, write.op("ScatterElements", ones, write.constant(axes), scales))
        else:
            whole = write.op("Shape", data)
            node.replace_input_with(3, write.op("ScatterElements", whole, write.constant(axes), sizes))
        del node.attributes["axes"]
        return ""


_ONLY = {
    "coordinate_transformation_mode": ("asymmetric", "half_pixel"),
    "nearest_mode": ("floor", "round_prefer_floor"),
}
"""Is the only form at opset 10, and the default at opset 11."""


class ResizeCoordinates(Lowering):
    """Lowers a Resize to the form before it had a choice of coordinates.

    Removes the attributes of the only form that opset 10 has: scales, and asymmetric coordinates. Nearest coordinates
    are rounded down, but up where a scale is below 1 (onnxruntime, `upsamplebase.h`).
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 11}
    reads = ("mode",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        sizes = operand(node, 3)
        mode = node.attributes.get_string("mode", "nearest")
        if mode == "cubic":
            return "`mode` is cubic, but opset 10 has only nearest and linear"
        nearest = mode == "nearest"
        known = facts.constant(node.inputs[2])
        is_sized = sizes is not None and numbers(sizes) != []
        if is_sized:
            known = scales_of(node.inputs[0], sizes, nearest=nearest)
            if known is None:
                return (
                    "the operator resizes to sizes, but opset 10 has only scales, which do not follow from these sizes"
                )
        only_down = known is not None and (known <= 1).all() and (known < 1).any()
        if nearest and known is not None and (known < 1).any() and not only_down:
            return "some scales are below 1, and only for these does opset 10 round nearest coordinates up"
        for name, (usual, default) in _ONLY.items():
            only = "ceil" if name == "nearest_mode" and only_down else usual
            given = node.attributes.get_string(name, default)
            if given != only and (nearest or name != "nearest_mode"):
                return f"`{name}` is {given}, but opset 10 has only {only}"
        scales = write.constant(known, np.float32) if is_sized else node.inputs[2]
        for name in _ONLY:
            node.attributes.pop(name, None)
        node.resize_inputs(2)
        node.replace_input_with(1, scales)
        return ""


def scales_of(data: ir.Value | None, sizes: ir.Value | None, *, nearest: bool) -> np.ndarray | None:
    """Returns the scales that resize `data` to `sizes`; None if a scale depends on an input, or if no number has the
    same effect. A size may be symbolic if it is a whole multiple of the dimension."""
    wanted, given = facts.integers(sizes), facts.dims(data)
    if wanted is None or given is None or len(wanted) != len(given):
        return None
    found = [_scale(size, dim, nearest=nearest) for size, dim in zip(wanted, given, strict=True)]
    known = [one for one in found if one is not None]
    return np.array(known, np.float32) if len(known) == len(found) else None


def _scale(size: Element, dim: Element | None, *, nearest: bool) -> np.float32 | None:
    if dim is None:
        return None
    if not isinstance(size, int) or not isinstance(dim, int):
        whole = symbols.exact_quotient(size, dim)
        return np.float32(whole) if isinstance(whole, int) and whole >= 1 else None
    if not dim:
        return np.float32(1) if size == dim else None
    scale = np.float32(size / dim)
    for one in (scale, np.nextafter(scale, np.float32(np.inf))):
        if _gives(one, dim, size, nearest=nearest and size > dim):
            return np.float32(one)
    return None


def _gives(scale: np.float32, dim: int, size: int, *, nearest: bool) -> bool:
    """Whether the scale gives the size, and the same nearest places as the size does. Both are rounded down; some
    runtimes compute them in float32, others in float64."""
    places = np.arange(size)
    for dtype in ("float32", "float64"):
        factor = np.asarray(scale, dtype)
        if int(np.asarray(dim, dtype) * factor) != size:
            return False
        found = (places.astype(dtype) / factor).astype(np.int64)
        if nearest and not np.array_equal(found, places * dim // size):
            return False
    return True


class ResizeName(Lowering):
    """Lowers a Resize, which was called Upsample before opset 10.

    An Upsample only enlarges: its scales are at least 1.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 10}
    reads = ("mode",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        known = facts.constant(node.inputs[1])
        if known is not None and (known < 1).any():
            return f"a scale is {known.min()}, but an Upsample can only enlarge"
        mode = node.attributes.get_string("mode", "nearest")
        write.replace([write.op("Upsample", *node.inputs, mode=mode)])
        return ""


class ResizeOperands(Lowering):
    """Lowers a Resize without a region of interest, or without scales: both operands were required before opset 13.

    Writes empty tensors for the operands that are left out.
    """

    operators: ClassVar[dict[str, int]] = {"Resize": 13}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        if len(node.inputs) < 3:
            node.resize_inputs(3)
        for index in (1, 2):
            if operand(node, index) is None:
                node.replace_input_with(index, write.constant([], np.float32))
        return ""


_EARLIER = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


class GridSampleModes(Lowering):
    """Lowers a GridSample, whose modes had other names.

    Writes the old names `bilinear` and `bicubic`. The old GridSample accepted images only, no volumes.
    """

    operators: ClassVar[dict[str, int]] = {"GridSample": 20}
    reads = ("mode",)

    def lower(self, node: ir.Node, write: Inserter) -> str:
        dims = rank(node.inputs[0])
        if dims != 4:
            return f"the input has {'an unknown number of' if dims is None else dims} dimensions, not 4"
        mode = node.attributes.get_string("mode", "linear")
        node.attributes["mode"] = ir.AttrString("mode", _EARLIER.get(mode, mode))
        return ""
