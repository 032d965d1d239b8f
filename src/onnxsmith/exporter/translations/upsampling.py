"""Resizes the last axes of a tensor by one ONNX Resize node, or pixel by pixel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from onnxsmith.exporter.translations._tensors import constant
from onnxsmith.exporter.translations.base import Sample, Translation, member, onnx_op, reaches

TAKEN = (torch.float32, torch.float16)
"""Lists the dtypes for which ONNX Runtime's Resize agrees with PyTorch. Others are computed by PyTorch's formulas."""


def output_sizes(x: Any, sizes: Sequence[Any] | None, factors: Sequence[float] | None) -> list[Any]:
    """Returns the sizes after a resize to `sizes` or by `factors`. They are rounded down, as in PyTorch and in ONNX."""
    if sizes is not None:
        return list(sizes)
    assert factors is not None
    return [math.floor(n * factor) for n, factor in zip(x.shape[-len(factors) :], factors, strict=True)]


def resized(x: Any, sizes: Sequence[Any], factors: Sequence[float] | torch.Tensor | None, **attributes: Any) -> Any:
    """Resizes `x` along its last axes. With `factors`, numbers or a vector, the step in the input is 1 / factor, as in
    PyTorch, and not the ratio of the sizes."""
    count = len(sizes)
    shape = [*x.shape[: x.dim() - count], *sizes]
    axes = list(range(x.dim() - count, x.dim()))
    if factors is not None:
        scales = factors if isinstance(factors, torch.Tensor) else constant(list(factors), torch.float32)
        return onnx_op("Resize", x, None, scales, None, shape=shape, version=18, axes=axes, **attributes)
    wanted = torch.stack([torch.full((), size, dtype=torch.int64) for size in sizes])
    return onnx_op("Resize", x, None, None, wanted, shape=shape, version=18, axes=axes, **attributes)


_MOST = 2048
"""Counts the pixels that are compared if the size is dynamic. A choice: borders between pixels recur periodically, and
a factor with two digits has reached one by then."""


_Step = tuple[Any, Any, float | None]
"""Holds the length of an axis before and after, and the factor if one is given."""


def looked_up(x: Any, steps: Sequence[_Step], shift: float = 0.0) -> Any:
    """Takes the input pixel ⌊(i + shift) · step⌋ for each result pixel i, in float32 as in PyTorch."""
    for axis, (length, count, factor) in enumerate(steps):
        long, short = (torch.full((), size, dtype=torch.float32) for size in (length, count))
        step = torch.full((), 1 / factor, dtype=torch.float32) if factor is not None else long / short
        places = ((torch.arange(count, dtype=torch.float32) + shift) * step).floor()
        x = x.index_select(axis - len(steps), torch.minimum(places, long - 1).to(torch.int64))
    return x


def agree(length: Any, count: Any, factor: float | None, shift: float = 0.0) -> bool:
    """Whether the formulas of PyTorch and ONNX give the same pixels in float32. For dynamic sizes without a factor:
    whether one size follows from the other."""
    known = isinstance(count, int) and isinstance(length, int)
    if factor is None and not known:
        return bool(_symbols(length) & _symbols(count))
    half = np.float32(shift)
    places = np.arange(count if isinstance(count, int) else _MOST, dtype=np.float32) + half
    step = np.float32(1 / factor) if factor is not None else np.float32(length) / np.float32(count)
    scale = np.float32(factor) if factor is not None else np.float32(count) / np.float32(length)
    return bool((np.floor(places * step) == np.floor(places / scale - half + half)).all())


def _symbols(size: Any) -> set[Any]:
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()


class _Nearest(Translation):
    """Takes the pixel ⌊i · step⌋ for each result pixel i, where ONNX's Resize may take another one.

    The step is the ratio of the sizes, or 1 / factor, in float32. Runtimes divide by the scale instead, which may round
    to another pixel on a border between two: sizes 14 to 20 have such borders, a whole factor has none. PyTorch's
    translation is kept if both formulas are known to agree, or if one dynamic size follows from the other, as in a
    pyramid. Otherwise each pixel is looked up by PyTorch's formula.
    """

    axes: ClassVar[int]
    """Counts the axes that are resized."""

    def decompose(self, x: Any, output_size: Any, factors: Any = None, *, scale_factors: Any = None) -> Any:
        factors = list(factors or scale_factors or ()) or None
        sizes = output_sizes(x, output_size, factors)
        steps = list(zip(x.shape[-self.axes :], sizes, factors or [None] * self.axes, strict=True))
        return self._taken(x, sizes, factors, steps)

    def _taken(self, x: Any, sizes: list[Any], factors: list[float] | None, steps: Sequence[_Step]) -> Any:
        return NotImplemented if all(agree(*step) for step in steps) else looked_up(x, steps)

    def samples(self) -> Iterator[Sample]:
        return self._resizes((14, 26, 28), ((20, 17, 5), (28, 52, 56)), ((2.0, 3.0, 2.0), (1.3, 0.7, 0.3)))

    def _resizes(self, given: Sequence[int], sizes: Sequence[Any], factors: Sequence[Any]) -> Iterator[Sample]:
        x = torch.randn(2, 3, *given[: self.axes])
        for size in sizes:
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, list(size[: self.axes]), None), dynamic=dynamic)
        for by in factors:
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, None, list(by[: self.axes])), dynamic=dynamic)


_HALF = 0.5


class _NearestExact(_Nearest):
    """Takes the pixel ⌊(i + 1/2) · step⌋ for each result pixel i: the nearest one, measured between centres.

    In ONNX it is the position (i + 1/2) · step - 1/2, rounded with halves up. On the border of two pixels, float
    rounding decides. A Resize is written if both formulas are known to agree, or if one dynamic size follows from the
    other, as in the mode `nearest`. Otherwise each pixel is looked up by PyTorch's formula.
    """

    def _taken(self, x: Any, sizes: list[Any], factors: list[float] | None, steps: Sequence[_Step]) -> Any:
        if x.dtype in TAKEN and reaches(18) and all(agree(*step, _HALF) for step in steps):
            return resized(
                x, sizes, factors, mode="nearest", coordinate_transformation_mode="half_pixel",
                nearest_mode="round_prefer_ceil",
            )  # fmt: skip
        return looked_up(x, steps, _HALF)

    def samples(self) -> Iterator[Sample]:
        sizes = ((7, 17, 5), (24, 5, 16), (1, 1, 1))
        every = list(self._resizes((12, 10, 8), sizes, ((2.0, 3.0, 2.0), (0.5, 0.25, 0.5), (1.3, 0.7, 0.3))))
        yield from every
        yield Sample((every[0].args[0].double(), [7, 17, 5][: self.axes], None))


def _nearest(family: type[_Nearest], operator: str, axes: int) -> type[Translation]:
    """Returns the translation of a resize of the last `axes` axes, an entry of the table below."""
    name = operator.title().replace("_", "") + f"{axes}d"
    return member(family, name, __name__, f"aten::{operator}{axes}d.vec", axes=axes)


UpsampleNearest1d = _nearest(_Nearest, "upsample_nearest", 1)
UpsampleNearest2d = _nearest(_Nearest, "upsample_nearest", 2)
UpsampleNearest3d = _nearest(_Nearest, "upsample_nearest", 3)
UpsampleNearestExact1d = _nearest(_NearestExact, "_upsample_nearest_exact", 1)
UpsampleNearestExact2d = _nearest(_NearestExact, "_upsample_nearest_exact", 2)
UpsampleNearestExact3d = _nearest(_NearestExact, "_upsample_nearest_exact", 3)


class UpsampleLinear1d(Translation, targets=("aten::upsample_linear1d.default", "aten::upsample_linear1d.vec")):
    """Computes `upsample_linear1d`, linear interpolation along the last axis, by one Resize.

    PyTorch's exporter writes the same node for two and three axes.
    """

    def decompose(self, x: Any, output_size: Any, align_corners: bool, *given: Any, **named: Any) -> Any:
        if x.dtype not in TAKEN or not reaches(18):
            return NotImplemented
        found = given[0] if given else named.get("scale_factors", named.get("scales"))
        factors = [float(found)] if isinstance(found, float) else [float(one) for one in found or ()] or None
        mode = "align_corners" if align_corners else "half_pixel"
        sizes = output_sizes(x, output_size, factors)
        # with aligned corners and given sizes, the step follows from the sizes alone
        by = None if align_corners and output_size is not None else factors
        return resized(x, sizes, by, mode="linear", coordinate_transformation_mode=mode)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 12)
        for corners in (False, True):
            for size in ([7], [17], [1]):
                yield Sample((x, size, corners))
                yield Sample((x, size, corners, None), {}, self.targets[1], {0: {0: "n", 2: "l"}})
            for factor in (2.0, 0.5, 1.3):
                yield Sample((x, None, corners, [factor]), {}, self.targets[1], {0: {2: "l"}})
        yield Sample((x, [15], False, 1.3))
        yield Sample((x.double(), [7], False))


class _Antialiased(Translation):
    """Resizes images with an antialiasing filter: each result pixel is a weighted mean of input pixels.

    The weight is `kernel` of the distance to the centre of the result pixel in the input. If the step is longer than 1,
    distances are divided by it. Along each axis this is a matrix product.

    The step is 1 / scale if a scale is given, otherwise the ratio of the sizes; both are ONNX's Resize with
    `antialias`. With aligned corners it is the ratio of the sizes less 1, which Resize lacks. An axis that keeps its
    size is copied, whatever its scale (9 columns by 1.1 are 9), as in PyTorch.
    """

    mode: ClassVar[str]
    """Names the mode of Resize."""
    kernel: ClassVar[Callable[[torch.Tensor], torch.Tensor]]
    """Returns the weight at a distance of 0 or more."""

    def decompose(self, x: Any, output_size: Any, align_corners: bool, *given: Any, **named: Any) -> Any:
        factors = given[0] if given and not isinstance(given[0], float) else given
        factors = named.get("scale_factors", factors) or [named.get("scales_h"), named.get("scales_w")]
        factors = list(factors) + [None] * (2 - len(factors))
        scales = factors if all(factors) else None
        output_size = output_sizes(x, output_size, scales)
        by_one_rule = scales is not None or not any(factors)  # Resize takes scales for both axes or for none
        if not align_corners and by_one_rule and x.dtype in TAKEN and reaches(18):
            return resized(
                x, output_size, _own_scales(x, output_size, scales), mode=self.mode, antialias=1,
                coordinate_transformation_mode="half_pixel", exclude_outside=1, cubic_coeff_a=-0.5,
            )  # fmt: skip
        height, width = (
            self._weights(n, count, align_corners, factor, x.dtype)
            for n, count, factor in zip(x.shape[-2:], output_size, factors, strict=True)
        )
        return height @ (x @ width.transpose(0, 1))

    def _weights(self, length: Any, count: Any, align_corners: bool, factor: float | None, dtype: torch.dtype) -> Any:
        """Returns the matrix of weights along one axis, [count, length]. Sizes become tensors, because a trace would
        branch on the example's sizes."""
        long, short = (torch.full((), size, dtype=dtype) for size in (length, count))
        if align_corners:
            step = torch.where(short > 1, (long - 1) / (short - 1).clamp(min=1), torch.zeros((), dtype=dtype))
        else:
            step = long / short
            if factor:
                step = torch.where(long == short, torch.ones((), dtype=dtype), torch.full((), 1 / factor, dtype=dtype))
        centre = (torch.arange(count, dtype=dtype) + 0.5) * step
        place = torch.arange(length, dtype=dtype) + 0.5
        weight = type(self).kernel((place - centre.unsqueeze(1)).abs() / step.clamp(min=1))
        return weight / weight.sum(1, keepdim=True)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 9, 8)
        for corners in (False, True):
            for size in ([4, 5], [12, 8], [1, 3]):
                yield Sample((x, size, corners))
        yield Sample((x, [4, 5], False, 0.5, 0.7))
        yield Sample((x, [16, 14], False, 1.8, 1.8))
        yield Sample((x.double(), [4, 5], False, 0.5, 0.7))
        yield Sample((x, None, False, [0.5, 0.7]), {}, self.targets[1])
        for factors in ([1.1, 1.2], [1.05, 0.5], [1.1, 1.1]):
            yield Sample((x, None, False, factors), {}, self.targets[1])
        yield Sample((x.double(), None, False, [1.1, 1.1]), {}, self.targets[1])
        yield Sample((x, [4, 5], False, 0.5, None))
        open_axes = {0: {0: "n", 2: "h", 3: "w"}}
        for corners in (False, True):
            yield Sample((x, [4, 12], corners, None), {}, self.targets[1], open_axes, _channels_last)
            for factors in ([0.5, 1.3], [1.1, 1.2]):
                yield Sample((x, None, corners, factors), {}, self.targets[1], open_axes, _channels_last)
        yield Sample((x.double(), None, False, [1.1, 1.2]), {}, self.targets[1], open_axes, _channels_last)
        yield Sample((x, [4, 5], False, None), {}, self.targets[1], {0: {0: "n"}})


