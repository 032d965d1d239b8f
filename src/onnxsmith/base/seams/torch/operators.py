"""Looks up operators of torch: their schemas, their registrations, and operators that only a trace uses.

Compared with torch 2.11 to 2.14. If a name is gone, importing this module or calling its function raises a Problem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from onnxsmith.base.seams.base import required

if TYPE_CHECKING:
    from torch._ops import OpOverload, OpOverloadPacket

REACHES = (
    "torch._ops:OpOverload",
    "torch._ops:OpOverloadPacket",
    "torch._library.custom_ops:_maybe_get_opdef",
    "torch._library.simple_registry:singleton",
    "torch._higher_order_ops.while_loop:while_loop_op",
    "torch._C:DispatchKey.CompositeImplicitAutograd",
    "torch._C:_dispatch_has_kernel_for_dispatch_key",
    "torch._C:_dispatch_get_all_op_names",
)

if not TYPE_CHECKING:
    OpOverload = required("torch._ops:OpOverload")
    OpOverloadPacket = required("torch._ops:OpOverloadPacket")

__all__ = [
    "OpOverload",
    "OpOverloadPacket",
    "composite",
    "definition",
    "has_kernel",
    "names",
    "says_shapes",
    "schema",
    "while_loop_op",
]

while_loop_op: Any = required("torch._higher_order_ops.while_loop:while_loop_op")
"""The operator that `torch.while_loop` becomes in a trace."""


def schema(operator: Any) -> Any:
    """Returns an operator's schema: its name and arguments; None if it has no schema."""
    return getattr(operator, "_schema", None)


def definition(name: str) -> Any:
    """Returns the definition that `torch.library.custom_op` made under this name; None if there is none."""
    return required("torch._library.custom_ops:_maybe_get_opdef")(name)


def source(name: str) -> Any:
    """Returns the Python function that an operator was made from; None if there is none."""
    return getattr(definition(name), "_init_fn", None)


def says_shapes(operator: Any) -> bool:
    """Whether an operator has a fake implementation, which gives the shapes of its results during a trace."""
    name = str(operator.name())
    defined = definition(name)
    if defined is not None:
        return getattr(defined, "_abstract_fn", None) is not None
    keys = ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
    fake = required("torch._library.simple_registry:singleton").find(name).fake_impl
    return fake.kernel is not None or any(has_kernel(name, key) for key in keys)


def has_kernel(name: str, key: str) -> bool:
    """Whether an operator has a kernel for a dispatch key."""
    return bool(required("torch._C:_dispatch_has_kernel_for_dispatch_key")(name, key))


def composite(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls an operator's composite implementation in C++, even if other kernels are registered for it."""
    return operator._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)


def names() -> list[str]:
    """Returns the names of all operators, such as `aten::add`, each once."""
    found = required("torch._C:_dispatch_get_all_op_names")()
    return sorted({one.partition(".")[0] for one in found})
