"""Walks the state that a module keeps between calls: containers, plain objects, and their content."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from onnxsmith.base.seams.torch.tensors import buffers_of

REACHES = ()
"""Private names of torch: only those of `tensors.py`."""
PLAIN = vars(torch.nn.Module()).keys() | {"forward"}
"""Attributes that every module has; none of them is state."""
_DEPTH = 4
"""Largest depth of nested containers that are entered. A choice: the layers of a cache are at the third level."""
_MOST = 4096
"""Largest number of items of a container that is entered. A choice: a longer one is a vocabulary, not state."""
_WHOLE = (torch.Tensor, torch.nn.Module, type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, str, bytes)
_CLOSED = {"torch", "numpy", "builtins", "collections", "typing", "re", "logging", "threading", "pathlib", "enum"} | {
    "onnxsmith"  # onnxsmith's observers of a running module are not the module's state
}
"""Packages whose objects are not entered, except for the containers named above."""

Step = tuple[str, Any]
"""`("item", key)` of a container, or `("attribute", name)` of an object."""


@dataclass(frozen=True)
class Held:
    """A value in a module: the path of the submodule, its attribute, and the steps inside it."""

    part: str
    attribute: str
    steps: tuple[Step, ...]
    value: Any


def held(module: torch.nn.Module) -> Iterator[Held]:
    """Yields every value in the attributes and buffers of the module and its submodules, a container before its
    content. A container that occurs twice is entered once."""
    entered: set[int] = set()
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        own = {name: value for name, value in vars(part).items() if name not in PLAIN}
        for name, value in {**own, **buffers_of(part)}.items():
            yield from _inside(Held(path, name, (), value), entered)


def items(value: Any) -> list[tuple[Step, Any]]:
    """Returns the content of a container or a plain object; nothing for other values."""
    if isinstance(value, dict):
        found = [(("item", key), one) for key, one in value.items()]
    elif isinstance(value, list | tuple | deque):
        found = [(("item", index), one) for index, one in enumerate(value)]
    else:
        found = [(("attribute", name), one) for name, one in (attributes(value) or {}).items()]
    return found if len(found) <= _MOST else []


def attributes(value: Any) -> dict[str, Any] | None:
    """Returns the attributes of an instance of a user's class; None for other values, and if the class redefines
    `__dict__`."""
    kind = type(value)
    if isinstance(value, _WHOLE) or kind.__module__.partition(".")[0] in _CLOSED:
        return None
    try:
        own = object.__getattribute__(value, "__dict__")
    except Exception:  # noqa: BLE001 — a property of that name may raise anything
        return None
    return own if isinstance(own, dict) else None


def _inside(one: Held, entered: set[int]) -> Iterator[Held]:
    yield one
    if len(one.steps) >= _DEPTH or isinstance(one.value, int | float | str | torch.Tensor | None):
        return
    found = items(one.value)
    if not found or id(one.value) in entered:
        return
    entered.add(id(one.value))
    for step, value in found:
        yield from _inside(Held(one.part, one.attribute, (*one.steps, step), value), entered)
