"""Finds the tensors of a module that forward changes, and reads and replaces them.

A tensor may be a buffer, a plain attribute, or lie inside an attribute's list, tuple, dictionary, deque or object.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.seams.torch.held import Step, held
from onnxsmith.base.seams.torch.tensors import buffers_of, version_of

Mark = tuple[int, int]
"""Holds the identity and the version of a tensor: both stay the same while nothing writes to it."""


@dataclass(frozen=True)
class Holder:
    """A place that holds a tensor: the path of the submodule, its attribute, and the keys and positions inside the
    attribute's value (none: the value itself)."""

    part: str
    attribute: str
    steps: tuple[Step, ...] = ()

    @property
    def name(self) -> str:
        """The path of the place, `encoder.cache` or `caches.0`."""
        return ".".join(filter(None, (self.part, self.attribute, *(str(key) for _, key in self.steps))))

    def read(self, module: torch.nn.Module) -> Any:
        """Returns the tensor in the place now; None if there is none."""
        try:
            found = self._attributes(module)[self.attribute]
            for step in self.steps:
                found = _at(found, step)
        except (KeyError, IndexError, TypeError, AttributeError):
            return None
        return found

    def write(self, module: torch.nn.Module, value: Any) -> None:
        """Puts a value in the place. A tuple that holds the place is replaced by a copy with the value."""
        attributes = self._attributes(module)
        attributes[self.attribute] = _with(attributes.get(self.attribute), self.steps, value)

    def _attributes(self, module: torch.nn.Module) -> MutableMapping[str, Any]:
        part = module.get_submodule(self.part)
        buffers = buffers_of(part)
        return buffers if self.attribute in buffers else vars(part)


def _at(container: Any, step: Step) -> Any:
    kind, key = step
    return vars(container)[key] if kind == "attribute" else container[key]


def _with(container: Any, steps: tuple[Step, ...], value: Any) -> Any:
    """Returns the container with the value at the end of the steps: itself, or a copy if it is a tuple."""
    if not steps:
        return value
    kind, key = steps[0]
    inner = _with(_at(container, steps[0]), steps[1:], value)
    if kind == "attribute":
        setattr(container, key, inner)
    elif isinstance(container, tuple):
        items = [*container[:key], inner, *container[key + 1 :]]
        return type(container)(*items) if hasattr(container, "_fields") else type(container)(items)
    else:
        container[key] = inner
    return container


def holders(module: torch.nn.Module) -> Iterator[Holder]:
    """Yields every place that holds a tensor, and every attribute that holds None. Parameters are left out."""
    for one in held(module):
        if _is_state(one.value) or (one.value is None and not one.steps):
            yield Holder(one.part, one.attribute, one.steps)


def _is_state(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter)


class Watched:
    """Remembers the tensors and numbers of a module, to find those that a call changes."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module
        self._marks = {place: _mark(place.read(module)) for place in holders(module)}
        self._numbers = numbers(module)

    def changes(self) -> tuple[str, ...]:
        """Returns the names of the places and numbers that changed: another tensor, a tensor that was written to, or
        another number."""
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
    """Returns the Python numbers that the module and its parts hold, by path."""
    return {
        f"{path}.{name}" if path else name: value
        for path, part in module.named_modules()
        if not isinstance(part, torch.jit.ScriptModule)
        for name, value in vars(part).items()
        if name != "training" and isinstance(value, bool | int | float)
    }
