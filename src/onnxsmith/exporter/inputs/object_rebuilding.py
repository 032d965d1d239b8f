"""Takes an object apart into tensors and rebuilds it from other tensors.

Rebuilding makes an object of the same class without calling `__init__`, whose arguments are unknown. Attributes without
tensors stay unchanged. An integer attribute that equals the number of steps of a tensor in the object (the length of a
cache) follows the tensor to other sizes.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree

_SINGULAR = {"keys": "key", "values": "value"}
_CONTAINERS = (dict, list, tuple)
_COUNTS = re.compile("length|seen|count")
_BASES = (OrderedDict, dict, list, tuple)
"""Lists Python's containers, the most derived first. A subclass keeps its items in the container, not in attributes."""


class Unpacked:
    """An unpacked object: its class, its attributes, and the names of those that hold tensors.

    `items` are the entries of a class that is itself a container, by key or position. `aliases` are attributes that
    hold the value of an item, with the item's key."""

    def __init__(
        self,
        kind: type,
        state: dict[str, Any],
        holders: tuple[str, ...],
        items: dict[Any, Any],
        aliases: dict[str, Any],
    ) -> None:
        self.kind, self.state, self.holders, self.items, self.aliases = kind, state, holders, items, aliases


@dataclass(frozen=True)
class _Follows:
    """Placeholder for an integer that equals the number of steps of a tensor in the same object."""

    tensor: str


def state_of(value: Any) -> dict[str, Any]:
    """Returns the attributes of an object, including slots."""
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    return {name: getattr(value, name) for name in dict.fromkeys(slots)} | dict(getattr(value, "__dict__", {}))


def _slots(kind: type) -> list[str]:
    found = vars(kind).get("__slots__", ())
    names = [found] if isinstance(found, str) else list(found)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def items_of(value: Any) -> dict[Any, Any]:
    """Returns the entries of an object that is a container, by key or position; empty for any other object, and for a
    mapping that keeps its entries in attributes."""
    if isinstance(value, dict) or (isinstance(value, Mapping) and not state_of(value)):
        return dict(value.items())
    return dict(enumerate(value)) if isinstance(value, list | tuple) else {}


def _flatten(value: Unpacked) -> tuple[list[Any], Any]:
    rest = {name: held for name, held in value.state.items() if name not in (*value.holders, *value.aliases)}
    for name in [name for name, held in rest.items() if _COUNTS.search(name) and type(held) is int]:
        # [batch, heads, steps, features]: a cache's layout, in which the axis before the last counts the steps.
        steps = [value.state[holder] for holder in value.holders]
        if steps and all(
            isinstance(tensor, torch.Tensor) and tensor.dim() > 2 and tensor.shape[-2] == rest[name] for tensor in steps
        ):
            rest[name] = _Follows(value.holders[0])
    context = (value.kind, tuple(value.state), value.holders, rest, tuple(value.items), value.aliases)
    return [*(value.state[name] for name in value.holders), *value.items.values()], context


def _flatten_with_keys(value: Unpacked) -> tuple[list[tuple[Any, Any]], Any]:
    children, context = _flatten(value)
    return list(zip(_keys(value), children, strict=True)), context


def _keys(value: Unpacked) -> Iterator[Any]:
    alone = len(value.holders) == 1 and not value.items and isinstance(value.state[value.holders[0]], _CONTAINERS)
    for name in value.holders:
        yield pytree.GetAttrKey("" if alone else _SINGULAR.get(name, name))
    sequence = issubclass(value.kind, list | tuple)
    for key in value.items:
        yield pytree.SequenceKey(key) if sequence else pytree.MappingKey(key)


def _unflatten(children: Any, context: Any) -> Any:
    kind, names, holders, rest, keys, aliases = context
    found = list(children)
    held: Mapping[str, Any] = dict(zip(holders, found, strict=False))
    items = dict(zip(keys, found[len(holders) :], strict=True))
    made = _made(kind, items)
    for name in names:
        if name in held:
            object.__setattr__(made, name, held[name])  # also for frozen dataclasses
        elif name in aliases:
            object.__setattr__(made, name, items[aliases[name]])
        elif isinstance(rest[name], _Follows):
            object.__setattr__(made, name, held[rest[name].tensor].shape[-2])
        else:
            object.__setattr__(made, name, _fresh(rest[name]))
    return made


def _made(kind: Any, items: Mapping[Any, Any]) -> Any:
    """Makes an object of the class with these items, without calling `__init__` or the class's own methods."""
    base: Any = next((base for base in _BASES if issubclass(kind, base)), None)
    if base is tuple:
        return tuple.__new__(kind, items.values())
    if base is None and items:  # a mapping that keeps its items outside of Python's reach: types.MappingProxyType
        return kind(dict(items))
    made: Any = kind.__new__(kind)
    if base is list:
        list.extend(made, items.values())
    for key, item in items.items() if base in (OrderedDict, dict) else ():
        base.__setitem__(made, key, item)
    return made


def _fresh(value: Any) -> Any:
    """Copies containers, so that no call sees the changes of another call."""
    if type(value) is dict:
        return {key: _fresh(held) for key, held in value.items()}
    if type(value) is list:
        return [_fresh(held) for held in value]
    return set(value) if type(value) is set else value


pytree.register_pytree_node(Unpacked, _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys)
