"""Flattens objects of any class that hold tensors, such as caches of keys and values, into leaves with readable paths.

torch flattens containers and registered classes. Here an object of any other class is unpacked into its attributes that
hold tensors; rebuilding makes an object of that class, with its other attributes unchanged. An integer attribute that
equals the number of steps of such a tensor (a cache's length) follows the tensor to other sizes. A private tensor
without axes (`_window`) is not an input; it stays a part of the object.

A path consists of attribute names. If only one attribute holds tensors, in a container, its name is left out. `keys`
and `values` are written `key` and `value`: `layers[0].keys` of a cache is `0.key`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.seams.torch import trees as pytree

_SINGULAR = {"keys": "key", "values": "value"}
_CONTAINERS = (dict, list, tuple)
_COUNTS = re.compile("length|seen|count")
_DEEPEST = 6
"""Levels of nested objects that are searched for tensors; a choice: deeper than any cache, and it stops at cycles."""


class _Unpacked:
    """An unpacked object: its class, its attributes, and the names of those that hold tensors."""

    def __init__(self, kind: type, state: dict[str, Any], holders: tuple[str, ...]) -> None:
        self.kind, self.state, self.holders = kind, state, holders


@dataclass(frozen=True)
class _Follows:
    """Placeholder for an integer that equals the number of steps of a tensor in the same object."""

    tensor: str


def flatten(tree: Any) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """The leaves with their paths, and the spec for `tree_unflatten`."""
    plain = unpacked(tree)
    return list(_paths(plain, ())), pytree.tree_structure(plain)


def leaves(tree: Any) -> list[Any]:
    """The leaves without their paths, in the order of `flatten`."""
    return list(pytree.tree_leaves(unpacked(tree)))


def unpacked(tree: Any, depth: int = 0) -> Any:
    """Unpacks every object in the tree that holds tensors and that torch cannot flatten."""
    return pytree.tree_map(lambda leaf: _unpack(leaf, depth), tree)


def _paths(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Like `pytree.tree_flatten_with_path`, but also for classes that were registered without key names: their parts
    are named after the keys or attributes that hold them."""
    held = parts(tree)
    if held is None:
        yield path, tree
        return
    for key, part in held:
        yield from _paths(part, (*path, key))


def parts(tree: Any) -> list[tuple[Any, Any]] | None:
    """The parts of an unpacked tree with their keys; None for a leaf."""
    kind = pytree.node_type(tree)
    if kind not in pytree.SUPPORTED_NODES:
        return None
    node = pytree.SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is not None:
        return list(node.flatten_with_keys_fn(tree)[0])
    return _keyed(tree, list(node.flatten_fn(tree)[0]))


def _keyed(tree: Any, parts: list[Any]) -> list[tuple[Any, Any]]:
    names: dict[int, Any] = {id(held): pytree.GetAttrKey(name) for name, held in _state(tree).items()}
    if isinstance(tree, Mapping):
        names |= {id(held): pytree.MappingKey(key) for key, held in tree.items()}
    return [(names.get(id(part), pytree.SequenceKey(at)), part) for at, part in enumerate(parts)]


def _state(value: Any) -> dict[str, Any]:
    """The attributes of an object, including slots."""
    slots = [name for kind in type(value).__mro__ for name in _slots(kind) if hasattr(value, name)]
    return {name: getattr(value, name) for name in dict.fromkeys(slots)} | dict(getattr(value, "__dict__", {}))


def _slots(kind: type) -> list[str]:
    found = vars(kind).get("__slots__", ())
    names = [found] if isinstance(found, str) else list(found)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def step(key: Any) -> str:
    """A step of a path as text; empty for a step that is left out."""
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key).strip(".[]'\"")


def _unpack(value: Any, depth: int) -> Any:
    if not _may_hold(value) or depth >= _DEEPEST:
        return value
    state = _state(value)
    holders = tuple(name for name, held in state.items() if _holds(held, depth + 1) and not _is_private(name, held))
    if not holders:
        return value
    inner = {name: unpacked(held, depth + 1) if name in holders else held for name, held in state.items()}
    return _Unpacked(type(value), inner, holders)


def _is_private(name: str, held: Any) -> bool:
    return name.startswith("_") and isinstance(held, torch.Tensor) and held.dim() == 0


def _may_hold(value: Any) -> bool:
    numbers = torch.SymInt | torch.SymFloat | torch.SymBool  # of a trace; they refer to its tensors
    plain = isinstance(value, torch.Tensor | torch.nn.Module | type | numbers) or callable(value)
    holds = hasattr(value, "__dict__") or any(map(_slots, type(value).__mro__))
    return not plain and holds and type(value).__module__ not in ("builtins", "numpy", "pathlib", "fractions")


def _holds(value: Any, depth: int) -> bool:
    if depth >= _DEEPEST:
        return False
    return any(
        isinstance(leaf, torch.Tensor)
        or (_may_hold(leaf) and any(_holds(held, depth + 1) for held in _state(leaf).values()))
        for leaf in pytree.tree_leaves(value)
    )


def _flatten(value: _Unpacked) -> tuple[list[Any], Any]:
    rest = {name: held for name, held in value.state.items() if name not in value.holders}
    for name in [name for name, held in rest.items() if _COUNTS.search(name) and type(held) is int]:
        # [batch, heads, steps, features]: a cache's layout, in which the axis before the last counts the steps.
        steps = [value.state[holder] for holder in value.holders]
        if all(
            isinstance(tensor, torch.Tensor) and tensor.dim() > 2 and tensor.shape[-2] == rest[name] for tensor in steps
        ):
            rest[name] = _Follows(value.holders[0])
    return [value.state[name] for name in value.holders], (value.kind, tuple(value.state), value.holders, rest)


def _flatten_with_keys(value: _Unpacked) -> tuple[list[tuple[Any, Any]], Any]:
    children, context = _flatten(value)
    return list(zip(map(pytree.GetAttrKey, _key_names(value)), children, strict=True)), context


def _key_names(value: _Unpacked) -> Iterator[str]:
    alone = len(value.holders) == 1 and isinstance(value.state[value.holders[0]], _CONTAINERS)
    for name in value.holders:
        yield "" if alone else _SINGULAR.get(name, name)


def _unflatten(children: Any, context: Any) -> Any:
    kind, names, holders, rest = context
    held: Mapping[str, Any] = dict(zip(holders, children, strict=True))
    made = kind.__new__(kind)  # without __init__, whose arguments are unknown
    for name in names:
        if name in held:
            object.__setattr__(made, name, held[name])  # also for frozen dataclasses
        elif isinstance(rest[name], _Follows):
            object.__setattr__(made, name, held[rest[name].tensor].shape[-2])
        else:
            object.__setattr__(made, name, _fresh(rest[name]))
    return made


def _fresh(value: Any) -> Any:
    """Copies containers, so that no call sees what another call wrote into them."""
    if type(value) is dict:
        return {key: _fresh(held) for key, held in value.items()}
    if type(value) is list:
        return [_fresh(held) for held in value]
    return set(value) if type(value) is set else value


pytree.register_pytree_node(_Unpacked, _flatten, _unflatten, flatten_with_keys_fn=_flatten_with_keys)
