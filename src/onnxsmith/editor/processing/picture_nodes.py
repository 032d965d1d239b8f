"""Writes the processing of pictures with operators of the standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.editor.processing import pillow_reference
from onnxsmith.editor.processing.picture_rules import PictureRules
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.operators.tensor import Tensor

FIRST_OPSET = 18
"""The first opset whose Resize can smooth a picture that gets smaller (`antialias`)."""
_LUMA = (19595, 38470, 7471)
"""The shares of red, green and blue in a grey level, of 65536: Pillow's `convert("L")`, after ITU-R 601."""
_MODES: dict[str, dict[str, Any]] = {
    "bilinear": {"mode": "linear"},
    "bicubic": {"mode": "cubic", "cubic_coeff_a": -0.5},  # -0.75, ONNX's default, is that of OpenCV
}


def process(
    g: Operators, picture: ir.Value, rules: PictureRules, dtype: ir.DataType, *, channels_first: bool
) -> ir.Value:
    """Makes the nodes that turn `picture`, uint8[batch, height, width, channels], into the model's input of `dtype`."""
    return _Nodes(g, rules).made(g.tensor(picture), dtype, channels_first=channels_first).value


@dataclass(frozen=True)
class _Nodes:
    """Makes the nodes of each part of the rules. Heights and widths are int64 tensors of one element, or numbers."""

    g: Operators
    rules: PictureRules

    def made(self, picture: Tensor, dtype: ir.DataType, *, channels_first: bool) -> Tensor:
        g, rules = self.g, self.rules
        pixels: Tensor = g.Transpose(self._grey(picture) if rules.colour == "grey" else picture, perm=[0, 3, 1, 2])
        shape = g.Shape(picture)
        batch, height, width = (g.Gather(shape, [axis], axis=0) for axis in (0, 1, 2))
        size = self._resized(height, width)
        if rules.resize == "nearest":
            pixels = self._nearest(self._nearest(pixels, 2, height, size[0]), 3, width, size[1])
        else:
            pixels = self._smooth(g.Cast(pixels, to="float32"), batch, (height, width), size)
        if rules.fit == "crop":
            pixels = self._crop(pixels, size)
        if rules.resize != "nearest":
            pixels = self._between(g.Floor(pixels + g.constant(np.float32(0.5))))
        if rules.fit == "pad":
            pixels = self._pad(pixels, size)
        if rules.colour == "bgr":
            pixels = g.Gather(pixels, [2, 1, 0], axis=1)
        pixels = self._normalised(pixels, dtype)
        if not channels_first:
            pixels = g.Transpose(pixels, perm=[0, 2, 3, 1])
        return pixels

    def _grey(self, picture: Tensor) -> Tensor:
        g = self.g
        weighted = g.Cast(picture, to="int32") * g.constant(np.array(_LUMA, np.int32))
        total = g.ReduceSum(weighted, g.constant(np.array([3])), keepdims=1)
        grey: Tensor = g.Cast(g.Div(total + g.constant(np.int32(32768)), g.constant(np.int32(65536))), to="uint8")
        return grey

    def _resized(self, height: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the size after the resize: `PictureRules.resized`, in nodes."""
        g, rules = self.g, self.rules
        if rules.resized_to is not None:
            return self._number(rules.resized_to[0]), self._number(rules.resized_to[1])
        if rules.shorter is not None:
            shorter, least = self._number(rules.shorter), g.Min(height, width)
            return g.Div(height * shorter, least), g.Div(width * shorter, least)
        rows, columns = map(self._number, rules.size)
        one, two = self._number(1), self._number(2)
        high = g.Div(two * height * columns + width, two * width)
        wide = g.Div(two * width * rows + height, two * height)
        return g.Min(rows, g.Max(one, high)), g.Min(columns, g.Max(one, wide))

    def _smooth(self, pixels: Tensor, batch: Tensor, now: tuple[Tensor, Tensor], size: tuple[Tensor, Tensor]) -> Tensor:
        """Resizes float32 pixels. The result is not rounded.

        Pillow resizes along one axis, and then along the other one, and each pass gives grey levels of 0..255. Bilinear
        weights keep within these limits, so that the order of the passes does not matter. Bicubic weights exceed the
        limits at edges, and Pillow cuts the excess off after each pass: so the nodes have two passes, too, in Pillow's
        order. That is the width first, unless the picture loses more than twice as many rows as columns (observed in
        Pillow 13; older versions: always the width).
        """
        g, channels = self.g, self._number(self.rules.channels)
        if self.rules.resize == "bicubic":
            first = now[0], size[1]
            if pillow_reference.rows_may_come_first():
                rows_first = (now[0] > size[0]) & (now[0] - size[0] > (now[1] - size[1]) * self._number(2))
                first = g.Where(rows_first, size[0], now[0]), g.Where(rows_first, now[1], size[1])
            pixels = self._between(self._resize(pixels, g.Concat(batch, channels, *first, axis=0)))
        return self._resize(pixels, g.Concat(batch, channels, *size, axis=0))

    def _between(self, pixels: Tensor) -> Tensor:
        """Returns float32 pixels, at least 0 and at most 255."""
        limits = self.g.constant(np.float32(0)), self.g.constant(np.float32(255))
        limited: Tensor = self.g.Clip(pixels, *limits)
        return limited

    def _resize(self, pixels: Tensor, sizes: Tensor) -> Tensor:
        # Pillow's weights end at the border of the picture: exclude_outside.
        resized: Tensor = self.g.Resize(
            pixels, None, None, sizes, antialias=1, exclude_outside=1, **_MODES[self.rules.resize]
        )
        return resized

    def _nearest(self, pixels: Tensor, axis: int, now: Tensor, size: Tensor) -> Tensor:
        """Selects pixels. Pillow adds the step up in float64, from half a step; so does CumSum."""
        g = self.g
        step = g.Cast(now, to="float64") / g.Cast(size, to="float64")
        steps = g.Expand(step, size - self._number(1))
        half = step * g.constant(np.array([0.5]))
        at = g.CumSum(g.Concat(half, steps, axis=0), g.constant(np.array(0)))
        selected: Tensor = g.Gather(pixels, g.Cast(at, to="int64"), axis=axis)
        return selected

    def _crop(self, pixels: Tensor, size: tuple[Tensor, Tensor]) -> Tensor:
        rules, wanted = self.rules, np.array(self.rules.size)
        if rules.resized_to is not None:
            place = np.array([rules.start(*pair) for pair in zip(rules.resized_to, rules.size, strict=True)])
            start, end = self.g.constant(place), self.g.constant(place + wanted)
        else:
            starts = [self._start(outer, self._number(inner)) for outer, inner in zip(size, rules.size, strict=True)]
            start = self.g.Concat(*starts, axis=0)
            end = start + self.g.constant(wanted)
        cut: Tensor = self.g.Slice(pixels, start, end, self.g.constant(np.array([2, 3])))
        return cut

    def _start(self, outer: Tensor, inner: Tensor) -> Tensor:
        """Returns `PictureRules.start`, in nodes."""
        rest, two = outer - inner, self._number(2)
        half: Tensor = self.g.Div(rest, two)
        if self.rules.middle == "down":
            return half
        even: Tensor = half + self.g.Mod(rest, two) * self.g.Mod(half, two)
        return even

    def _pad(self, pixels: Tensor, size: tuple[Tensor, Tensor]) -> Tensor:
        g = self.g
        pairs = [(self._number(outer), inner) for outer, inner in zip(self.rules.size, size, strict=True)]
        before = [self._start(*pair) if self.rules.place == "centre" else self._number(0) for pair in pairs]
        after = [outer - inner - one for (outer, inner), one in zip(pairs, before, strict=True)]
        zeros = g.constant(np.array([0, 0]))
        pads = g.Concat(zeros, *before, zeros, *after, axis=0)
        numpy = np.uint8 if self.rules.resize == "nearest" else np.float32
        padded: Tensor = g.Pad(pixels, pads, g.constant(numpy(self.rules.fill)))
        return padded

    def _normalised(self, pixels: Tensor, dtype: ir.DataType) -> Tensor:
        """Returns (pixels - offset) / divisor for each channel, computed in float32, or in float64 for a model of
        float64. The quotient follows the difference, so that no digits are lost near the mean."""
        g, rules = self.g, self.rules
        computed = ir.DataType.DOUBLE if dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
        wanted = pixels.value.dtype if dtype.is_integer() else computed
        found: Tensor = pixels if pixels.value.dtype == wanted else g.Cast(pixels, to=wanted)
        for numbers, idle, op in ((rules.offsets, 0.0, "Sub"), (rules.divisors, 1.0, "Div")):
            if any(number != idle for number in numbers):
                one = numbers[:1] if len(set(numbers)) == 1 else numbers
                found = g.node(op, found, g.constant(np.array(one, computed.numpy()).reshape(-1, 1, 1)))
        if found.value.dtype != dtype:
            found = g.Cast(found, to=dtype)
        return found

    def _number(self, number: int) -> Tensor:
        return self.g.constant(np.array([number], np.int64))
