"""Finds the dynamic axes of each tensor in a request that is nested like the arguments.

`dynamic_shapes` of `torch.export` has the structure of the arguments: a tuple with an entry for each argument of
`forward`, or a mapping by their names, with lists, tuples, mappings and objects inside. An entry for a container that
names axes applies to every tensor in the container.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxsmith.base.problem import problem
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.inputs.dynamic_axes_syntax import unreadable
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.graph.structure.tensor_paths import near

_CACHE = {"key_cache": "key", "keys": "key", "value_cache": "value", "values": "value"}
"""Maps the names that the parts of a cache have in transformers' own flattened form to their names as inputs."""


def by_input(dynamic: Any, model: TorchModel, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Returns the axes by input. `arguments` has the path of each input among the arguments (`state.0.key`), in order.

    A mapping by name may name inputs, arguments of `forward` and paths; names that are none of these are kept. A
    sequence has an entry for each argument of the call, in the order of `forward`; one of another length has an entry
    for each input.

    Raises:
        OnnxsmithError: `export/dynamic-syntax` if the axes have another structure than the arguments;
            `export/unknown-input` for an unknown key of a nested mapping.
    """
    if hasattr(dynamic, "dynamic_shapes"):  # ShapesCollection and AdditionalInputs of torch.export
        dynamic = dynamic.dynamic_shapes(model.module, tuple(model.args), dict(model.kwargs))
    bound = _bound(model)
    if not isinstance(dynamic, Mapping | list | tuple):
        raise unreadable(repr(dynamic), "a mapping {name: {axis: dimension}}, a list of axes or a text is needed")
    if not isinstance(dynamic, Mapping):
        named = list(bound) if len(dynamic) == len(bound) else list(arguments)
        if len(dynamic) > len(named):
            raise unreadable(
                repr(dynamic),
                f"the list has {len(dynamic)} entries, but forward was called with {len(bound)} arguments",
            )
        dynamic = dict(zip(named, dynamic, strict=False))
    inputs = {path: name for name, path in arguments.items()}
    found: dict[str, Any] = {}
    for key, wanted in dynamic.items():
        name = str(key)
        plain = name.lstrip("*")
        if (name not in arguments or arguments[name] == name) and plain in bound:
            for path, axes in _matched(wanted, *bound[plain]):
                found[inputs[path]] = axes
        else:
            found[name if name in arguments else inputs.get(name, name)] = {} if wanted is None else wanted
    return found


def _bound(model: TorchModel) -> dict[str, tuple[Any, str]]:
    """Returns each argument of the call with the path of its tensors, in the order of `forward`. The arguments of
    `*args` and `**kwargs` count one by one; those of `**kwargs` have no path."""
    args, kwargs = object_flattening.unpacked((tuple(model.args), dict(model.kwargs)))
    parameters = signature(model.module.forward).parameters.values()
    plain = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    found: dict[str, tuple[Any, str]] = {name: (value, name) for name, value in zip(plain, args, strict=False)}
    if len(args) > len(plain):
        variadic = next((one.name for one in parameters if one.kind == one.VAR_POSITIONAL), "args")
        found[variadic] = (tuple(args[len(plain) :]), variadic)
    own = [one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    named = {name: kwargs[name] for name in own if name in kwargs}
    found |= {name: (value, model.names.get(name, name)) for name, value in named.items()}
    more = {name: value for name, value in kwargs.items() if name not in named}
    if more:
        kind = next((one.name for one in parameters if one.kind == one.VAR_KEYWORD), "kwargs")
        found[kind] = ({model.names.get(name, name): value for name, value in more.items()}, "")
    return found


def _matched(wanted: Any, tree: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields the path of each tensor below `path`, with its axes."""
    if wanted is None:
        return
    if isinstance(tree, torch.Tensor):
        yield path, dict.fromkeys(range(tree.dim()), wanted) if is_hint(wanted) else wanted
        return
    parts = object_flattening.parts(tree)
    if parts is None:
        fixed = (is_hint(wanted) and wanted.type.name == "STATIC") or (type(wanted) is int and wanted == tree)
        if not fixed and (is_hint(wanted) or wanted):
            raise unreadable(
                f"{path}: {wanted!r}", f"{path!r} is {tree!r}, a constant of the graph without axes: write None there"
            )
        return
    if _names_axes(wanted, parts):
        for key, part in parts:
            if not _is_constant(part):
                yield from _matched(wanted, part, _below(path, key))
        return
    if len(parts) == 1 and not object_flattening.step(
        parts[0][0]
    ):  # the only container of an object, whose name is left out
        yield from _matched(_of_container(wanted, parts[0][1]), parts[0][1], path)
        return
    for (key, part), one in zip(parts, _in_order(wanted, parts, path), strict=True):
        yield from _matched(one, part, _below(path, key))


def _below(path: str, key: Any) -> str:
    return ".".join(filter(None, [path, object_flattening.step(key)]))


def _is_constant(tree: Any) -> bool:
    return not isinstance(tree, torch.Tensor) and object_flattening.parts(tree) is None


def is_hint(value: Any) -> bool:
    """Whether the value is `Dim.AUTO`, `Dim.DYNAMIC` or `Dim.STATIC`."""
    return type(value).__name__ == "_DimHint"


def _names_axes(wanted: Any, parts: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the entry for a container gives axes of a tensor, and not entries for its parts."""
    if is_hint(wanted) or isinstance(wanted, str):
        return True
    if isinstance(wanted, Mapping):
        keys = {getattr(key, "key", None) for key, _ in parts}
        return bool(wanted) and all(isinstance(key, int) and key not in keys for key in wanted)
    return isinstance(wanted, list | tuple) and any(_is_dimension(one) for one in wanted)


def _is_dimension(value: Any) -> bool:
    return isinstance(value, str | int) or is_hint(value) or hasattr(value, "__name__")


def _of_container(wanted: Any, tree: Any) -> Any:
    """Returns the entry for the container that is the only part of an object. For a cache, transformers lists all keys,
    then all values, while the container holds both layer by layer."""
    layers = object_flattening.parts(tree) or []
    names = [[object_flattening.step(key) for key, _ in object_flattening.parts(layer) or []] for _, layer in layers]
    if not names or any(one != ["key", "value"] for one in names):
        return next(iter(wanted.values())) if isinstance(wanted, Mapping) and len(wanted) == 1 else wanted
    if isinstance(wanted, Mapping) and set(wanted) <= {*_CACHE, "key", "value"}:
        by_kind = {_CACHE.get(key, key): entry for key, entry in wanted.items()}
    elif isinstance(wanted, list | tuple) and len(wanted) == 2 and all(_lists(one, len(layers)) for one in wanted):
        by_kind = {"key": wanted[0], "value": wanted[1]}
    else:
        return next(iter(wanted.values())) if isinstance(wanted, Mapping) and len(wanted) == 1 else wanted
    given = {kind: entry if _lists(entry, len(layers)) else [entry] * len(layers) for kind, entry in by_kind.items()}
    return [{kind: entry[at] for kind, entry in given.items()} for at, _ in enumerate(layers)]


def _lists(wanted: Any, count: int) -> bool:
    """Whether the request is a list with one entry for each of `count` tensors."""
    return isinstance(wanted, list | tuple) and len(wanted) == count and not any(map(_is_dimension, wanted))


def _in_order(wanted: Any, parts: Sequence[tuple[Any, Any]], path: str) -> list[Any]:
    """Returns the entry of each part; None for a part that a mapping does not name."""
    names = [object_flattening.step(key) for key, _ in parts]
    if not isinstance(wanted, Mapping | list | tuple):
        wanted = _opened(wanted)
    if isinstance(wanted, Mapping):
        keys = {key: str(key) if str(key) in names else _CACHE.get(str(key), str(key)) for key in wanted}
        given = {keys[key]: one for key, one in wanted.items()}
        if unknown := [key for key in given if key not in names]:
            meant = next(iter(near(unknown[0], names)), None)
            raise problem(
                "export/unknown-input",
                f"the dynamic axes of {path or 'the keyword arguments'} name {unknown[0]!r}, which does not exist "
                "there",
                where=f"{path}: {wanted!r}",
                fix=f"write {meant!r}" if meant else f"it has: {', '.join(names)}",
            )
        return [given.get(name) for name in names]
    if isinstance(wanted, list | tuple) and (len(wanted) == len(parts) or not wanted):
        return list(wanted) or [None] * len(parts)
    many = f"not {len(wanted)}" if isinstance(wanted, list | tuple) else f"not {wanted!r}"
    why = f"{path!r} holds {', '.join(names)}; {len(parts)} entries are needed, {many}"
    raise unreadable(f"{path}: {wanted!r}", why)


def _opened(wanted: Any) -> Any:
    """Returns the entries of a request that is an object of the argument's own class, with dimensions in place of
    tensors."""
    held = object_flattening.parts(wanted)
    if held is not None:
        return [part for _, part in held]
    return dict(vars(wanted)) if hasattr(wanted, "__dict__") else wanted
