"""Finds the tensors of a module that forward changes, and reads and replaces them.

A tensor may be a buffer, a plain attribute, or an item of a list or dictionary that an attribute holds.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.seams.torch.tensors import buffers_of, version_of

_PLAIN = vars(torch.nn.Module()).keys() | {"forward"}
"""Attributes that every module has; none of them is a state."""

Mark = tuple[int, int]
"""Identity and version of a tensor: both stay the same while nothing writes to it."""


@dataclass(frozen=True)
class Holder:
    """A place that holds a tensor: the path of the submodule, its attribute, and the key in a list or dictionary
    (None: the attribute itself)."""

    part: str
    attribute: str
    key: Any = None

    @property
    def name(self) -> str:
        """The path of the place, `encoder.cache` or `caches.0`."""
        steps = (self.part, self.attribute, "" if self.key is None else str(self.key))
        return ".".join(filter(None, steps))

    def read(self, module: torch.nn.Module) -> Any:
        """What the place holds now; None if there is nothing."""
        container, key = self._place(module)
        try:
            return container[key]
        except (KeyError, IndexError):
            return None

    def write(self, module: torch.nn.Module, value: Any) -> None:
        """Puts a value in the place."""
        container, key = self._place(module)
        container[key] = value

    def _place(self, module: torch.nn.Module) -> tuple[Any, Any]:
        part = module.get_submodule(self.part)
        buffers = buffers_of(part)
        attributes: MutableMapping[str, Any] = buffers if self.attribute in buffers else vars(part)
        return (attributes, self.attribute) if self.key is None else (attributes[self.attribute], self.key)


def holders(module: torch.nn.Module) -> Iterator[Holder]:
    """Every place that holds a tensor or None. Parameters are not among them."""
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        own = {name: value for name, value in vars(part).items() if name not in _PLAIN}
        for name, value in {**own, **buffers_of(part)}.items():
            if value is None or _is_state(value):
                yield Holder(path, name)
            elif type(value) in (list, dict):
                items = value.items() if isinstance(value, dict) else enumerate(value)
                yield from (Holder(path, name, key) for key, item in items if _is_state(item))


def _is_state(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)


class Watched:
    """The tensors and numbers that a module holds now, to find what a call of the module changes."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._marks = {place: _mark(place.read(module)) for place in holders(module)}
        self._numbers = numbers(module)

    def changes(self) -> tuple[str, ...]:
        """The names of what holds another tensor, a tensor that was written to, or another number than before."""
        tensors = [
            place.name
            for place in holders(self._module)
            if self._marks.get(place, _NONE) != _mark(place.read(self._module))
        ]
        now = numbers(self._module)
        return (*tensors, *(name for name, value in now.items() if self._numbers.get(name) != value))


def _mark(value: Any) -> Mark:
    return (id(value), version_of(value) if isinstance(value, torch.Tensor) else 0)


_NONE = _mark(None)


def numbers(module: torch.nn.Module) -> dict[str, Any]:
    """The Python numbers that the module and its parts hold, by path."""
    return {
        f"{path}.{name}" if path else name: value
        for path, part in module.named_modules()
        if not isinstance(part, torch.jit.ScriptModule)
        for name, value in vars(part).items()
        if name != "training" and isinstance(value, bool | int | float)
    }
