"""Which axes of the inputs can be dynamic: the module itself is asked, by calling it with other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxsmith.exporter.program import Axes, Built
from onnxsmith.model.signature import Signature
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes.base import Session
from onnxsmith.runtimes.torch_eager import TorchEager

Axis = tuple[str, int]
_STEPS = (1, 2, 4, 8, 16, 32)
"""By how much an axis is made longer, until the module takes it: windows and strides want multiples."""


@dataclass(frozen=True)
class Probed:
    """Axes that move, in groups that move together; the others are fixed by the module."""

    groups: tuple[tuple[Axis, ...], ...]

    @property
    def axes(self) -> Axes:
        """As `--dynamic` would name them: `batch` when a group is the first axis of every input in it."""
        found: dict[str, dict[int, str]] = {}
        for group in self.groups:
            for name, axis in group:
                found.setdefault(name, {})[axis] = self._symbol(group)
        return found

    @property
    def symbols(self) -> list[str]:
        """The name of each group."""
        return [self._symbol(group) for group in self.groups]

    def _symbol(self, group: Sequence[Axis]) -> str:
        first = [g for g in self.groups if all(axis == 0 for _, axis in g)]
        return "batch" if first == [group] else f"{group[0][0]}.{group[0][1]}"

    def without(self, axes: Sequence[Axis]) -> Probed:
        """Without the groups that hold one of `axes`."""
        return Probed(tuple(group for group in self.groups if not set(group) & set(axes)))


def probe(built: Built) -> Probed:
    """Asks the module. An axis that does not move alone is tried together with the others of its size."""
    example = built.example
    signature = built.program.signature
    opened = tuple(
        replace(port, shape=tuple(f"{port.name}.{axis}" for axis, _ in enumerate(port.shape or ())))
        for port in signature.inputs
    )
    program = replace(built.program, signature=Signature(opened, signature.outputs))
    with TorchEager().prepare(program) as session:
        every = [(name, axis) for name, array in example.items() for axis in range(array.ndim) if array.shape[axis]]
        groups: list[tuple[Axis, ...]] = []
        stuck: dict[int, list[Axis]] = {}
        for axis in every:
            if _moves(session, example, [axis]):
                groups.append((axis,))
            else:
                stuck.setdefault(example[axis[0]].shape[axis[1]], []).append(axis)
        for axes in stuck.values():
            groups += _together(session, example, axes)
    return Probed(tuple(groups))


def _together(session: Session, example: Mapping[str, Any], axes: list[Axis]) -> Iterator[tuple[Axis, ...]]:
    """Groups of axes of one size: those with the same number of each input first, then all."""
    left = list(axes)
    for number in sorted({axis for _, axis in axes}):
        same = [axis for axis in left if axis[1] == number]
        if len(same) > 1 and _moves(session, example, same):
            yield tuple(same)
            left = [axis for axis in left if axis not in same]
    if len(left) > 1 and _moves(session, example, left):
        yield tuple(left)


def _moves(session: Session, example: Mapping[str, Any], axes: Sequence[Axis]) -> bool:
    return any(_takes(session, longer(example, axes, step)) for step in _STEPS)


def _takes(session: Session, feed: Mapping[str, Any]) -> bool:
    try:
        session.run(feed)
    except OnnxsmithError:
        return False
    return True


def longer(example: Mapping[str, Any], axes: Sequence[Axis], by: int) -> dict[str, Any]:
    """The example with `axes` longer, filled up from their beginning."""
    found = dict(example)
    for name, axis in axes:
        array = found[name]
        index = np.arange(array.shape[axis] + by) % array.shape[axis]
        found[name] = np.take(array, index, axis=axis)
    return found