def _own_scales(x: torch.Tensor, sizes: Sequence[Any], scales: Sequence[float] | None) -> Any:
    """Returns the scales of a Resize, with 1 for an axis that keeps its size. A scale between 1 and 2 keeps only small
    sizes, so for a dynamic axis the graph decides."""
    if scales is None:
        return None
    found: list[Any] = []
    for length, size, scale in zip(x.shape[-2:], sizes, scales, strict=True):
        if isinstance(length, int) and isinstance(size, int):
            found.append(1.0 if length == size else scale)
        elif 1 < scale < 2:
            kept = torch.full((), length) == torch.full((), size)
            found.append(torch.where(kept, constant(1.0, torch.float32), constant(scale, torch.float32)))
        else:
            found.append(scale)
    if not any(isinstance(scale, torch.Tensor) for scale in found):
        return found
    return torch.stack([s if isinstance(s, torch.Tensor) else constant(s, torch.float32) for s in found])


def _channels_last(op: Any, x: torch.Tensor, *args: Any) -> Any:
    """Calls the operator with a channels-last input. PyTorch's kernel for the other layout gives wrong numbers if the
    result has one column, as `tests/exporter/test_resize.py` shows."""
    return op(x.contiguous(memory_format=torch.channels_last), *args)


def _antialiased(kind: str, mode: str, kernel: Callable[[torch.Tensor], torch.Tensor]) -> type[Translation]:
    """Returns the translation of an antialiased resize, an entry of the table below."""
    targets = (f"aten::_upsample_{kind}2d_aa.default", f"aten::_upsample_{kind}2d_aa.vec")
    return member(_Antialiased, f"Upsample{kind.title()}2dAa", __name__, targets, mode=mode, kernel=kernel)


def _triangle(distance: torch.Tensor) -> torch.Tensor:
    """Returns 1 at the centre, and 0 from one pixel away."""
    return (1 - distance).clamp(min=0)


def _cubic(distance: torch.Tensor) -> torch.Tensor:
    """Returns the cubic convolution with a = -1/2 (Keys, "Cubic convolution interpolation for digital image
    processing", 1981)."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, torch.zeros((), dtype=distance.dtype)))


UpsampleBilinear2dAa = _antialiased("bilinear", "linear", _triangle)
UpsampleBicubic2dAa = _antialiased("bicubic", "cubic", _cubic)
