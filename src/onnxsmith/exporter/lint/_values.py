"""What an expression of the user's source holds, as far as reading can tell."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np
import torch


class Kind(Enum):
    """What something is. The order says which one prevails where two meet."""

    OTHER = auto()
    """A Python value that no tensor decides, or nothing that is known."""
    SIZE = auto()
    """A number that is the size of an axis, or was computed from one."""
    SHAPE = auto()
    """Several of them."""
    VALUE = auto()
    """A Python value taken from the values of a tensor."""
    ARRAY = auto()
    """A numpy array that was made of a tensor."""
    MANY = auto()
    """A Python container with tensors in it."""
    TENSOR = auto()


class _Absent:
    """The object is not known."""


ABSENT = _Absent()


@dataclass(frozen=True)
class Value:
    """`inputs` are the arguments of forward whose memory it may be. `live` is the object itself, where it is known:
    a module's attribute, a global, an argument that is no tensor. `direct` is the argument that it is, or whose shape
    it is; `axis` is (argument, axis) of a SIZE that is just that; `items` are the parts of a tuple that is written out.
    """

    kind: Kind = Kind.OTHER
    inputs: frozenset[str] = frozenset()
    live: Any = ABSENT
    direct: str = ""
    axis: tuple[str, int] | None = None
    items: tuple[Value, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the object itself is known."""
        return self.live is not ABSENT


OTHER = Value()
TENSOR = Value(Kind.TENSOR)


def of_live(thing: Any) -> Value:
    """The value that an object is."""
    if isinstance(thing, torch.Tensor):
        return Value(Kind.TENSOR, live=thing)
    if isinstance(thing, np.ndarray) or inspect.ismodule(thing) or isinstance(thing, type | torch.nn.Module):
        return Value(live=thing)
    parts = thing.values() if isinstance(thing, Mapping) else thing if isinstance(thing, list | tuple) else ()
    if any(isinstance(part, torch.Tensor) for part in parts):
        return Value(Kind.MANY, live=thing)
    return Value(live=thing)


def join(*values: Value) -> Value:
    """What is one of them."""
    if not values:
        return OTHER
    first = max(values, key=lambda value: value.kind.value)
    inputs = frozenset().union(*(value.inputs for value in values))
    same = len(values) == 1 or all(value.live is values[0].live for value in values)
    alike = values[0].items and len({len(value.items) for value in values}) == 1
    items = tuple(join(*parts) for parts in zip(*(v.items for v in values), strict=True)) if alike else ()
    return replace(first, inputs=inputs, live=first.live if same else ABSENT, items=items)


def element(value: Value) -> Value:
    """What a container or a tensor holds."""
    if value.kind in (Kind.MANY, Kind.TENSOR):
        return Value(Kind.TENSOR, value.inputs)
    if value.kind is Kind.SHAPE:
        return Value(Kind.SIZE)
    if value.kind in (Kind.VALUE, Kind.ARRAY, Kind.SIZE):
        return Value(value.kind)
    if value.known and isinstance(value.live, list | tuple | torch.nn.ModuleList | torch.nn.Sequential):
        return of_live(value.live[0]) if len(value.live) == 1 else OTHER
    return OTHER
