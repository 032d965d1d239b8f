"""Finds the branches of a module on the sizes of its inputs, and sizes at which they go the other way.

A trace holds the side that the example's sizes take: `if h % 8: x = pad(x)` leaves no `pad` for a height of 64.
Often one side is right for all sizes, as a pad by nothing changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import sympy

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch.size_questions import hearing
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.tracing.frozen_axes import Watch
from onnxsmith.runtimes.torch_eager import TorchProgram

_OF_REMAINDERS = {"Mod", "PythonMod", "FloorDiv", "CeilDiv", "CleanDiv", "CeilToInt", "FloorToInt"}
"""Functions of torch's symbolic sizes that are constant over a block of sizes, or repeat from block to block."""
Axis = tuple[str, int]
"""An input and one of its axes."""


@dataclass(frozen=True)
class SizeBranch:
    """A condition on sizes that the module asked at `line` (`file:line`). `condition` is the expression that held, over
    the symbols of `axes`."""

    line: str
    condition: Any
    axes: Mapping[str, Axis]

    def holds(self, sizes: Mapping[Axis, int]) -> bool:
        """Whether the condition also holds for these sizes; True if that cannot be told."""
        known = {symbol: sizes[self.axes[str(symbol)]] for symbol in self.condition.free_symbols}
        return bool(self.condition.subs(known) != sympy.false)

    @property
    def is_of_remainder(self) -> bool:
        """Whether the condition depends on a remainder or a rounded quotient: `h % 8`, `2 * (h // 2) == h`."""
        return any(type(one).__name__ in _OF_REMAINDERS for one in sympy.preorder_traversal(self.condition))

    def numbers(self) -> frozenset[int]:
        """The positive integers in the condition."""
        return frozenset(abs(int(one)) for one in self.condition.atoms(sympy.Integer)) - {0}


@dataclass
class Questions:
    """Collects the branches of a trace. `watch` knows which symbol is which axis."""

    watch: Watch
    found: dict[tuple[str, Any], SizeBranch] = field(default_factory=dict)

    def take(self, condition: Any, frame: FrameType) -> None:
        """Takes a condition that `frame` asked; those that the code of torch asks are not branches of the module."""
        file = frame.f_code.co_filename
        if file.startswith("<") or not is_models(file):  # torch makes code that is in no file
            return
        axes = {symbol: self.watch.axis(symbol) for symbol in map(str, condition.free_symbols)}
        if not axes or not all(axes.values()):
            return
        line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        known = {symbol: axis for symbol, axis in axes.items() if axis is not None}
        self.found.setdefault((line, condition), SizeBranch(line, condition, known))


@contextmanager
def branches(watch: Watch) -> Iterator[Questions]:
    """Inside, the branches on sizes of a traced module are collected."""
    questions = Questions(watch)
    with hearing(questions.take):
        yield questions


def within(sizes: Mapping[str, int], limits: Mapping[str, tuple[int, int | None]]) -> bool:
    """Whether every size is in the limits of its dimension, as far as it has any; None is no upper limit."""
    known = [(sizes[dim], low, high) for dim, (low, high) in limits.items() if dim in sizes]
    return all(low <= size and (high is None or size <= high) for size, low, high in known)


_STEPS = (1, 2, 3, 5)
"""A choice: sizes a little larger, of other remainders than a power of two has."""
_LARGEST = 4096
"""A choice: a module is run at these sizes."""


def other_sizes(
    branches: Sequence[SizeBranch], now: Mapping[str, int], axes: Mapping[Axis, str]
) -> list[dict[str, int]]:
    """Sizes by dimension at which branches go the other way than at `now`. First those at which most branches on a
    remainder do, then those that turn few others: a batch beyond a limit has little to do with a pad. Near sizes come
    before far ones. `axes` names the dimension of each axis."""
    moved = {axes[axis] for branch in branches for axis in branch.axes.values() if axis in axes}
    tried: list[tuple[tuple[int, int, int], dict[str, int]]] = []
    for sizes in _candidates(branches, now, sorted(moved)):
        at = {axis: sizes[dim] for axis, dim in axes.items() if dim in sizes}
        known = [branch for branch in branches if all(axis in at for axis in branch.axes.values())]
        turned = [branch for branch in known if not branch.holds(at)]
        exact = sum(branch.is_of_remainder for branch in turned)
        others = len(turned) - exact
        far = sum(abs(size - now[dim]) for dim, size in sizes.items())
        rank = (-exact, others if exact else -others, far)
        if turned and (rank, sizes) not in tried:
            tried.append((rank, sizes))
    return [sizes for _, sizes in sorted(tried, key=lambda one: one[0])]


