"""Finds the structure of a whole input from the nodes that read it, and makes values with this structure.

Limits on each number are not enough for a shape, for corners of boxes or for offsets: these numbers depend on each
other, or on the size of the tensor to which they are applied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.structure.signature import Dim
from onnxsmith.verification.inputs.input_readers import Owners, Reader, constant, readers

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Draw:
    """Draws the random numbers for structured arrays."""

    rng: np.random.Generator = field(repr=False)


def boxes(shape: tuple[int, ...], draw: Draw, extent: float) -> Array:
    """Draws corners x1, y1, x2, y2 inside `extent`, with sides above 0, along the last axis that has size 4. If no axis
    has size 4, draws numbers within the extent."""
    axis = next((axis for axis in reversed(range(len(shape))) if shape[axis] == 4), None)
    drawn = draw.rng.uniform(0, extent, shape)
    if axis is None:
        return np.asarray(drawn)
    rows = np.moveaxis(drawn, axis, -1)
    low = rows[..., :2] * 0.6
    side = extent * (0.05 + 0.3 * draw.rng.random(low.shape))
    return np.moveaxis(np.concatenate([low, low + side], axis=-1), -1, axis)


def matrices(shape: tuple[int, ...], draw: Draw) -> Array:
    """Draws matrices whose distance from the identity is at most a third in norm, so that none is ill-conditioned."""
    if len(shape) < 2:
        return np.asarray(draw.rng.standard_normal(shape))
    off = draw.rng.uniform(-1, 1, shape) / (3 * max(shape[-2:]))
    return np.asarray(np.eye(shape[-2], shape[-1]) + off)


def ragged(shape: tuple[int, ...], draw: Draw) -> Array:
    """Draws rows of ones followed by zeros, with at least one 1. This is padding at the end, which a causal model also
    accepts."""
    if not shape or not shape[-1]:
        return np.ones(shape, np.int64)
    lengths = draw.rng.integers(1, shape[-1] + 1, (*shape[:-1], 1))
    return np.asarray(np.arange(shape[-1]) < lengths).astype(np.int64)


Shape = tuple[Dim | None, ...]


@dataclass(frozen=True)
class Role:
    """Describes the use of an input: its `kind`, the shape of the tensor to which it is applied, and a number for some
    kinds. `limits` are constants with which the node compares what it reads from the input."""

    kind: str
    shape: Shape = ()
    number: float = 0
    limits: tuple[float, ...] = ()

    def sizes(self, known: Mapping[str, int]) -> list[int | None]:
        """Returns the shape's sizes; None where a size is unknown."""
        return [dims.evaluate(dim, known) for dim in self.shape]


def made(role: Role, shape: tuple[int, ...], known: Mapping[str, int], draw: Draw) -> Array | None:
    """Makes values in `shape` for the role. Returns None if the role, or the tensor to which the input is applied, is
    unknown."""
    maker = _MAKERS.get(role.kind)
    return None if maker is None else maker(role, shape, role.sizes(known), draw)


Maker = Callable[[Role, tuple[int, ...], list[int | None], Draw], Array | None]


