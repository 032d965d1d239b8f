"""The base class of translations. A translation computes a PyTorch operator by operators that can be exported.

A translation is PyTorch code. It is traced with the shapes and dtypes of the exported model, so symbolic dimensions
stay symbolic. `onnx_op` adds an ONNX node to the graph, for results that one ONNX operator computes.

Translations that differ in a formula only are a table: one call of `member` for each, by a function of their family.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import torch

from onnxsmith.base.library_versions import Lifetime


@dataclass(frozen=True)
class Sample:
    """A call for which a translation is compared with PyTorch.

    `target` is one of the translation's targets; default: the first target, or the first function if there is none.
    `dynamic` maps the index of an argument to its dynamic axes, and each axis to a name; axes of one name have one
    size. If `around` is given, it is called with the operator and the arguments, and its result is compared. It serves
    operators that need special inputs (a positive definite matrix), or whose result is not unique (an eigenvector's
    sign).
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    dynamic: Mapping[int, Mapping[int, str]] = field(default_factory=dict)
    around: Callable[..., Any] | None = None


class Translation(ABC):
    """Translates one operator, or several that are one computation. Stateless.

    `targets`, `functions` and `library` may stand in the head of a class: `class Take(Translation,
    targets="aten::take")`.
    """

    targets: ClassVar[tuple[str, ...]]
    """`aten::cdist` is every overload of an operator, `aten::max.dim` is one overload. Empty if the translation
    replaces functions only."""
    functions: ClassVar[tuple[Callable[..., Any], ...]] = ()
    """Lists functions of torch (`torch.cov`, `torch.Tensor.cov`) that a trace cannot follow. Before the trace, calls of
    them are replaced by calls of `decompose`."""
    lifetimes: ClassVar[Mapping[str, Lifetime]] = {}
    """Gives the torch releases that have a target or a function (`torch.nn.functional:one_hot`), if some supported
    release lacks it. In such a release, the target or function is skipped. Default: every supported release has all of
    them."""
    library: ClassVar[str] = ""
    """Names the module that defines the operators, if it is not torch. They are looked up only if the module is
    imported already; a model that uses them has imported it."""
    kernel_error: ClassVar[float] = 0.0
    """Bounds the error of PyTorch's kernel relative to the scale of the result, measured against mpmath, if it is more
    than rounding. It is the tolerance when the translation is compared with the kernel."""

    def __init_subclass__(
        cls, *, targets: str | tuple[str, ...] | None = None, functions: tuple[Callable[..., Any], ...] | None = None,
        library: str | None = None,
    ) -> None:  # fmt: skip
        super().__init_subclass__()
        if targets is not None or functions is not None:
            cls.targets = (targets,) if isinstance(targets, str) else targets or ()
        if functions is not None:
            cls.functions = functions
        if library is not None:
            cls.library = library

    @abstractmethod
    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the operator. Returns `NotImplemented` to leave a call to PyTorch's exporter.

        The arguments come from torch's dispatcher: optional arguments may be missing, None, or given by keyword.
        """

    @abstractmethod
    def samples(self) -> Iterable[Sample]:
        """Yields calls that cover all cases: each overload, other dtypes, empty and 0-d tensors, negative axes."""


_Family = TypeVar("_Family", bound=Translation)


def member(
    family: type[_Family], name: str, module: str, targets: str | tuple[str, ...], **attributes: Any
) -> type[_Family]:
    """Returns a subclass of `family` with these attributes; functions among them become static methods.

    It makes the entries of a table: `Name = member(…, "Name", __name__, "aten::name")`. The id follows from the name,
    as for a class that is written out. `module` is the module of the table.
    """
    static = {key: staticmethod(value) if callable(value) else value for key, value in attributes.items()}
    found: type[_Family] = type(name, (family,), {"__module__": module, **static}, targets=targets)
    return found


_asked: ContextVar[int | None] = ContextVar("asked_opset", default=None)


@contextmanager
def asked_for(opset: int | None) -> Iterator[None]:
    """Tells `reaches` the opset requested for the file. None is the exporter's default."""
    token = _asked.set(opset)
    try:
        yield
    finally:
        _asked.reset(token)


def reaches(opset: int) -> bool:
    """Whether the file may contain operators of this opset. True unless an older opset was requested.

    A graph is written in opset 18 or later, then converted. So this matters only for nodes that no converter can bring
    to an older opset.
    """
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
    """Adds a node with one output to the ONNX graph.

    `name` may have a domain (`com.microsoft::Gelu`). `dtype` and `shape` describe the output; default: those of `like`,
    or of the first input if `like` is None. `version` is the opset that introduced this form of the operator.
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
    """Adds a node with several outputs to the ONNX graph. `outputs` has the dtype and shape of each output."""
    dtypes, shapes = zip(*outputs, strict=True)
    found: Sequence[torch.Tensor] = torch.onnx.ops.symbolic_multi_out(
        name, inputs, attributes, dtypes=dtypes, shapes=[list(shape) for shape in shapes], version=version
    )
    return found
