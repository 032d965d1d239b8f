"""Finds the axes of the inputs that can be dynamic, by calling the module with other sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.factory import TorchModel
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Asked, Dynamic, is_auto, is_text, parse, unreadable
from onnxsmith.exporter.inputs.module_program import Axes, Built
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Session
from onnxsmith.runtimes.torch_eager import TorchEager

Axis = tuple[str, int]
STEPS = (1, 2, 4, 8, 16, 32)
"""Lists the lengths by which an axis is extended, until the module accepts one. A choice: modules with windows and
strides accept multiples only, mostly powers of 2 up to 32."""


@dataclass(frozen=True)
class Probed:
    """The axes that the module accepts at other sizes, in groups that must have the same size. `batch` is the group
    along which the module computes each entry independently; empty if there is none."""

    groups: tuple[tuple[Axis, ...], ...]
    batch: tuple[Axis, ...] = ()

    @property
    def axes(self) -> Axes:
        """The axes in the form of `--dynamic`. A group is named `batch`, or after its first axis (`x.1`)."""
        found: dict[str, dict[int, str]] = {}
        for group, symbol in zip(self.groups, self.symbols, strict=True):
            for name, axis in group:
                found.setdefault(name, {})[axis] = symbol
        return found

    @property
    def symbols(self) -> list[str]:
        """The names of the groups."""
        return ["batch" if group == self.batch else f"{group[0][0]}.{group[0][1]}" for group in self.groups]

    def without(self, axes: Sequence[Axis]) -> Probed:
        """Returns the groups without those that hold one of `axes`."""
        return self._only(group for group in self.groups if not set(group) & set(axes))

    def fewer(self) -> Probed:
        """Returns fewer groups, after a failure that names no axis: the batch only, or else the axes 0, or else
        none."""
        batch = [group for group in self.groups if group == self.batch]
        first = batch or [group for group in self.groups if all(axis == 0 for _, axis in group)]
        return self._only(first if len(first) < len(self.groups) else ())

    def _only(self, groups: Iterable[tuple[Axis, ...]]) -> Probed:
        return Probed(tuple(groups), self.batch)


def asked(dynamic: Dynamic | Sequence[str], model: TorchModel, built: Built) -> Asked:
    """Returns the requested dynamic axes by input. For `auto`, probes the module, whose axes are all fixed in `built`.

    Raises:
        OnnxsmithError: `export/dynamic-syntax`; `export/unknown-input` for an unknown key in a nested mapping.
    """
    if is_auto(dynamic):
        return Asked({name: dict(axes) for name, axes in probe(built).axes.items()})
    if is_text(dynamic):
        found = parse(dynamic)
        found.axes = _by_input(found.axes, built)
    else:
        from onnxsmith.exporter.inputs import nested_dynamic_axes

        found = parse(nested_dynamic_axes.by_input(dynamic, model, built.arguments))
    outputs = {port.name for port in built.program.signature.outputs} - built.example.keys()
    found.outputs = {name: axes for name, axes in found.axes.items() if name in outputs}
    known = {*built.example, *built.arguments.values()}
    found.axes = {n: axes for n, axes in found.axes.items() if n not in outputs and (axes or n not in known)}
    for name, axis, size in found.sizes:
        shape = built.example[name].shape if name in built.example else ()
        if name in built.example and not (-len(shape) <= axis < len(shape) and shape[axis] == size):
            raise unreadable(f"{name}: {axis}={size}", f"the example of {name!r} has the shape {list(shape)}")
    return found


def _by_input(axes: Mapping[str, dict[int, str]], built: Built) -> dict[str, dict[int, str]]:
    """Returns the axes by the names of the inputs. A text may also use the name of forward's argument, as a mapping
    does, if the input has another name and is the only one of this argument."""
    found: dict[str, dict[int, str]] = {}
    for name, own in axes.items():
        called = [graph for graph, argument in built.arguments.items() if argument == name]
        use = called[0] if name not in built.example and len(called) == 1 else name
        found.setdefault(use, {}).update(own)
    return found


def probe(built: Built) -> Probed:
    """Calls the module with each axis longer. An axis that fails alone is tried together with others of its size."""
    example = built.example
    signature = built.program.signature
    ports = tuple(
        replace(port, shape=tuple(f"{port.name}.{axis}" for axis, _ in enumerate(port.shape or ())))
        for port in signature.inputs
    )
    program = replace(built.program, signature=Signature(ports, signature.outputs))
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
        batches = [group for group in groups if _is_batch(session, example, group)]
    first = [group for group in batches if all(axis == 0 for _, axis in group)]
    return Probed(tuple(groups), next(iter([*first, *batches]), ()))


def _is_batch(session: Session, example: Mapping[str, Any], group: Sequence[Axis]) -> bool:
    """Whether reversing the entries along `group` reverses every output: true for a batch, false for time steps."""
    feed = longer(example, group, 1)
    turned = {**feed, **{name: np.flip(feed[name], axis).copy() for name, axis in group}}
    try:
        plain, other = session.run(feed), session.run(turned)
    except OnnxsmithError:
        return False
    count = feed[group[0][0]].shape[group[0][1]]
    return all(isinstance(array, np.ndarray) and _follows(array, other[name], count) for name, array in plain.items())


def _follows(plain: np.ndarray[Any, Any], turned: Any, count: int) -> bool:
    return any(size == count and _alike(np.flip(plain, axis), turned) for axis, size in enumerate(plain.shape))


def _alike(a: Any, b: Any) -> bool:
    """Whether the arrays are equal within loose float32 rounding; only the name `batch` depends on it."""
    if a.shape != b.shape or not np.issubdtype(a.dtype, np.floating):
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True))


def _together(session: Session, example: Mapping[str, Any], axes: list[Axis]) -> Iterator[tuple[Axis, ...]]:
    """Yields groups of axes of one size: first axes with the same number in each input, then all that remain."""
    left = list(axes)
    for number in sorted({axis for _, axis in axes}):
        same = [axis for axis in left if axis[1] == number]
        if len(same) > 1 and _moves(session, example, same):
            yield tuple(same)
            left = [axis for axis in left if axis not in same]
    if len(left) > 1 and _moves(session, example, left):
        yield tuple(left)


def _moves(session: Session, example: Mapping[str, Any], axes: Sequence[Axis]) -> bool:
    return any(_takes(session, longer(example, axes, step)) for step in STEPS)


def _takes(session: Session, feed: Mapping[str, Any]) -> bool:
    try:
        session.run(feed)
    except OnnxsmithError:
        return False
    return True


def longer(example: Mapping[str, Any], axes: Sequence[Axis], by: int) -> dict[str, Any]:
    """Returns the example with each of `axes` longer by `by`; the new entries repeat the first ones."""
    found = dict(example)
    for name, axis in axes:
        array = found[name]
        index = np.arange(array.shape[axis] + by) % array.shape[axis]
        found[name] = np.take(array, index, axis=axis)
    return found
