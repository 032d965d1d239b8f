"""Leaves out a default dynamic axis that the model fixes: the user did not ask for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.pretrained.example_makers import Axes

_BATCH = "batch"


def without(
    model: TorchModel, dynamic: Mapping[str, Axes], fixed: Sequence[tuple[str, int]]
) -> tuple[TorchModel, dict[str, Axes]] | None:
    """Returns the model and its dynamic axes without the dimensions of `fixed` (input, axis); None if none of them is a
    default. A fixed batch has the size 1, if all inputs are plain tensors. The headline names each fixed dimension."""
    lost = {dynamic[name][axis] for name, axis in fixed if axis in dynamic.get(name, {})}
    if not lost:
        return None
    kwargs = dict(model.kwargs)
    plain = all(isinstance(kwargs.get(name), torch.Tensor) for name in dynamic)
    limits = list(model.limits)
    for dim in sorted(lost):
        places = [(name, axis) for name, axes in dynamic.items() for axis, one in axes.items() if one == dim]
        if _BATCH in dim and plain:
            for name, axis in places:
                kwargs[name] = kwargs[name].narrow(axis, 0, 1)
        sizes = [kwargs[name].shape[axis] for name, axis in places if isinstance(kwargs.get(name), torch.Tensor)]
        said = sizes[0] if sizes else "its size in the example"
        limits.append(f"{dim} is fixed to {said}: the model has a line for one size")
    left = {name: {axis: dim for axis, dim in axes.items() if dim not in lost} for name, axes in dynamic.items()}
    return replace(model, kwargs=kwargs, limits=tuple(limits), more=()), left
