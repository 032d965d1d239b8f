"""Calls a module several times in a row, and records its results and its state after each call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.randomness import seeded
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs import object_flattening
from onnxsmith.exporter.inputs.state_holders import Holder, holders, numbers
from onnxsmith.exporter.inputs.stateful import leaves
from onnxsmith.runtimes.torch_eager import Memory

STEPS = 3
"""The module is called this many times in a row. A choice: the second call reads the state that the first wrote, the
third shows a state that grows."""


@dataclass(frozen=True)
class Steps:
    """`results` are the leaves of each call's result. `states` are the tensors before the first call and after each
    call, by place; None where a place held none. `counted` are the Python numbers that changed."""

    results: list[list[Any]]
    states: list[dict[Holder, torch.Tensor | None]]
    counted: tuple[str, ...]

    @property
    def changed(self) -> tuple[Holder, ...]:
        """The places whose tensor had other values, or another shape, after some call."""
        return tuple(place for place in self.states[-1] if any(not _same(*pair) for pair in self._pairs(place)))

    def _pairs(self, place: Holder) -> list[tuple[Any, Any]]:
        seen = [state.get(place) for state in self.states]
        return list(pairwise(seen))


def stepped(model: TorchModel, *, count: int = STEPS) -> Steps:
    """Calls the module `count` times on its example inputs, starting from its current state, and restores that
    state."""
    memory, before = Memory(model.module), numbers(model.module)
    results, states = [], [_held(model.module)]
    try:
        for _ in range(count):
            results.append(copies(leaves(_called(model))))
            states.append(_held(model.module))
        after = numbers(model.module)
    finally:
        memory.restore()
    return Steps(results, states, tuple(name for name, value in after.items() if before.get(name) != value))


def chained(model: TorchModel, argument: str, state: dict[str, torch.Tensor], *, count: int = STEPS) -> list[list[Any]]:
    """Returns the leaves of `count` calls of a stateful forward, each with the state that the call before it returned.
    Between calls the module gets its own state back, because a graph keeps no state."""
    memory, found = Memory(model.module), []
    for _ in range(count):
        try:
            returned = _called(TorchModel(model.module, model.args, {**model.kwargs, argument: state}))
            found.append(copies(leaves(returned)))
            state = dict(zip(returned.state, copies(list(returned.state.values())), strict=True))
        finally:
            memory.restore()
    return found


def alike(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether two results are bit-identical."""
    return len(ours) == len(theirs) and all(_same(a, b) for a, b in zip(ours, theirs, strict=True))


def copies(values: Sequence[Any]) -> list[Any]:
    """Returns the values, with copies of tensors, which later calls do not change."""
    return [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in values]


def _same(one: Any, other: Any) -> bool:
    if not (isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor)):
        return one is other or (not isinstance(one, torch.Tensor | None) and bool(one == other))
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    equal = (one == other) | ((one != one) & (other != other))
    return bool(equal.all())


def _held(module: torch.nn.Module) -> dict[Holder, torch.Tensor | None]:
    found = {place: place.read(module) for place in holders(module)}
    return {place: None if value is None else value.detach().clone() for place, value in found.items()}


def _called(model: TorchModel) -> Any:
    flat, spec = object_flattening.flatten((tuple(model.args), dict(model.kwargs)))
    fresh = copies([leaf for _, leaf in flat])
    args, kwargs = pytree.tree_unflatten(fresh, spec)
    with torch.no_grad(), seeded():  # a module that draws random numbers draws the same in each chain
        return model.module(*args, **kwargs)
