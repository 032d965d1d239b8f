"""Finds the axes of a state that follow the dynamic axes of the other inputs, by calling the module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Dynamic, is_auto, is_text, parse
from onnxsmith.exporter.inputs.module_program import Built
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.runtimes.torch_eager import Memory
from onnxsmith.verification.inputs.shapes import size_of
from onnxsmith.verification.inputs.size_proposals import of_feed

Shapes = dict[str, tuple[int, ...]]


def dynamic(model: TorchModel, carried: Carried, asked: Dynamic) -> Dynamic:
    """Returns the requested dynamic axes with those of the state: axes that grow, and axes that follow another input's.

    Axes that were requested for a tensor of the state stay. A request by structure (a tree of `torch.export.Dim`) or
    for `auto` is returned unchanged.
    """
    by_name = isinstance(asked, Mapping) and all(isinstance(one, Mapping | type(None)) for one in asked.values())
    if not carried.initial or is_auto(asked) or not (is_text(asked) or by_name):
        return asked
    try:
        request = parse(asked)
        own = {name: axes for name, axes in request.axes.items() if name not in carried.initial}
        built = programs.build(model, own)
    except OnnxsmithError:  # the export reads the request again, and reports it
        return asked
    found: dict[str, dict[int, str]] = {name: dict(axes) for name, axes in carried.growing.items()}
    for symbol, size in of_feed(built.program.signature, built.example).items():
        for name, axis in _moved(built, carried, symbol, size):
            found.setdefault(name, {}).setdefault(axis, symbol)
    missing = {name: axes for name, axes in found.items() if name not in request.axes}
    if not missing:
        return asked
    if isinstance(asked, Mapping):
        return {**asked, **missing}
    texts = [asked] if isinstance(asked, str) else list(asked or ())
    texts += [f"{name}:{','.join(f'{axis}={dim}' for axis, dim in axes.items())}" for name, axes in missing.items()]
    return ";".join(filter(None, map(str, texts)))


def _moved(built: Built, carried: Carried, symbol: str, size: int) -> Iterator[tuple[str, int]]:
    """Yields the axes of the state that are longer after a call with a longer `symbol`. The calls have the unchanged
    state, or a state whose axes of the symbol's size are longer too."""
    longer = size + 1
    sizes = {**of_feed(built.program.signature, built.example), symbol: longer}
    others = {
        port.name: _resized(built.example[port.name], [size_of(dim, sizes) for dim in port.shape or ()])
        for port in built.program.signature.inputs
        if port.name not in carried.initial
    }
    begun = {name: carried.begun.get(name, value) for name, value in carried.initial.items()}
    before = _after(built, carried, {**built.example, **begun})
    wide = {name: _resized(value, [longer if n == size else n for n in value.shape]) for name, value in begun.items()}
    for state in (begun, wide):
        after = _after(built, carried, {**others, **state})
        if before is None or after is None:
            continue
        for name, shape in after.items():
            for axis, (long, short) in enumerate(zip(shape, before[name], strict=False)):
                if long == short + 1 and axis not in carried.growing.get(name, {}):
                    yield name, axis
        return


def _after(built: Built, carried: Carried, feed: Mapping[str, Any]) -> Shapes | None:
    """Returns the shapes of the state after a call; None if the module refuses the input."""
    memory = Memory(built.program.module)
    try:
        args, kwargs = built.program.arguments(feed)
        with torch.no_grad():
            state = built.program.module(*args, **kwargs).state
        return dict(zip(carried.initial, (tuple(tensor.shape) for tensor in state.values()), strict=True))
    except Exception:  # noqa: BLE001 — a module may raise anything on a size that it does not take
        return None
    finally:
        memory.restore()


def _resized(array: Any, shape: list[int]) -> Any:
    """Returns the array in another shape; new entries repeat the first ones."""
    for axis, wanted in enumerate(shape):
        if array.shape[axis] != wanted:
            array = np.take(array, np.arange(wanted) % max(array.shape[axis], 1), axis=axis)
    return array
