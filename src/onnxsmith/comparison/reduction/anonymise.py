"""Replaces names and numbers by made-up ones, so that a model can be shared without revealing facts about its maker."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.remainder_simplification import strip
from onnxsmith.comparison.reduction.tensor_facts import tensor
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.runtimes.base import Array, Value

STEERING = 64
"""Elements up to which integers count as shapes, axes and similar parameters, and stay unchanged. A choice."""
_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def anonymised(case: Case, oracle: Oracle) -> tuple[Case, tuple[str, ...]]:
    """Returns the anonymised case, and which parts of the original it still contains. Descriptions, metadata, names,
    inputs and weights are removed or replaced, each as far as the case still fails."""
    kept: list[str] = []
    for what, change in (("descriptions and metadata", _undescribed), ("names", _renamed)):
        smaller = change(case)
        if oracle.fails(smaller):
            case = smaller
        else:
            kept.append(f"{what}: if they are removed, the model fails in another way")
    case, left = _randomised(case, oracle, _Inputs())
    kept += [f"values of input {name}" for name in left]
    case, left = _randomised(case, oracle, _Weights())
    kept += [f"values of weight {name}" for name in left]
    return case, (*kept, *_remaining(case))


def _undescribed(case: Case) -> Case:
    copy = cloned(case.model)
    strip(copy)
    copy.producer_name = copy.producer_version = copy.domain = copy.model_version = None
    return Case(copy, case.feeds)


def _renamed(case: Case) -> Case:
    copy = cloned(case.model)
    copy.graph.name = "g"
    names = (f"v{number}" for number in itertools.count())
    nodes = (f"n{number}" for number in itertools.count())
    fresh: dict[str, str] = {}
    dims: dict[str, str] = {}
    for value in dict.fromkeys(_values(copy)):
        _rename_dims(value, dims)
        if value.name:
            new = next(names)
            fresh.setdefault(value.name, new)
            value.name = new
    for number, graph in enumerate(walk.graphs(copy)):
        if graph is not copy.graph:
            graph.name = f"g{number}"
    for node in walk.all_nodes(copy):
        node.name = next(nodes)
    return Case(copy, {fresh[name]: value for name, value in case.feeds.items()})


def _values(model: ir.Model) -> Iterator[ir.Value]:
    for graph in walk.graphs(model):
        yield from graph.inputs
        yield from list(graph.initializers.values())
    for function in model.functions.values():
        yield from function.inputs
    for node in walk.all_nodes(model):
        yield from node.outputs


def _rename_dims(value: ir.Value, dims: dict[str, str]) -> None:
    if value.shape is None or value.shape.is_static():
        return
    new: list[int | str | None] = []
    for dim in value.shape:
        text = None if isinstance(dim, int) else dim.value
        new.append(int(dim) if isinstance(dim, int) else text and dims.setdefault(text, f"d{len(dims)}"))
    value.shape = ir.Shape(new)


class _Inputs:
    """The values given to inputs."""

    def names(self, case: Case) -> list[str]:
        return [name for name, value in case.feeds.items() if isinstance(value, np.ndarray) and value.size]

    def changed(self, case: Case, names: list[str]) -> Case:
        feeds: dict[str, Value] = {
            name: _random(value) if name in names and isinstance(value, np.ndarray) else value
            for name, value in case.feeds.items()
        }
        return Case(case.model, feeds)


class _Weights:
    """Initializers and constants, except small integers, which determine shapes and axes."""

    def names(self, case: Case) -> list[str]:
        return [held.name or "" for held, _ in _weights(case.model)]

    def changed(self, case: Case, names: list[str]) -> Case:
        copy = cloned(case.model)
        for held, put in list(_weights(copy)):
            if (held.name or "") in names:
                put(tensor(_random(_array(held)), held.name or ""))
        return Case(copy, case.feeds)


def _weights(model: ir.Model) -> Iterator[tuple[ir.TensorProtocol, Callable[[ir.TensorProtocol], None]]]:
    for value in walk.initializers(model):
        if value.const_value is not None and not _steers(value.const_value):
            value.const_value.name = value.name
            yield value.const_value, lambda new, value=value: setattr(value, "const_value", new)  # type: ignore[misc]
    for node in walk.all_nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.type != ir.AttributeType.TENSOR or attribute.is_ref() or _steers(attribute.as_tensor()):
                continue
            held = attribute.as_tensor()
            held.name = node.outputs[0].name or node.name

            def put(new: ir.TensorProtocol, node: ir.Node = node, name: str = name) -> None:
                node.attributes[name] = ir.AttrTensor(name, new)

            yield held, put


def _steers(held: ir.TensorProtocol) -> bool:
    return held.size == 0 or (held.size <= STEERING and (held.dtype.is_integer() or held.dtype == ir.DataType.BOOL))


def _randomised(case: Case, oracle: Oracle, kind: _Inputs | _Weights) -> tuple[Case, list[str]]:
    """Replaces as many values by random ones as the failure allows. Also returns the names of the values that stay."""
    queue, stay = [kind.names(case)], []
    while queue:
        names = queue.pop(0)
        changed = kind.changed(case, names) if names else case
        if not names or oracle.fails(changed):
            case = changed
        elif len(names) == 1:
            stay += names
        else:
            queue += [names[: len(names) // 2], names[len(names) // 2 :]]
    return case, stay


def _array(held: ir.TensorProtocol) -> Array:
    return np.asarray(held.numpy())


def _random(array: Array) -> Array:
    """Returns other values of the same dtype, shape and spread. NaN, infinities and zeros keep their places, and all
    numbers their sign, because these decide which path a kernel takes."""
    rng = np.random.default_rng([array.size, array.ndim])
    if array.dtype.kind in "OUS":
        made = np.empty(array.shape, dtype=object)
        made.reshape(-1)[:] = [f"s{number}" for number in range(array.size)]
        return made
    if array.dtype.kind == "b":
        return rng.permutation(array.reshape(-1)).reshape(array.shape)
    if array.dtype.kind in "iu":
        return rng.integers(int(array.min()), int(array.max()), array.shape, dtype=array.dtype, endpoint=True)
    wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    fixed = ~np.isfinite(wide) | (wide == 0)
    if fixed.all():
        return array
    free = wide[~fixed]
    drawn = rng.permutation(free) * rng.uniform(0.9, 1.1, free.shape)
    made = wide.copy()
    made[~fixed] = drawn
    return np.asarray(made).astype(array.dtype)


def _remaining(case: Case) -> Iterator[str]:
    """Yields sentences on parts of the original that this module never changes."""
    steering = [tensor for tensor in walk.tensors(case.model) if tensor.size and _steers(tensor)]
    if steering:
        yield f"{len(steering)} integer tensors of up to {STEERING} elements: they may be shapes or axes"
    custom = sorted({walk.op_name(node) for node in walk.all_nodes(case.model) if node.domain not in _KNOWN_DOMAINS})
    if custom:
        yield f"operators of other domains: {', '.join(custom)}"
    texts = sorted(
        {
            f"{node.op_type}.{name}"
            for node in walk.all_nodes(case.model)
            for name, attribute in node.attributes.items()
            if attribute.type in (ir.AttributeType.STRING, ir.AttributeType.STRINGS)
        }
    )
    if texts:
        yield f"texts in attributes: {', '.join(texts)}"
