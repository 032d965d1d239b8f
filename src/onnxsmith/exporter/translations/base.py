"""What a translation is: an operator of PyTorch written with operators that have a translation already.

It is PyTorch code, traced with the shapes and dtypes of the model in hand, so that a symbolic dimension stays one.
Where an ONNX operator is the better word for it, `onnx_op` puts that node into the graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch


@dataclass(frozen=True)
class Sample:
    """A call of a target that its translation is held to. `target` is one of the translation's, its first when empty,
    or where it has none its first function.

    `dynamic` are the axes that stay open, number of the tensor among the arguments → axis → name; axes of one name have
    one size. `around` is called with the operator and the arguments, and its result is compared, where the operator
    asks for more than random numbers (a positive definite matrix) or leaves something open (an eigenvector's sign).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    dynamic: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    around: Callable[..., Any] | None = None


class Translation(ABC):
    """One operator, or a family that is one computation. Stateless; found by walking this folder."""

    targets: ClassVar[tuple[str, ...]]
    """`aten::cdist` for every overload of an operator, `aten::max.dim` for one; none for what is a function only."""
    functions: ClassVar[tuple[Callable[..., Any], ...]] = ()
    """Functions of torch (`torch.cov`, `torch.Tensor.cov`) whose call tracing does not get through: they are written
    so before it, with the arguments of the call."""
    kernel_error: ClassVar[float] = 0.0
    """How far PyTorch's own kernel is from the function, relative to the scale of the result, where that is more than
    rounding: measured beside mpmath. The translation cannot be nearer to the kernel than that."""

    @abstractmethod
    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """What the operator computes, with its arguments as torch's dispatcher has them: optional ones may be missing,
        None, or given by keyword. `NotImplemented` leaves this call to PyTorch's own exporter."""

    @abstractmethod
    def samples(self) -> Iterator[Sample]:
        """Calls that cover its cases: each overload, other dtypes, empty and 0-d tensors, negative axes."""


def onnx_op(
    name: str,
    *inputs: torch.Tensor | None,
    like: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
    shape: Sequence[int | torch.SymInt] | None = None,
    version: int | None = None,
    **attributes: Any,
) -> torch.Tensor:
    """A node with one output in the ONNX graph. Dtype and shape of the result are `like`'s where they are not given.

    `name` may have a domain (`com.microsoft::Gelu`), `version` is the opset from which the operator is as used here.
    """
    like = like if like is not None else inputs[0]
    assert like is not None
    found: torch.Tensor = torch.onnx.ops.symbolic(
        name,
        inputs,
        attributes,
        dtype=like.dtype if dtype is None else dtype,
        shape=list(like.shape) if shape is None else shape,
        version=version,
    )
    return found


def onnx_ops(
    name: str,
    *inputs: torch.Tensor | None,
    outputs: Sequence[tuple[torch.dtype, Sequence[int | torch.SymInt]]],
    version: int | None = None,
    **attributes: Any,
) -> Sequence[torch.Tensor]:
    """A node with several outputs, each given by its dtype and its shape."""
    dtypes, shapes = zip(*outputs, strict=True)
    found: Sequence[torch.Tensor] = torch.onnx.ops.symbolic_multi_out(
        name, inputs, attributes, dtypes=dtypes, shapes=[list(shape) for shape in shapes], version=version
    )
    return found
