"""Flattens objects of any class that hold tensors, such as caches of keys and values, into leaves with readable paths.

torch flattens containers and registered classes. Here an object of any other class is unpacked
(`object_rebuilding.py`): into its attributes that hold tensors and, for a subclass of dict, list or tuple or another
mapping, into its items. A private tensor without axes (`_window`) is not an input; it stays a part of the object.

A path consists of attribute names. If the only attribute that holds tensors is a container, its name is left out.
`keys` and `values` are written `key` and `value`: `layers[0].keys` of a cache is `0.key`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.inputs.object_rebuilding import Unpacked, items_of, state_of

_DEEPEST = 6
"""Limits the levels of nested objects that are searched for tensors. A choice: deeper than any cache, and it ends the
search in cycles."""


_SYMBOLIC = torch.SymInt | torch.SymFloat | torch.SymBool
"""Matches the symbolic numbers of a trace, which hold tensors of the trace."""


def flatten(tree: Any) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """Returns the leaves with their paths, and the spec for `tree_unflatten`."""
    plain = unpacked(tree)
    return list(_paths(plain, ())), pytree.tree_structure(plain)


def leaves(tree: Any) -> list[Any]:
    """Returns the leaves without their paths, in the order of `flatten`."""
    return list(pytree.tree_leaves(unpacked(tree)))


def unpacked(tree: Any, depth: int = 0) -> Any:
    """Unpacks every object in the tree that holds tensors and that torch cannot flatten."""
    return pytree.tree_map(lambda leaf: _unpack(leaf, depth), tree)


def _paths(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yields what `pytree.tree_flatten_with_path` returns, also for classes that were registered without key names:
    their parts are named after the keys or attributes that hold them."""
    held = parts(tree)
    if held is None:
        yield path, tree
        return
    for key, part in held:
        yield from _paths(part, (*path, key))


def parts(tree: Any) -> list[tuple[Any, Any]] | None:
    """Returns the parts of an unpacked tree with their keys; None for a leaf."""
    kind = pytree.node_type(tree)
    if kind not in pytree.SUPPORTED_NODES:
        return None
    node = pytree.SUPPORTED_NODES[kind]
    if node.flatten_with_keys_fn is not None:
        return list(node.flatten_with_keys_fn(tree)[0])
    return _keyed(tree, list(node.flatten_fn(tree)[0]))


def _keyed(tree: Any, parts: list[Any]) -> list[tuple[Any, Any]]:
    names: dict[int, Any] = {id(held): pytree.GetAttrKey(name) for name, held in state_of(tree).items()}
    if isinstance(tree, Mapping):
        names |= {id(held): pytree.MappingKey(key) for key, held in tree.items()}
    return [(names.get(id(part), pytree.SequenceKey(at)), part) for at, part in enumerate(parts)]


def step(key: Any) -> str:
    """Returns a step of a path as text; empty for a step that is left out."""
    for attribute in ("idx", "key", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key).strip(".[]'\"")


def _unpack(value: Any, depth: int) -> Any:
    if not _may_hold(value) or depth >= _DEEPEST:
        return value
    state, items = state_of(value), items_of(value)
    same = {id(held): key for key, held in items.items() if _holds(held, depth + 1)}
    holders = tuple(
        name
        for name, held in state.items()
        if id(held) not in same and _holds(held, depth + 1) and not _is_private(name, held)
    )
    if not holders and not same:
        # An object without tensors inside another belongs to the structure, such as a cache's layer that keeps nothing.
        return Unpacked(type(value), state, (), {}, {}) if depth and not items else value
    inner = {name: unpacked(held, depth + 1) if name in holders else held for name, held in state.items()}
    entries = {key: unpacked(held, depth + 1) for key, held in items.items()}
    aliases = {name: same[id(held)] for name, held in state.items() if id(held) in same}
    return Unpacked(type(value), inner, holders, entries, aliases)


def opened(tree: Any, depth: int = 0) -> Iterator[Any]:
    """Yields the objects that `flatten` unpacks, outer ones before inner ones."""
    if depth >= _DEEPEST:
        return
    for leaf in pytree.tree_leaves(tree):
        if isinstance(_unpack(leaf, depth), Unpacked):
            yield leaf
            yield from opened(list(_parts(leaf)), depth + 1)


def _is_private(name: str, held: Any) -> bool:
    return name.startswith("_") and isinstance(held, torch.Tensor) and held.dim() == 0


def _may_hold(value: Any) -> bool:
    if isinstance(value, torch.Tensor | torch.nn.Module | type | _SYMBOLIC) or callable(value):
        return False  # before its attributes are read: TorchDynamo cannot read those of a tensor
    holds = state_of(value) or items_of(value)
    return bool(holds) and type(value).__module__ not in ("numpy", "pathlib", "fractions")


def _parts(value: Any) -> Iterator[Any]:
    yield from state_of(value).values()
    yield from items_of(value).values()


def _holds(value: Any, depth: int) -> bool:
    if depth >= _DEEPEST:
        return False
    return any(
        isinstance(leaf, torch.Tensor) or (_may_hold(leaf) and any(_holds(held, depth + 1) for held in _parts(leaf)))
        for leaf in pytree.tree_leaves(value)
    )