def _target(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Makes a shape with as many elements as the data; -1 and ones if the data's size is unknown."""
    count = shape[0] if len(shape) == 1 else 0
    if not count:
        return None
    total = int(np.prod([size for size in sizes if size is not None]))
    if None in sizes or total == 0:
        return np.array([-1] + [1] * (count - 1))
    found = [1] * count
    for place in range(count - 1):
        left = total // int(np.prod(found))
        divisors = [number for number in range(1, min(left, 16) + 1) if left % number == 0]
        found[place] = int(draw.rng.choice(divisors))
    found[-1] = total // int(np.prod(found[:-1]))
    return np.array(found)


def _larger(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Makes the data's shape, with larger sizes in place of 1 and new axes in front."""
    count = shape[0] if len(shape) == 1 else 0
    if count < len(sizes) or not role.shape:
        return np.ones(count, np.int64) if count else None
    own = [int(draw.rng.integers(1, 5)) if size in (1, None) else size for size in sizes]
    return np.array([int(draw.rng.integers(1, 4)) for _ in range(count - len(sizes))] + own)


def _axes(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Draws different axes of the data."""
    count, rank = int(np.prod(shape)), len(sizes)
    if count > rank:
        return None
    return np.sort(draw.rng.permutation(rank)[:count]).reshape(shape)


def _axes_of_one(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    ones = [axis for axis, size in enumerate(sizes) if size == 1]
    count = int(np.prod(shape))
    return np.array(ones[:count]).reshape(shape) if len(ones) >= count else None


def _new_axes(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    count = int(np.prod(shape))
    return np.sort(draw.rng.permutation(len(sizes) + count)[:count]).reshape(shape)


def _starts(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return np.asarray(draw.rng.integers(0, 2, shape))


def _ends(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    """Makes ends beyond every start, near the axis's end if the end is known, so that no slice is empty."""
    known = [size for size in sizes if size is not None]
    most = max(min(known, default=6), 2)
    return np.asarray(draw.rng.integers(max(2, most // 2), most + 1, shape))


def _steps(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return np.asarray(draw.rng.integers(1, 3, shape))


def _pads(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    """Makes pads that are shorter than every axis, as reflection requires."""
    most = min([size for size in sizes if size is not None], default=2) - 1
    return np.asarray(draw.rng.integers(0, max(min(most, 2), 0) + 1, shape))


def _parts(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Makes sizes that sum to the axis."""
    axis, count = int(role.number), int(np.prod(shape))
    size = sizes[axis] if sizes and -len(sizes) <= axis < len(sizes) else None
    if size is None or not count:
        return None
    cuts = np.sort(draw.rng.integers(0, size + 1, count - 1))
    return np.diff(np.concatenate([[0], cuts, [size]])).reshape(shape)


def _resized(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    """Makes sizes with the data's batch and channels, and spatial sizes near the data's."""
    own = [*(size or 1 for size in sizes), *[4] * int(np.prod(shape))][: int(np.prod(shape))]
    return np.array([n if axis < 2 else max(1, n + int(draw.rng.integers(-1, 4))) for axis, n in enumerate(own)])


def _scales(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    found = draw.rng.choice([1.5, 2.0, 0.5, 1.25], int(np.prod(shape)))
    found[: max(len(found) - 2, 0)] = 1  # only the last two axes are spatial: batch and channels keep their size
    return np.asarray(found).reshape(shape)


def _region(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    half = int(np.prod(shape)) // 2
    return np.array([0.0] * half + [1.0] * (int(np.prod(shape)) - half)).reshape(shape)


def _repeats(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return np.asarray(draw.rng.integers(1, 4, shape))


def _distinct(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Draws indices that differ along the axis, because the result for a repeated index is undefined."""
    axis = int(role.number)
    size = sizes[axis] if sizes and shape and -len(sizes) <= axis < len(sizes) else None
    if size is None or not -len(shape) <= axis < len(shape) or shape[axis] > size:
        return None
    rows = int(np.prod(shape)) // max(shape[axis], 1)
    made = np.array([draw.rng.permutation(size)[: shape[axis]] for _ in range(rows)]).reshape(rows, shape[axis])
    moved = np.moveaxis(np.empty(shape), axis, -1).shape
    return np.moveaxis(made.reshape(moved), -1, axis)


def _distinct_tuples(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Draws index tuples that all differ."""
    if not shape or shape[-1] > len(sizes) or any(size is None for size in sizes[: shape[-1]]):
        return None
    reach = [size or 0 for size in sizes[: shape[-1]]]
    count, total = int(np.prod(shape[:-1])), int(np.prod(reach))
    if count > total or total > 1 << 24:
        return None
    flat = draw.rng.choice(total, count, replace=False)
    return np.stack(np.unravel_index(flat, reach), axis=-1).reshape(shape) if reach else None


def _ascending(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    """Makes offsets that begin with 0, ascend, and stay within the tensor that they cut."""
    most = sizes[0] if sizes and sizes[0] is not None else 8
    found = np.sort(draw.rng.integers(0, most + 1, shape), axis=-1) if shape else np.zeros((), np.int64)
    if shape and found.size:
        found[..., 0] = 0
    return found


def _regions(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return boxes(shape, draw, _extent(sizes) / (role.number or 1))


def _numbered_regions(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    if not shape or shape[-1] != 5:
        return None
    batch = sizes[0] if sizes and sizes[0] else 1
    numbers = draw.rng.integers(0, batch, (*shape[:-1], 1))
    return np.concatenate([numbers, boxes((*shape[:-1], 4), draw, _extent(sizes) / (role.number or 1))], axis=-1)


def _extent(sizes: list[int | None]) -> float:
    """Returns the shorter side of the image in which regions lie."""
    return float(min([size for size in sizes[2:] if size], default=8))


_NEAR = 0.15
"""Sets the largest relative distance of scores and overlaps from a limit, if they are meant to show it. A choice."""
_TOGETHER = 4
"""Counts the boxes with high scores in a row in which all others are below the limit. A choice: a graph may return few
boxes."""


def _boxes(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    corners = _overlapping(boxes(shape, draw, 1.0), role.limits, draw)
    if not role.number or not shape or shape[-1] != 4:
        return corners
    low, high = corners[..., :2], corners[..., 2:]
    return np.concatenate([(low + high) / 2, high - low], axis=-1)


def _overlapping(corners: Array, limits: tuple[float, ...], draw: Draw) -> Array:
    """Puts every second box into the box before it. The share of the area that both have varies, and half of the shares
    are near a limit. Boxes at random places rarely overlap by more than a half."""
    if corners.ndim < 2 or corners.shape[-1] != 4:
        return corners
    pairs = corners.shape[-2] // 2
    outer = corners[..., : 2 * pairs : 2, :]
    shares = draw.rng.uniform(0.1, 0.9, outer.shape[:-1])
    if limits:
        near = _near(outer.shape[:-1], limits, draw)
        shares = np.where((draw.rng.random(shares.shape) < 0.5) & (near > 0) & (near < 1), near, shares)
    low, side = outer[..., :2], outer[..., 2:] - outer[..., :2]
    is_first = draw.rng.random(shares.shape) < 0.5
    factors = np.stack([np.where(is_first, shares, 1.0), np.where(is_first, 1.0, shares)], axis=-1)
    found = corners.copy()
    found[..., 1 : 2 * pairs : 2, :] = np.concatenate([low, low + side * factors], axis=-1)
    return found


def _near(shape: tuple[int, ...], limits: tuple[float, ...], draw: Draw) -> Array:
    return np.asarray(draw.rng.choice(limits, shape) * (1 + draw.rng.uniform(-_NEAR, _NEAR, shape)))


def _scores(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Makes scores for boxes. In half of the rows, a few neighbouring boxes have scores near a limit or above it, and
    all others have lower scores, so that a graph that returns few boxes decides by the limit."""
    if not shape or not role.limits:
        return None
    drawn = draw.rng.standard_normal(shape)
    near = np.where(draw.rng.random(shape) < 0.5, _near(shape, role.limits, draw), max(role.limits) + np.abs(drawn))
    low = min(role.limits) - 2 * _NEAR * abs(min(role.limits)) - np.abs(drawn)
    first = 2 * draw.rng.integers(0, max((shape[-1] - _TOGETHER) // 2, 0) + 1, (*shape[:-1], 1))
    is_high = (np.arange(shape[-1]) >= first) & (np.arange(shape[-1]) < first + _TOGETHER)
    few = np.where(is_high, near, low)
    return np.where(draw.rng.random((*shape[:-1], 1)) < 0.5, few, np.where(draw.rng.random(shape) < 0.5, near, drawn))


def _grid(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    """Draws places, some of them outside of the picture, which lies between -1 and 1."""
    return np.asarray(draw.rng.uniform(-1.25, 1.25, shape))


def _places(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array | None:
    """Returns each place of a pool's output once, shuffled in each image and channel."""
    if len(shape) < 3:
        return None
    planes, count = int(np.prod(shape[:2])), int(np.prod(shape[2:]))
    offsets = np.arange(planes)[:, None] * count
    made = np.array([draw.rng.permutation(count) for _ in range(planes)]).reshape(planes, count)
    return (made + offsets).reshape(shape)


def _start(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return np.asarray(draw.rng.integers(0, 3, shape))


def _limit(role: Role, shape: tuple[int, ...], sizes: list[int | None], draw: Draw) -> Array:
    return np.asarray(draw.rng.integers(5, 12, shape))


_MAKERS: dict[str, Maker] = {
    "shape": _target, "larger shape": _larger, "axes": _axes, "axes of one": _axes_of_one, "new axes": _new_axes,
    "starts": _starts, "ends": _ends, "steps": _steps, "pads": _pads, "parts": _parts, "resized": _resized,
    "scales": _scales, "region": _region, "repeats": _repeats, "distinct": _distinct,
    "distinct tuples": _distinct_tuples, "ascending": _ascending, "regions": _regions, "boxes": _boxes, "sides": _boxes,
    "scores": _scores, "share": lambda role, shape, sizes, draw: draw.rng.uniform(0.05, 0.95, shape),
    "numbered regions": _numbered_regions, "grid": _grid, "places": _places, "start": _start, "limit": _limit,
    "step": _steps, "mask": lambda role, shape, sizes, draw: ragged(shape, draw),
    "matrix": lambda role, shape, sizes, draw: matrices(shape, draw),
}  # fmt: skip


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
    return Role(kind, _shape(node.inputs[0]), _number(node, kind), _limits(node, kind))


_OPERANDS = {
    ("Reshape", 1): "shape", ("Expand", 1): "larger shape", ("Squeeze", 1): "axes of one", ("Unsqueeze", 1): "new axes",
    ("Slice", 1): "starts", ("Slice", 2): "ends", ("Slice", 3): "axes", ("Slice", 4): "steps", ("Pad", 1): "pads",
    ("Pad", 3): "axes", ("Split", 1): "parts", ("SplitToSequence", 1): "parts",
    ("Resize", 1): "region", ("Resize", 2): "scales",
    ("Resize", 3): "resized", ("Upsample", 1): "scales", ("Tile", 1): "repeats", ("Range", 0): "start",
    ("Range", 1): "limit", ("Range", 2): "step",
    ("ScatterElements", 1): "distinct", ("ScatterND", 1): "distinct tuples",
    ("NonMaxSuppression", 0): "boxes", ("NonMaxSuppression", 1): "scores",
    ("NonMaxSuppression", 3): "share", ("NonMaxSuppression", 4): "share",
    ("RoiAlign", 1): "regions", ("MaxRoiPool", 1): "numbered regions",
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


def _limits(node: ir.Node, kind: str) -> tuple[float, ...]:
    """Returns the constant limit of overlaps or scores of a NonMaxSuppression."""
    place = {"boxes": 3, "scores": 4}.get(kind, len(node.inputs))
    held = constant(node.inputs[place]) if place < len(node.inputs) else None
    return tuple(float(number) for number in held) if held is not None and held.size == 1 else ()


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
