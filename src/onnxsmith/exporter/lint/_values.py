"""The value of an expression in the user's source, as far as the source determines it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np
import torch


class Kind(Enum):
    """The kind of a value. If several kinds are possible, the last of them in this order counts."""

    OTHER = auto()
    """Marks a Python value that depends on no tensor, or an unknown value."""
    SIZE = auto()
    """Marks the size of an axis, or a number computed from a size."""
    SHAPE = auto()
    """Marks several sizes."""
    VALUE = auto()
    """Marks a Python value that depends on a tensor's values."""
    ARRAY = auto()
    """Marks a numpy array made from a tensor."""
    MANY = auto()
    """Marks a Python container that holds tensors."""
    TENSOR = auto()


class _Absent:
    """Marks an unknown object."""


ABSENT = _Absent()


@dataclass(frozen=True)
class Value:
    """The value of an expression.

    `inputs` are the arguments of forward that it may share memory with. `live` is the object itself, if known: a
    module's attribute, a global, an argument that is not a tensor. `direct` is the argument that is the value, or whose
    shape is the value. `axis` is the (argument, axis) whose size a SIZE is. `items` are the parts of a tuple display.
    """

    kind: Kind = Kind.OTHER
    inputs: frozenset[str] = frozenset()
    live: Any = ABSENT
    direct: str = ""
    axis: tuple[str, int] | None = None
    items: tuple[Value, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the object is known."""
        return self.live is not ABSENT


OTHER = Value()
TENSOR = Value(Kind.TENSOR)


def of_live(thing: Any) -> Value:
    """Returns the value for a known object."""
    if isinstance(thing, torch.Tensor):
        return Value(Kind.TENSOR, live=thing)
    if isinstance(thing, np.ndarray) or inspect.ismodule(thing) or isinstance(thing, type | torch.nn.Module):
        return Value(live=thing)
    parts = thing.values() if isinstance(thing, Mapping) else thing if isinstance(thing, list | tuple) else ()
    if any(isinstance(part, torch.Tensor) for part in parts):
        return Value(Kind.MANY, live=thing)
    return Value(live=thing)


def join(*values: Value) -> Value:
    """Returns the value of an expression that may have any of these values."""
    if not values:
        return OTHER
    first = max(values, key=lambda value: value.kind.value)
    inputs = frozenset().union(*(value.inputs for value in values))
    same = len(values) == 1 or all(value.live is values[0].live for value in values)
    alike = values[0].items and len({len(value.items) for value in values}) == 1
    items = tuple(join(*parts) for parts in zip(*(v.items for v in values), strict=True)) if alike else ()
    return replace(first, inputs=inputs, live=first.live if same else ABSENT, items=items)


def element(value: Value) -> Value:
    """Returns the value of an element of a container or tensor."""
    if value.kind in (Kind.MANY, Kind.TENSOR):
        return Value(Kind.TENSOR, value.inputs)
    if value.kind is Kind.SHAPE:
        return Value(Kind.SIZE)
    if value.kind in (Kind.VALUE, Kind.ARRAY, Kind.SIZE):
        return Value(value.kind)
    if value.known and isinstance(value.live, list | tuple | torch.nn.ModuleList | torch.nn.Sequential):
        return of_live(value.live[0]) if len(value.live) == 1 else OTHER
    return OTHER
