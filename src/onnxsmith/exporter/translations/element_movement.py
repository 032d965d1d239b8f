"""Pads, rolls, repeats, squeezes and rearranges the elements of a tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.exporter.translations._tensors import constant
from onnxsmith.exporter.translations.base import Sample, Translation


class ReplicationPad(Translation):
    """Pads by edge values if some padding is negative, by looking up the nearest existing position.

    PyTorch repeats the edge of the whole axis, also if other paddings remove positions. ONNX's Pad would remove
    positions first. Other calls are left to PyTorch's exporter.
    """

    targets = ("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d")

    def decompose(self, x: Any, padding: Sequence[Any]) -> Any:
        if all(not isinstance(size, int) or size >= 0 for size in padding):
            return NotImplemented
        for axis, (before, after) in enumerate(zip(padding[::2], padding[1::2], strict=True), 1):
            size = x.shape[-axis]
            places = torch.arange(-before, size + after, device=x.device).clamp(0, size - 1)
            x = x.index_select(-axis, places)
        return x

    def samples(self) -> Iterator[Sample]:
        one, two, three = self.targets
        x = torch.randn(2, 3, 5, 4)
        yield Sample((x[0], [-2, 3]), {}, one)
        yield Sample((x[0], [3, -5]), {}, one)
        yield Sample((x, [-1, -2, 1, -1]), {}, two)
        yield Sample((x, [1, 2, 0, 1]), {}, two)
        yield Sample((x, [-1, 2, 1, 0, -1, 1]), {}, three)
        yield Sample((x, [-1, 2, 1, -1]), {}, two, {0: {2: "height", 3: "width"}})


class Pad(Translation, targets="aten::pad"):
    """Computes `pad` with negative edge padding as `ReplicationPad` does, and of complex numbers for each part alone.

    Other calls are left to PyTorch's exporter.
    """

    def decompose(self, x: Any, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Any:
        if x.dtype.is_complex:
            number = complex(value or 0)
            fillings = (number.real, number.imag) if mode == "constant" else (None, None)
            parts = zip(torch.view_as_real(x).unbind(-1), fillings, strict=True)
            filled = [functional.pad(part, list(pad), mode, filling) for part, filling in parts]
            return torch.view_as_complex(torch.stack(filled, -1))
        return ReplicationPad().decompose(x, pad) if mode == "replicate" else NotImplemented

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 5, 4)
        yield Sample((x[0], [-2, 3], "replicate"))
        yield Sample((x, [-1, 2, 1, -5], "replicate"), dynamic={0: {0: "n"}})
        yield Sample((x, [1, 2, 0, 1], "replicate"))
        yield Sample((x, [1, 2, 0, 1], "constant", 0.5))
        yield Sample((x, [1, 2, 0, 1], "reflect"))
        z = torch.randn(2, 3, 5, dtype=torch.complex64)
        yield Sample((z, [0, 0, 0, 1]), dynamic={0: {2: "n"}})
        yield Sample((z, [1, -2], "constant", 1.5))
        yield Sample((z, [2, 1], "reflect"))


class Roll(Translation, targets="aten::roll"):
    """Computes `roll` by a symbolic size, which an ONNX attribute cannot hold, by looking up elements axis by axis.

    Shifts by numbers are left to PyTorch's exporter.
    """

    def decompose(self, x: Any, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
        if all(isinstance(shift, int) for shift in shifts):
            return NotImplemented
        if not dims:
            return self.decompose(x.reshape(-1), shifts, [0]).reshape(x.shape)
        for shift, dim in zip(shifts, dims, strict=True):
            back, size = (torch.full((), number, dtype=torch.int64) for number in (shift, x.shape[dim]))
            x = x.index_select(dim, (torch.arange(x.shape[dim]) - back) % size)
        return x

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(4, 5)
        yield Sample((x, [1, -2], [0, 1]))
        yield Sample((x, [3]))
        yield Sample((x,), dynamic={0: {0: "n", 1: "m"}}, around=shifted)
        yield Sample((x,), dynamic={0: {1: "m"}}, around=shifted_as_one)


def shifted(op: Any, x: torch.Tensor) -> torch.Tensor:
    """Rolls by half the first axis, and by a quarter of the last axis backwards, as `fftshift` does."""
    found: torch.Tensor = op(x, [x.shape[0] // 2, -(x.shape[1] // 4)], [0, -1])
    return found


def shifted_as_one(op: Any, x: torch.Tensor) -> torch.Tensor:
    """Rolls all elements as one row, without an axis."""
    found: torch.Tensor = op(x, [x.shape[1] + 1])
    return found


class RepeatInterleave(Translation, targets="aten::repeat_interleave.self_int"):
    """Computes `repeat_interleave` by a number: each element repeated along one axis.

    Expands a new axis after this axis, and merges both. All sizes are written out, so that dynamic axes may have size 0
    and the simplification recognises an upsampling. If the number is a size of another tensor, PyTorch's exporter
    (onnxscript 0.7.2) repeats the wrong axis.
    """

    def decompose(self, x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
        del output_size
        if dim is None:
            x, dim = x.reshape(-1), 0
        if not isinstance(repeats, int | torch.SymInt) or x.dim() == 0:
            return NotImplemented
        dim %= x.dim()
        shape = list(x.shape)
        wide = x.unsqueeze(dim + 1).expand([*shape[: dim + 1], repeats, *shape[dim + 1 :]])
        return wide.reshape([*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]])

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 4)
        for dim in (0, 1, -1, None):
            yield Sample((x, 2), {"dim": dim})
        yield Sample((x, 0, 1))
        for along in (by_rows_first, by_rows_last):
            dynamic = {0: {0: "n"}, 1: {0: "rows"}}
            yield Sample((torch.randn(2, 3), torch.randn(4, 1)), dynamic=dynamic, around=along)
        yield Sample((x, 3, 1), dynamic={0: {0: "n", 1: "m", 2: "l"}})
        yield Sample((torch.arange(6).reshape(2, 3), 2, 1), dynamic={0: {1: "m"}})


def by_rows_first(op: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
    """Repeats the first axis of x as often as `other` has rows, a number that is symbolic in a trace."""
    return op(x, other.shape[0], 0)


def by_rows_last(op: Any, x: torch.Tensor, other: torch.Tensor) -> Any:
    """Repeats the last axis of x as often as `other` has rows."""
    return op(x, other.shape[0], -1)


class Resize(Translation, targets=("aten::resize", "aten::resize_as")):
    """Computes `resize_` and `resize_as_`: the elements in memory order under another shape.

    A larger shape is filled up with 0; PyTorch leaves these elements undefined.
    """

    def decompose(self, x: Any, size: Any, *, memory_format: Any = None) -> Any:
        del memory_format
        shape = list(size.shape if isinstance(size, torch.Tensor) else size)
        have, want = math.prod(x.shape), math.prod(shape)
        flat = x.reshape(-1)
        if have == want:
            return x.clone() if list(x.shape) == shape else x.reshape(shape)
        if want < have:
            return flat.narrow(0, 0, want).reshape(shape)
        return torch.cat([flat, torch.zeros((want - have,), dtype=x.dtype)]).reshape(shape)

    def samples(self) -> Iterator[Sample]:
        for shape in ([3, 4], [2, 6], [5], [], [0, 3]):
            yield Sample((torch.randn(3, 4), shape))
        yield Sample((torch.randn(3, 4), torch.randn(2, 3)), {}, "aten::resize_as")


class Squeeze(Translation, targets=("aten::squeeze", "aten::squeeze.dim", "aten::squeeze.dims")):
    """Computes `squeeze` of axes whose size may differ from 1; only axes of size 1 are removed.

    A single axis of size 1 is left to PyTorch's exporter.
    """

    def decompose(self, x: Any, dim: Any = None) -> Any:
        dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
        gone = sorted({axis % x.dim() for axis in dims if x.dim() and x.shape[axis] == 1}, reverse=True)
        if isinstance(dim, int) and gone:
            return NotImplemented
        if not gone:
            return x.clone()
        for axis in gone:
            x = x.squeeze(axis)
        return x

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(1, 3, 1, 2, 1)
        yield Sample((x,), {}, "aten::squeeze.default")
        yield Sample((torch.tensor(1.0),), {}, "aten::squeeze.default")
        for dim in (0, 1, -1, -2):
            yield Sample((x, dim), {}, "aten::squeeze.dim")
        yield Sample((torch.tensor(1.0), 0), {}, "aten::squeeze.dim")
        for dims in ([0, 1, -1], [], [1, 3], [-3]):
            yield Sample((x, dims), {}, "aten::squeeze.dims")
        yield Sample((torch.tensor(1.0), [0]), {}, "aten::squeeze.dims")
        yield Sample((torch.randn(2, 1, 3), [1, 2]), {}, "aten::squeeze.dims", {0: {0: "n"}})
        yield Sample((torch.randn(2, 1, 3), 2), {}, "aten::squeeze.dim", {0: {0: "n"}})


class SqueezeCopy(Translation, targets="aten::squeeze_copy"):
    """Computes `squeeze_copy` as `squeeze`, because ONNX has no views."""

    def decompose(self, x: Any, dim: Any = None) -> Any:
        return x.squeeze() if dim is None else x.squeeze(dim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(1, 3, 1, 2)
        yield Sample((x,), {}, "aten::squeeze_copy.default")
        yield Sample((x, 2), {}, "aten::squeeze_copy.dim")
        yield Sample((x, 1), {}, "aten::squeeze_copy.dim")
        yield Sample((x, [0, 2]), {}, "aten::squeeze_copy.dims")
        yield Sample((torch.randn(2, 1, 3), 1), {}, "aten::squeeze_copy.dim", {0: {0: "n"}})


class UnfoldBackward(Translation, targets="aten::unfold_backward"):
    """Computes `unfold_backward`, a part of `istft`: adds each element of each window at its position in the result."""

    def decompose(self, grad_in: Any, input_sizes: Sequence[Any], dim: int, size: int, step: int) -> Any:
        if not input_sizes:
            return grad_in.squeeze(0)
        dim = dim % len(input_sizes)
        starts = torch.arange(grad_in.shape[dim], device=grad_in.device) * step
        places = (starts.unsqueeze(1) + torch.arange(size, device=grad_in.device)).reshape(-1)
        windows = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
        return torch.index_add(grad_in.new_zeros(list(input_sizes)), dim, places, windows)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 5, 4), [2, 12], 1, 4, 2))
        yield Sample((torch.randn(3, 2, 4, dtype=torch.float64), [8, 2], 0, 4, 2))
        yield Sample((torch.randn(2, 3, 2), [2, 11], -1, 2, 4))


class Combinations(Translation, targets="aten::combinations", functions=(torch.combinations,)):
    """Computes `combinations`, every choice of r elements of a vector, by looking up a constant table of indices.

    For a dynamic length the indices are computed: those of an r-dimensional grid that rise from axis to axis. They come
    in the same order.
    """

    def decompose(self, x: Any, r: int = 2, with_replacement: bool = False) -> Any:
        if x.dim() != 1 or r < 1:
            return NotImplemented
        if not isinstance(x.shape[0], int):
            return x[_rising(x.shape[0], r, with_replacement)].reshape(-1, r)
        choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
        places = list(itertools.chain.from_iterable(choose(range(x.shape[0]), r)))
        if not places:
            return x.new_zeros((0, r))
        return x.index_select(0, constant(places, torch.int64)).reshape(-1, r)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(4)
        for r in (1, 2, 3, 5):
            yield Sample((x, r), around=torch_combinations)
            yield Sample((x, r, True), around=torch_combinations)
        yield Sample((torch.arange(3),), around=torch_combinations)
        for r, again in ((2, False), (3, False), (2, True), (1, False)):
            yield Sample((torch.randn(5), r, again), dynamic={0: {0: "n"}}, around=torch_combinations)


def _rising(length: Any, r: int, with_replacement: bool) -> torch.Tensor:
    """Returns indices of elements, int64 [combinations, r]."""
    numbers = torch.arange(length)
    axes = [numbers.reshape([-1 if axis == at else 1 for axis in range(r)]) for at in range(r)]
    wanted = torch.ones([length] * r, dtype=torch.bool)
    for left, right in itertools.pairwise(axes):
        wanted = wanted & (left <= right if with_replacement else left < right)
    return torch.nonzero(wanted)


def torch_combinations(_: Any, *args: Any) -> torch.Tensor:
    """Calls `torch.combinations`, as models do, instead of the operator."""
    return torch.combinations(*args)
