"""Reductions: truth, extremes, products and sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, member


class _TruthOfNumber(Translation):
    """Computes `all` and `any` of a 0-d tensor: whether the number is not zero. Leaves other tensors to PyTorch's
    exporter."""

    def decompose(self, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.dim():
            return NotImplemented
        return (x != 0).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)

    def samples(self) -> Iterator[Sample]:
        _, along, along_several = self.targets
        yield Sample((torch.tensor(2.5),))
        yield Sample((torch.tensor(0), 0, True), {}, along)
        yield Sample((torch.tensor(True), [0]), {}, along_several)
        yield Sample((torch.tensor(3, dtype=torch.uint8), -1), {}, along)
        yield Sample((torch.randn(3, 4) > 0, 1), {}, along, dynamic={0: {0: "n"}})


class AllTrue(_TruthOfNumber, targets=("aten::all", "aten::all.dim", "aten::all.dims")):
    """Computes `all` of a 0-d tensor: whether the number is not zero."""


class AnyTrue(_TruthOfNumber, targets=("aten::any", "aten::any.dim", "aten::any.dims")):
    """Computes `any` of a 0-d tensor, and over a dynamic axis by counting the elements that are not zero.

    PyTorch's exporter takes the largest element. A dynamic axis may be empty, and the maximum of no elements is the
    smallest integer, which is not zero.
    """

    def decompose(self, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axes = range(x.dim()) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
        if not x.dim() or not any(isinstance(x.shape[axis], torch.SymInt) for axis in axes):
            return super().decompose(x, dim, keepdim)
        count = (x != 0).to(torch.int64).sum(list(axes), keepdim=keepdim)
        return (count != 0).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        _, along, along_several = self.targets
        x = torch.randn(3, 4) > 0
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x, 0), {}, along, dynamic={0: {0: "n"}})
        yield Sample((x.float(), [0, 1], True), {}, along_several, dynamic={0: {0: "n", 1: "m"}})


class _TruthOfChecks(Translation):
    """Computes `_is_all_true` or `_is_any_true`, which checks of tensors call, by `all` or `any`."""

    reduce: ClassVar[Callable[[torch.Tensor], torch.Tensor]]

    def decompose(self, x: torch.Tensor) -> torch.Tensor:
        return type(self).reduce(x)

    def samples(self) -> Iterator[Sample]:
        for values in ([True, True], [True, False], []):
            yield Sample((torch.tensor(values, dtype=torch.bool),), dynamic={0: {0: "n"}} if values else {})
        yield Sample((torch.tensor(True),))


IsAllTrue = member(_TruthOfChecks, "IsAllTrue", __name__, "aten::_is_all_true", reduce=torch.all)
IsAnyTrue = member(_TruthOfChecks, "IsAnyTrue", __name__, "aten::_is_any_true", reduce=torch.any)


class _Extreme(Translation):
    """Computes `amax` or `amin` over all axes if none is given; a 0-d tensor is its own extreme.

    Other calls are left to PyTorch's exporter.
    """

    reduce: ClassVar[Callable[..., torch.Tensor]]
    """Takes a tensor, axes and `keepdim`."""

    def decompose(self, x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone()
        return NotImplemented if len(dim) else type(self).reduce(x, list(range(x.dim())), keepdim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x, [], True))
        yield Sample((x, [0, -1]))
        yield Sample((torch.tensor(2.5), [0], True))
        yield Sample((torch.tensor(3),))


Amax = member(_Extreme, "Amax", __name__, "aten::amax", reduce=torch.amax)
Amin = member(_Extreme, "Amin", __name__, "aten::amin", reduce=torch.amin)


class Aminmax(Translation, targets="aten::aminmax"):
    """Computes `aminmax` by `amin` and `amax`, along one axis or all. A 0-d tensor is its own minimum and maximum."""

    def decompose(self, x: Any, *, dim: int | None = None, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone(), x.clone()
        axes = list(range(x.dim())) if dim is None else [dim]
        return x.amin(axes, keepdim), x.amax(axes, keepdim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x,), {"dim": -2, "keepdim": True}, dynamic={0: {0: "n"}})
        yield Sample((x,), {"keepdim": True})
        yield Sample((torch.randint(-9, 9, (3, 4)),), {"dim": 0})
        yield Sample((torch.tensor(2.5),))
        yield Sample((torch.tensor(2.5),), {"dim": 0})


class Prod(Translation, targets="aten::prod.dim_int"):
    """Computes `prod` of a 0-d tensor along an axis: the number itself, as int64 for integers and bools.

    Other tensors are left to PyTorch's exporter.
    """

    def decompose(self, x: Any, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Any:
        if x.dim():
            return NotImplemented
        exact = x.dtype.is_floating_point or x.dtype.is_complex
        return x.to(dtype or (x.dtype if exact else torch.int64)).clone()

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(2.5), 0))
        yield Sample((torch.tensor(3, dtype=torch.int32), -1, True))
        yield Sample((torch.tensor(3), 0), {"dtype": torch.float32})
        yield Sample((torch.randn(3, 4), 1), dynamic={0: {0: "n"}})


class PrimsProd(Translation, targets="prims::prod"):
    """Computes `prims.prod`, the product over several axes, by one product for each axis."""

    def decompose(self, inp: Any, dims: Sequence[int] | None, *, output_dtype: torch.dtype | None = None) -> Any:
        found = inp if output_dtype is None else inp.to(output_dtype)
        for dim in sorted(range(inp.dim()) if dims is None else dims, reverse=True):
            found = torch.ops.aten.prod.dim_int(found, dim, dtype=found.dtype)
        return found

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, 4), [0, 2]))
        yield Sample((torch.randn(2, 3), [1]), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(-3, 3, (2, 3)), [0, 1]))
        yield Sample((torch.randn(2, 0), [1]))


_NARROW = (torch.int8, torch.int16, torch.uint8)


class Sum(Translation, targets=("aten::sum.dim_IntList", "aten::sum.default")):
    """Computes `sum` into 8 or 16 bits, which ReduceSum does not support: adds 64-bit integers and keeps the low bits.

    PyTorch's sum of narrow integers wraps around in the same way. Other dtypes are left to PyTorch's exporter.
    """

    def decompose(
        self, x: torch.Tensor, dim: list[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
    ) -> Any:
        if dtype not in _NARROW:
            return NotImplemented
        return x.to(torch.int64).sum(dim, keepdim).to(dtype)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[100, -3, 90], [7, 120, 121]])
        for dtype in _NARROW:
            yield Sample((x, [1]), {"dtype": dtype}, "aten::sum.dim_IntList")
        yield Sample((x > 8, [0, 1], True), {"dtype": torch.int16}, "aten::sum.dim_IntList")
        yield Sample((x, [-1]), {}, "aten::sum.dim_IntList")
        yield Sample((x,), {"dtype": torch.int8}, "aten::sum.default")
        yield Sample((x.to(torch.int16), [1]), {"dtype": torch.int16}, "aten::sum.dim_IntList", {0: {0: "n", 1: "m"}})
