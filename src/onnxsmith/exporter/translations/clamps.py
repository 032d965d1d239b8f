"""Clamps, and the larger or the smaller of two numbers.

A bound alone is a Max or a Min, not a Clip. A Clip without its other bound turns an infinity into the largest number of
the dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._tensors import constant
from onnxsmith.exporter.translations.base import Sample, Translation, member


def at_least(x: torch.Tensor, low: Any) -> torch.Tensor:
    """Returns the larger of `x` and `low`, which is a number, a size or a tensor. NaN stays NaN."""
    return torch.maximum(*_of_one_dtype(x, low))


def at_most(x: torch.Tensor, high: Any) -> torch.Tensor:
    """Returns the smaller of `x` and `high`, which is a number, a size or a tensor. NaN stays NaN."""
    return torch.minimum(*_of_one_dtype(x, high))


def _of_one_dtype(x: torch.Tensor, bound: Any) -> tuple[torch.Tensor, torch.Tensor]:
    dtype = torch.result_type(x, bound)
    if isinstance(bound, torch.Tensor):
        return x.to(dtype), bound.to(dtype)
    if isinstance(bound, int | float):
        return x.to(dtype), constant(bound, dtype)
    return x.to(dtype), torch.full((), bound, dtype=dtype)  # a symbolic size


def one_bound(target: str, **bound: float) -> Iterator[Sample]:
    """Yields calls with a number as the bound: infinities, NaN, integers (which the bound may make floats), empty and
    0-d tensors."""
    nan, inf = float("nan"), float("inf")
    yield Sample((torch.randn(3, 4),), bound, target, dynamic={0: {0: "n"}})
    yield Sample((torch.tensor([nan, inf, -inf, 3e38, -3e38, 0.0]),), bound, target)
    yield Sample((torch.tensor([inf, -inf, 1.0], dtype=torch.float16),), bound, target)
    yield Sample((torch.tensor([inf, -inf, 1.0], dtype=torch.float64),), bound, target)
    yield Sample((torch.tensor([1, -5]),), bound, target)
    yield Sample((torch.tensor([1, -5], dtype=torch.int32),), dict.fromkeys(bound, 2), target)
    yield Sample((torch.tensor(inf),), bound, target)
    yield Sample((torch.zeros(0, 3),), bound, target)


class Clamp(Translation, targets="aten::clamp"):
    """Computes `clamp`: a Max or a Min for one bound, both for two bounds that change the dtype or follow a dynamic
    size.

    Other calls with two bounds are left to PyTorch's exporter. If one of their bounds is an int and the other a float,
    they get one Python type first: the exporter makes a tensor of only one of them, and no overload takes a tensor and
    a number.
    """

    def decompose(self, x: torch.Tensor, min: Any = None, max: Any = None) -> Any:  # noqa: A002 — PyTorch's names
        if min is None or max is None:
            return x.clone() if min is max else at_least(x, min) if max is None else at_most(x, max)
        kept = torch.result_type(x, min) == x.dtype == torch.result_type(x, max)
        if not kept:
            return at_most(at_least(x, min), max)
        if isinstance(min, int | float) and isinstance(max, int | float) and type(min) is not type(max):
            number = float if x.is_floating_point() else int
            return x.clamp(number(min), number(max))
        if _is_symbol(min) or _is_symbol(max):
            return at_most(at_least(x, min), max)
        return NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield from one_bound("aten::clamp", min=0.5)
        yield from one_bound("aten::clamp", max=0.5)
        yield Sample((torch.tensor([1, 5, -2]), 0.5, 2.5))
        yield Sample((torch.tensor([1, 5, -2]), 0, 2.5))
        yield Sample((torch.tensor([1, 5, -2]), True, 3))
        for dtype in (torch.float32, torch.float16, torch.float64):
            yield Sample((torch.tensor([0.7, -1.0, float("nan"), float("inf")], dtype=dtype), 0, 0.5))
            yield Sample((torch.tensor([0.7, -1.0, float("nan"), float("inf")], dtype=dtype), 0.5, 3))
        yield Sample((torch.randn(3, 4), 0.5, 2), dynamic={0: {0: "n"}})
        for low, high in ((0.0, 1), (0, 1), (-0.5, 0.5)):
            yield Sample((torch.randn(3, 4),), dynamic={0: {0: "n"}}, around=_up_to_rows(low, high))
        yield Sample((torch.randn(3, 4), torch.randn(4), torch.randn(3, 1)), target="aten::clamp.Tensor")
        yield Sample((torch.randn(3, 4), None, torch.randn(4)), target="aten::clamp.Tensor")
        yield Sample((torch.tensor([1, 5]), torch.tensor([1.5, 2.5])), target="aten::clamp.Tensor")


def _is_symbol(bound: Any) -> bool:
    """Whether the bound is a number that depends on a dynamic size."""
    return isinstance(bound, torch.SymInt | torch.SymFloat)


def _up_to_rows(low: float, factor: float) -> Callable[..., Any]:
    """Returns a call that clamps between `low` and `factor` times the number of rows."""
    return lambda op, x: op(x, low, x.shape[0] * factor)


class _OneBound(Translation):
    """Computes an upper bound alone as the Min of the tensor and its bound, or a lower bound alone as the Max."""

    bound: ClassVar[str]
    """Names the argument of the operator that has the bound."""
    limit: ClassVar[Callable[[torch.Tensor, Any], torch.Tensor]]

    def decompose(self, x: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
        return type(self).limit(x, given[0] if given else named[self.bound])

    def samples(self) -> Iterator[Sample]:
        (target,) = self.targets
        yield from one_bound(target, **{self.bound: 0.5})
        yield Sample((torch.randn(3, 4), torch.randn(4)), target=f"{target}.Tensor")
        yield Sample((torch.randn(3), torch.tensor(0.5)), target=f"{target}.Tensor")
        yield Sample((torch.tensor([1, 5]), torch.tensor([1.5, 2.5])), target=f"{target}.Tensor")


ClampMax = member(_OneBound, "ClampMax", __name__, "aten::clamp_max", bound="max", limit=at_most)
ClampMin = member(_OneBound, "ClampMin", __name__, "aten::clamp_min", bound="min", limit=at_least)


class _LargerOrSmaller(Translation):
    """Computes `fmax` or `fmin`, the larger or the smaller of two numbers; of NaN and a number, the number."""

    extreme: ClassVar[Callable[..., torch.Tensor]]
    precedes: ClassVar[Callable[..., torch.Tensor]]
    """Compares two numbers: true if the first is the extreme."""

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        a, b = self_.to(dtype), other.to(dtype)
        if not dtype.is_floating_point:
            return type(self).extreme(a, b)
        return torch.where(type(self).precedes(a, b) | b.isnan(), a, b)

    def samples(self) -> Iterator[Sample]:
        nan, inf = float("nan"), float("inf")
        yield Sample((torch.randn(3, 4), torch.randn(4)), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor([1.0, nan, nan, inf, -inf]), torch.tensor([nan, 2.0, nan, nan, 3.0])))
        yield Sample((torch.randn(3, dtype=torch.float64), torch.randn(2, 1)))
        yield Sample((torch.tensor([1, -5]), torch.tensor([0.5, 0.5])))
        yield Sample((torch.tensor([1, -5]), torch.tensor([3, -7], dtype=torch.int32)))
        yield Sample((torch.tensor([True, False]), torch.tensor([False, False])))
        yield Sample((torch.tensor(1.0), torch.tensor(nan)))
        yield Sample((torch.zeros(0, 3), torch.ones(3)))


class Fmax(_LargerOrSmaller, targets=("aten::fmax", "prims::fmax")):
    extreme, precedes = torch.maximum, torch.ge


class Fmin(_LargerOrSmaller, targets=("aten::fmin", "prims::fmin")):
    extreme, precedes = torch.minimum, torch.le
