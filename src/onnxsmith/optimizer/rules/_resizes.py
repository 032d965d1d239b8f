"""Reads Resize and Upsample in every opset, and writes Resize."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts

SCALING = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Coordinate modes that keep every element in place if the scale is 1."""


REPEATS = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
"""Attributes with which a Resize by integer scales repeats each element."""


def given(node: ir.Node, index: int) -> ir.Value | None:
    """Returns an input of a node; None if it is left out or its shape is empty."""
    value = node.inputs[index] if len(node.inputs) > index else None
    return None if value is None or facts.dims(value) == (0,) else value


def scales(node: ir.Node) -> list[float] | None:
    """Returns the scales of a Resize or Upsample, for each axis; None if they are not constant, or sizes are given."""
    attribute = node.attributes.get("scales")
    if attribute is not None:
        return None if attribute.is_ref() else list(attribute.as_floats())
    index = 1 if node.op_type == "Upsample" or facts.opset(node) < 11 else 2
    array = facts.constant(given(node, index))
    return None if array is None else [float(scale) for scale in array.ravel()]


def sizes(node: ir.Node) -> tuple[facts.Element, ...] | None:
    """Returns the requested sizes of a Resize, for each axis."""
    return facts.integers(given(node, 3)) if facts.opset(node) >= 11 else None


def is_plain(node: ir.Node) -> bool:
    """Whether a Resize has no `axes`, no aspect ratio policy, and does not crop first."""
    attributes = node.attributes
    if any(attribute.is_ref() for attribute in attributes.values()) or "axes" in attributes:
        return False
    policy, place = attributes.get("keep_aspect_ratio_policy"), attributes.get("coordinate_transformation_mode")
    if policy is not None and policy.as_string() != "stretch":
        return False
    return place is None or place.as_string() in SCALING


def write(
    tape: ir.tape.Tape, source: ir.Value | None, factors: Sequence[float], attributes: dict[str, ir.Attr], opset: int
) -> ir.Value:
    """Writes a Resize by constant scales, for opset 11 and newer."""
    scale = tape.initializer(ir.Tensor(np.array(factors, np.float32)), name="scales")
    roi = tape.initializer(ir.Tensor(np.zeros(0, np.float32)), name="roi") if opset < 13 else None
    return tape.op("Resize", [source, roi, scale], attributes)