def turning(
    branches: Sequence[SizeBranch], now: Mapping[str, int], axes: Mapping[Axis, str]
) -> tuple[tuple[dict[str, int], ...], ...]:
    """For each branch a few sizes at which it goes the other way, the nearest first; branches with the same ones stand
    for each other. Only the dimensions of `now` move: those that are sums follow from them, here and in `below`."""
    free = {axis: dim for axis, dim in axes.items() if dim in now}
    found = (tuple(other_sizes([branch], now, free)[:_FEW]) for branch in branches)
    unique = {str(group): group for group in found if group}
    return tuple(unique.values())[:_MOST_TURNED]


def below(
    bounds: Mapping[str, tuple[int, int | None]], now: Mapping[str, int]
) -> tuple[tuple[dict[str, int], ...], ...]:
    """Sizes under the least ones for which a trace is, all dimensions at once: torch takes every size for 2 or more,
    those inside too, so an axis that is halved four times is traced for 17 and more. First the smallest, then those
    just under. One dimension that is traced for 2 and more has its turn at 1 elsewhere."""
    least = {dim: low for dim, (low, _) in bounds.items() if low >= _TRACED and dim in now}
    most = max(least.values(), default=0)
    if not least or (most <= _TRACED and len(least) == 1):
        return ()
    under = {dim: low - 1 for dim, low in least.items()}
    small = [dict.fromkeys(least, size) for size in _SMALL if size < most]
    return (tuple(small), (under,)) if most > _TRACED else ((under,),)


_TRACED = 2
"""The least size that a trace takes for possible."""
_SMALL = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Sizes of which the first that the module takes is tried. A choice."""
_FEW = 12
"""Sizes for one branch. A choice: the nearest may be refused, as they are too small for a kernel."""
_MOST_TURNED = 12
"""Branches of which the other side is looked for. A choice: each is one more run of the module."""


def _candidates(
    branches: Iterable[SizeBranch], now: Mapping[str, int], dims: Sequence[str]
) -> Iterator[dict[str, int]]:
    """Sizes of all these dimensions, or of one of them: a little larger, and beside the numbers of the conditions."""
    numbers = sorted({number for branch in branches for number in branch.numbers() if number < _LARGEST})
    beside = [size for number in numbers for size in (number - 1, number, number + 1) if size > 1]
    for some in [list(dims), *([dim] for dim in dims if len(dims) > 1)]:
        for step in _STEPS:
            yield {**now, **{dim: now[dim] + step for dim in some}}
        for size in beside:
            yield {**now, **dict.fromkeys(some, size)}


def one_sided(branches: Sequence[SizeBranch]) -> OnnxsmithError:
    """The error for branches of which no size that was tried takes the other side."""
    return problem(
        "forward/size-compared",
        "a branch depends on a dynamic size",
        where=next((branch.line for branch in branches), ""),
        why="the graph has the example's side, and the module runs at no size that was tried on the other side",
        fix="write both sides as one computation, or give an example that takes the side you need",
    )


def more_sides(branches: Sequence[SizeBranch], sizes: Mapping[str, int]) -> OnnxsmithError:
    """The error for branches that take another side yet at these sizes."""
    at = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
    return problem(
        "forward/size-compared",
        "branches on dynamic sizes have more sides than were traced",
        where=next((branch.line for branch in branches), ""),
        why=f"at {at} the module takes a side that no trace took; a loop on sizes has one for each number of turns",
        fix="write the sides as one computation, a loop on sizes with torch.while_loop; or limit the sizes: "
        "dynamic={'x': {0: torch.export.Dim('n', max=64)}}",
    )


def dynamic_axes(program: TorchProgram) -> dict[Axis, str]:
    """The dynamic axes of a program's inputs, with the names of their dimensions."""
    ports = program.signature.inputs
    return {(p.name, axis): dim for p in ports for axis, dim in enumerate(p.shape or ()) if isinstance(dim, str)}
