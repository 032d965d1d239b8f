"""Finds transformations of functions in forward: derivatives of `torch.func` and `torch.autograd`, and `vmap`."""

from __future__ import annotations

import dis
import traceback
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

import torch

from onnxsmith.exporter.factory import is_installed

_SPACES = (
    ("torch.func", torch.func, ("grad", "grad_and_value", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "linearize")),
    ("torch.func", torch.func, ("vmap",)),
    ("torch.autograd", torch.autograd, ("grad", "backward")),
    ("torch.autograd.functional", torch.autograd.functional, ("jacobian", "hessian", "vjp", "jvp", "hvp", "vhp")),
)
_TRANSFORMS = {
    id(getattr(space, name)): f"{path}.{name}"
    for path, space, names in _SPACES
    for name in names
    if hasattr(space, name)
}
"""Names the functions that transform a function, by id."""
_FRAMES = ("_functorch/eager_transforms.py", "_functorch/apis.py", "_functorch/vmap.py")
"""Names the files of torch through which a call of such a function passes (torch 2.13). torch.export itself uses others
of that folder."""
_DEPTH = 4
"""Limits the functions that call each other on the way to the transformation. A choice."""


def stopped_in(error: BaseException) -> bool:
    """Whether the error was raised while such a function ran."""
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.filename.endswith(_FRAMES) for frame in frames) or "functorch" in str(error)


def used_by(module: torch.nn.Module) -> str:
    """Returns the first transformation that a forward of the module calls; "" if there is none."""
    for part in module.modules():
        forward = getattr(type(part), "forward", None)
        if isinstance(forward, FunctionType) and not is_installed(forward.__code__.co_filename):
            for found in _used(forward, _DEPTH):
                return found
    return ""


def _used(function: FunctionType, depth: int) -> Iterator[str]:
    for thing in _loaded(function.__code__, function.__globals__):
        if id(thing) in _TRANSFORMS:
            yield _TRANSFORMS[id(thing)]
        elif depth and isinstance(thing, FunctionType) and not is_installed(thing.__code__.co_filename):
            yield from _used(thing, depth - 1)


def _loaded(code: CodeType, scope: dict[str, Any]) -> Iterator[Any]:
    """Yields the objects that the code reads by global names and their attributes, such as `torch.func.grad`."""
    thing: Any = None
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            thing = scope.get(step.argval)
            yield thing
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and thing is not None:
            thing = getattr(thing, step.argval, None) if isinstance(thing, type(torch)) else None
            yield thing
        elif step.opname not in ("CACHE", "PUSH_NULL", "PRECALL"):
            thing = None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _loaded(constant, scope)
