"""Aliases of arithmetic operators and comparisons, and integer arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._loops import any_of, loop
from onnxsmith.exporter.translations.base import Sample, Translation, member, onnx_op


class _Alias(Translation):
    """Replaces an alias by its operator. PyTorch's exporter promotes the dtypes of two tensors for the operator
    only."""

    operator: ClassVar[Callable[..., torch.Tensor]]

    def decompose(self, x: Any, other: Any, **more: Any) -> Any:
        return type(self).operator(x, other, **more)

    def samples(self) -> Iterator[Sample]:
        x, counts = torch.randn(3, 4), torch.arange(1, 5)
        yield Sample((x, counts))
        yield Sample((counts, x))
        yield Sample((x, x + 1))
        yield Sample((x.double(), torch.tensor(3)))
        yield Sample((x, counts), dynamic={0: {0: "n"}})


def _alias(name: str, alias: str, operator: Callable[..., torch.Tensor]) -> type[Translation]:
    """Returns the translation of an alias, an entry of the table below."""
    return member(_Alias, name, __name__, f"aten::{alias}.Tensor", operator=operator)


Multiply = _alias("Multiply", "multiply", torch.mul)
Divide = _alias("Divide", "divide", torch.div)
Subtract = _alias("Subtract", "subtract", torch.sub)
Less = _alias("Less", "less", torch.lt)
LessEqual = _alias("LessEqual", "less_equal", torch.le)
Greater = _alias("Greater", "greater", torch.gt)
GreaterEqual = _alias("GreaterEqual", "greater_equal", torch.ge)


class Rsub(Translation, targets="aten::rsub.Scalar"):
    """Computes `rsub`, a number minus a tensor, in the promoted dtype.

    PyTorch's exporter finds no overload for `1.0 - x` with integers.
    """

    def decompose(self, x: torch.Tensor, other: Any, alpha: Any = 1) -> Any:
        dtype = torch.result_type(x, other)
        return torch.sub(torch.full((), other, dtype=dtype), x.to(dtype), alpha=alpha)

    def samples(self) -> Iterator[Sample]:
        whole = torch.tensor([[-3, 0, 5], [1, 2, 4]])
        yield Sample((whole, 1.0))
        yield Sample((whole, 0.5, 2))
        yield Sample((whole.to(torch.uint8), 1.5))
        yield Sample((torch.tensor(3), 1.5))
        yield Sample((whole, 2, 3))
        yield Sample((torch.randn(2, 3), 1))
        yield Sample((whole, 1.0), {}, "", {0: {0: "n", 1: "m"}})


class Gcd(Translation, targets=("aten::gcd", "prims::gcd")):
    """Computes `gcd` by Euclid's algorithm on all elements at once, in a loop until every remainder is 0."""

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        wide = (self_.to(torch.int64).abs(), other.to(torch.int64).abs())

        def step(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
            done = b == 0
            return torch.where(done, a, b), torch.where(done, b, a.remainder(torch.where(done, 1, b)))

        state = torch.broadcast_tensors(*wide)  # type: ignore[no-untyped-call]
        return loop(lambda a, b: any_of(b != 0), step, state)[0].to(dtype)

    def samples(self) -> Iterator[Sample]:
        def numbers(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
            return torch.randint(-120, 120, shape).to(dtype)

        yield Sample((numbers(4, 5), numbers(5)), dynamic={0: {0: "n"}})
        yield Sample((numbers(5, dtype=torch.int32), numbers(5, dtype=torch.int8)))
        yield Sample((numbers(1, 5, dtype=torch.uint8), numbers(2, 1)))
        yield Sample((torch.tensor(0), torch.tensor(0)))
        yield Sample((torch.tensor([0, 2971215073, -4807526976]), torch.tensor([-7, 4807526976, 2971215073])))
        yield Sample((numbers(0, 3), numbers(3)))


class Lcm(Translation, targets="aten::lcm"):
    """Computes `lcm` as the product divided by the greatest common divisor; 0 where both numbers are 0."""

    def decompose(self, self_: Any, other: Any) -> Any:
        dtype = torch.result_type(self_, other)
        wide = self_.to(torch.int64)
        divisor = torch.gcd(wide, other.to(torch.int64))
        return (wide.div(divisor.clamp(min=1), rounding_mode="trunc") * other).abs().to(dtype)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randint(-99, 99, (4, 5)), torch.randint(-99, 99, (5,))), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(-9, 9, (4,), dtype=torch.int32), torch.randint(-9, 9, (4,), dtype=torch.int16)))
        yield Sample((torch.tensor(0), torch.tensor([0, 3])))
        yield Sample((torch.zeros(0, 3, dtype=torch.int64), torch.tensor(4)))


