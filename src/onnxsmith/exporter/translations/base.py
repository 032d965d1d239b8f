"""The base class of translations: each computes an operator of PyTorch by operators that have a translation.

A translation is PyTorch code. It is traced with the shapes and dtypes of the exported model, so symbolic dimensions
stay symbolic. `onnx_op` adds an ONNX node to the graph, where an ONNX operator computes the result directly.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from onnxsmith.base.library_versions import Lifetime


@dataclass(frozen=True)
class Sample:
    """A call on which a translation is compared with PyTorch. `target` is one of the translation's targets; default:
    the first target, or else the first function.

    `dynamic` are the dynamic axes: index of the argument → axis → name; axes with one name have one size. `around`, if
    given, is called with the operator and the arguments, and its result is compared: for operators that need special
    inputs (a positive definite matrix), or whose result is not unique (an eigenvector's sign).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    dynamic: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    around: Callable[..., Any] | None = None


class Translation(ABC):
    """The translation of one operator, or of several that are one computation. Stateless."""

    targets: ClassVar[tuple[str, ...]]
    """`aten::cdist` for every overload of an operator, `aten::max.dim` for one overload; empty if the translation only
    replaces functions."""
    functions: ClassVar[tuple[Callable[..., Any], ...]] = ()
    """Functions of torch (`torch.cov`, `torch.Tensor.cov`) that a trace cannot follow: their calls are replaced by
    `decompose` before the trace."""
    lifetimes: ClassVar[Mapping[str, Lifetime]] = {}
    """The releases that have a target, or a function (`torch.nn.functional:one_hot`), where not every supported release
    does. Where it is missing, nothing is translated. Default: every supported release has all of them."""
    library: ClassVar[str] = ""
    """The module that defines the operators, if it is not torch itself. They are looked up only after it was imported:
    a module that uses them has imported it."""
    kernel_error: ClassVar[float] = 0.0
    """The error of PyTorch's own kernel relative to the scale of the result, if it is more than rounding; measured
    against mpmath. The translation is compared with the kernel with this tolerance."""

    @abstractmethod
    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the operator. The arguments come from torch's dispatcher: optional arguments may be missing, None,
        or given by keyword. Returns `NotImplemented` to leave a call to PyTorch's own exporter."""

    @abstractmethod
    def samples(self) -> Iterator[Sample]:
        """Calls that cover all cases: each overload, other dtypes, empty and 0-d tensors, negative axes."""


_asked: ContextVar[int | None] = ContextVar("asked_opset", default=None)


@contextmanager
def asked_for(opset: int | None) -> Iterator[None]:
    """Inside, `reaches` knows the opset of the file; None is the exporter's own."""
    token = _asked.set(opset)
    try:
        yield
    finally:
        _asked.reset(token)


def reaches(opset: int) -> bool:
    """Whether the file may have operators of this opset: true unless an older one was asked for. A graph is written in
    opset 18 at least and then converted, so that this matters for nodes that no converter brings down."""
    asked = _asked.get()
    return asked is None or asked >= opset


def onnx_op(
    name: str,
    *inputs: torch.Tensor | None,
    like: torch.Tensor | None = None,
    dtype: torch.dtype | None = None,
    shape: Sequence[int | torch.SymInt] | None = None,
    version: int | None = None,
    metadata: Mapping[str, str] | None = None,
    **attributes: Any,
) -> torch.Tensor:
    """Adds a node with one output to the ONNX graph. `dtype` and `shape` are those of the result; default: those of
    `like`, or else of the first input.

    `name` may have a domain (`com.microsoft::Gelu`). `version` is the opset that introduced this form of the operator.
    `metadata` are properties of the node.
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
        metadata_props=dict(metadata or {}),
    )
    return found


def onnx_ops(
    name: str,
    *inputs: torch.Tensor | None,
    outputs: Sequence[tuple[torch.dtype, Sequence[int | torch.SymInt]]],
    version: int | None = None,
    **attributes: Any,
) -> Sequence[torch.Tensor]:
    """Adds a node with several outputs; `outputs` has the dtype and shape of each."""
    dtypes, shapes = zip(*outputs, strict=True)
    found: Sequence[torch.Tensor] = torch.onnx.ops.symbolic_multi_out(
        name, inputs, attributes, dtypes=dtypes, shapes=[list(shape) for shape in shapes], version=version
    )
    return found
