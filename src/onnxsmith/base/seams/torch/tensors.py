"""Gives access to fake tensors (tensors without values), and to modes that observe operations.

A trace computes with `FakeTensor`; a `TorchDispatchMode` is called for every operation. torch documents both, but their
names are private. Compared with torch 2.11 to 2.14. If a name is gone, importing this module raises a Problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import torch

from onnxsmith.base.seams.base import replaced_at, required

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

_CONVERT = "torch._subclasses.fake_tensor:FakeTensorConverter.from_real_tensor"
_LIMIT = "torch._subclasses.fake_tensor:CONSTANT_NUMEL_LIMIT"
MOST_ELEMENTS = 64
"""Largest number of elements of a tensor whose values a trace keeps; torch keeps 1. A choice: more than an image has
channels."""

REACHES = (
    "torch._subclasses.fake_tensor:FakeTensor",
    "torch._subclasses.fake_tensor:FakeTensorMode",
    "torch.utils._python_dispatch:TorchDispatchMode",
    "torch.utils._python_dispatch:_disable_current_modes",
    "torch._guards:detect_fake_mode",
    "torch:Tensor._version",
    "torch:UntypedStorage._cdata",
    "torch:_check",
    "torch._subclasses.fake_tensor:FakeTensorMode.cache_clear",
    _CONVERT,
    _LIMIT,
)

if not TYPE_CHECKING:
    FakeTensor, FakeTensorMode, TorchDispatchMode = (required(path) for path in REACHES[:3])

__all__ = [
    "MOST_ELEMENTS",
    "FakeTensor",
    "FakeTensorMode",
    "TorchDispatchMode",
    "buffers_of",
    "check",
    "forgetting",
    "known_constants",
    "memory_of",
    "mode_of",
    "unheard",
    "version_of",
]

check: Any = required("torch:_check")
"""Tells a trace that sizes fulfil a condition."""


@contextmanager
def forgetting() -> Iterator[None]:
    """Clears torch's cache of results of operations before and after the block. Its key has the operands, but not how
    the operation was decomposed or which kernels were allowed. An attention then got another memory layout than the
    trace computes, and a view of it failed."""
    FakeTensorMode.cache_clear()
    try:
        yield
    finally:
        FakeTensorMode.cache_clear()


def mode_of(values: Iterable[Any]) -> Any:
    """Returns the mode that made the fake tensors among these values; None if there are none."""
    return required("torch._guards:detect_fake_mode")(list(values))


def unheard() -> AbstractContextManager[Any]:
    """Hides operations from all traces and modes while the block runs."""
    found: AbstractContextManager[Any] = required("torch.utils._python_dispatch:_disable_current_modes")()
    return found


def version_of(tensor: torch.Tensor) -> int:
    """Returns a number that changes with every write to the tensor."""
    return tensor._version


def memory_of(tensor: torch.Tensor) -> int:
    """Returns a number that is equal for two live strided tensors exactly if they are views of the same memory."""
    return int(tensor.untyped_storage()._cdata)


def buffers_of(module: torch.nn.Module) -> dict[str, torch.Tensor | None]:
    """Returns the module's own buffers by name, without those of its submodules."""
    return module._buffers


def _is_option(tensor: torch.Tensor) -> bool:
    """Whether a tensor of a module is a single number, or a short list of integers or flags."""
    if isinstance(tensor, FakeTensor):
        return False
    is_whole = not tensor.dtype.is_floating_point and not tensor.dtype.is_complex
    return tensor.numel() == 1 or (is_whole and tensor.numel() <= MOST_ELEMENTS)


@contextmanager
def known_constants(module: torch.nn.Module) -> Iterator[None]:
    """Makes a trace know the values of some tensors, so that a branch on them is not a branch on data.

    These are parameters and buffers with one element, such as a flag, a count or a temperature, and small tensors of
    integers and flags that the module holds, registered or not. torch forgets a value if forward writes to it.

    The trace also knows small tensors that forward makes from numbers, such as the means of channels, and results
    computed from these alone: `if (torch.as_tensor(std) == 0).any()` checks an option of the module. torch itself keeps
    tensors with one element only.
    """
    others = [value for part in module.modules() for value in vars(part).values() if isinstance(value, torch.Tensor)]
    held = (*module.parameters(), *module.buffers(), *others)
    values = {id(tensor): tensor for tensor in held if _is_option(tensor)}
    own = required(_CONVERT)

    def converted(converter: Any, mode: FakeTensorMode, tensor: torch.Tensor, *rest: Any, **options: Any) -> FakeTensor:
        fake: FakeTensor = own(converter, mode, tensor, *rest, **options)
        if id(tensor) in values and fake.constant is None:
            fake.constant = tensor.detach().clone()
        return fake

    with replaced_at(_CONVERT, converted), replaced_at(_LIMIT, MOST_ELEMENTS):
        yield