class _Shift(Translation):
    """Shifts integers by BitShift, in 32 or 64 bits, because onnxruntime has no kernel for 16 bits.

    As in PyTorch, a negative count, or a count of at least the width of the dtype, shifts out every bit: 0 is left, or
    -1 of a negative number that is shifted to the right.
    """

    left: ClassVar[bool]

    def decompose(self, x: Any, other: Any) -> Any:
        dtype = torch.result_type(x, other)
        wide, unsigned = (torch.int64, torch.uint64) if dtype == torch.int64 else (torch.int32, torch.uint32)
        x, count = (one.to(wide) if isinstance(one, torch.Tensor) else torch.full((), one, dtype=wide)
                    for one in (x, other))  # fmt: skip
        last = torch.iinfo(wide).bits - 1
        is_out = (count < 0) | (count > last)
        count = torch.where(is_out, last, count)
        like = torch.broadcast_tensors(x, count)[0]  # type: ignore[no-untyped-call]

        def shifted(bits: torch.Tensor, direction: str) -> torch.Tensor:
            operands = (onnx_op("Cast", one, dtype=unsigned, to=_ONNX_DTYPES[unsigned]) for one in (bits, count))
            made = onnx_op("BitShift", *operands, shape=like.shape, direction=direction)
            return onnx_op("Cast", made, dtype=wide, to=_ONNX_DTYPES[wide])

        if self.left:
            return torch.where(is_out, 0, shifted(x, "LEFT")).to(dtype)
        # BitShift fills with 0. The inverse of a negative number, -1 - x, starts with 0, too.
        made = shifted(torch.where(x < 0, -1 - x, x), "RIGHT")
        return torch.where(x < 0, -1 - made, made).to(dtype)

    def samples(self) -> Iterator[Sample]:
        x, counts = torch.tensor([[-128], [-77], [-1], [0], [1], [127]]), torch.tensor([-70, -1, 0, 1, 6, 7, 8, 15])
        operator, function = self.targets[0], self.targets[2].removesuffix(".Tensor")
        for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
            yield Sample((x.to(dtype), counts.to(dtype)), target=operator)
            yield Sample((x.to(dtype), 3), target=f"{operator.removesuffix('Tensor')}Scalar")
        yield Sample((x * 2**55 + 1, torch.tensor([0, 1, 31, 62, 63, 64])), target=operator)
        yield Sample((x.to(torch.int8), counts.to(torch.int32)), target=operator)
        yield Sample((torch.tensor(5), torch.zeros(0, 3, dtype=torch.int32)), target=operator)
        yield Sample((x, counts), target=f"{function}.Tensor")
        yield Sample((x, -1), target=f"{function}.Tensor_Scalar")
        yield Sample((-3, counts), target=f"{function}.Scalar_Tensor")
        yield Sample((x, counts), target=operator, dynamic={0: {0: "n"}, 1: {0: "m"}})


_ONNX_DTYPES = {torch.int32: 6, torch.int64: 7, torch.uint32: 12, torch.uint64: 13}
"""Numbers of dtypes in TensorProto.DataType."""


def _shift(name: str, operator: str, function: str, *, left: bool) -> type[Translation]:
    """Returns the translation of a shift, an entry of the table below."""
    targets = [f"aten::{operator}.{overload}" for overload in ("Tensor", "Scalar")]
    targets += [f"aten::{function}.{overload}" for overload in ("Tensor", "Tensor_Scalar", "Scalar_Tensor")]
    return member(_Shift, name, __name__, tuple(targets), left=left)


LeftShift = _shift("LeftShift", "__lshift__", "bitwise_left_shift", left=True)
RightShift = _shift("RightShift", "__rshift__", "bitwise_right_shift", left=False)


class IntMm(Translation, targets="aten::_int_mm"):
    """Multiplies two matrices of 8-bit integers into int32 (`_int_mm`) by MatMulInteger."""

    def decompose(self, a: Any, b: Any) -> Any:
        return onnx_op("MatMulInteger", a, b, dtype=torch.int32, shape=[a.shape[0], b.shape[1]])

    def samples(self) -> Iterator[Sample]:
        a = torch.randint(-128, 128, (32, 16), dtype=torch.int8)
        b = torch.randint(-128, 128, (16, 8), dtype=torch.int8)
        yield Sample((a, b))
