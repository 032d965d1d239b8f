"""Finds the branches of a module on the sizes of its inputs, and sizes at which they go the other way.

A trace holds the side that the example's sizes take: with `if h % 8: x = pad(x)`, a height of 64 leaves no pad. Often
one side is right for all sizes, because a pad of size 0 changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType
from typing import Any

import sympy

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.torch.size_questions import hearing
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.tracing.frozen_axes import Watch
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram

_OF_REMAINDERS = {"Mod", "PythonMod", "FloorDiv", "CeilDiv", "CleanDiv", "CeilToInt", "FloorToInt"}
"""Names functions of torch's symbolic sizes that are constant over a block of sizes, or repeat from block to block."""
Axis = tuple[str, int]
"""Names an input and one of its axes."""


@dataclass(frozen=True)
class SizeBranch:
    """A condition on sizes at `line` (`file:line`). `condition` is the expression that was true, over the symbols of
    `axes`."""

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
        """Returns the positive integers in the condition."""
        return frozenset(abs(int(one)) for one in self.condition.atoms(sympy.Integer)) - {0}


@dataclass
class Questions:
    """Collects the branches of a trace. `watch` maps symbols to axes."""

    watch: Watch
    found: dict[tuple[str, Any], SizeBranch] = field(default_factory=dict)

    def take(self, condition: Any, frame: FrameType) -> None:
        """Adds a condition that `frame` asked, unless torch's own code asked it."""
        file = frame.f_code.co_filename
        if file.startswith("<") or not is_models(file):  # generated code, which is in no file
            return
        axes = {symbol: self.watch.axis(symbol) for symbol in map(str, condition.free_symbols)}
        if not axes or not all(axes.values()):
            return
        line = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        known = {symbol: axis for symbol, axis in axes.items() if axis is not None}
        self.found.setdefault((line, condition), SizeBranch(line, condition, known))


@contextmanager
def branches(watch: Watch) -> Iterator[Questions]:
    """Collects the branches on sizes of a module that is traced in the block."""
    questions = Questions(watch)
    with hearing(questions.take):
        yield questions


def within(sizes: Mapping[str, int], limits: Mapping[str, tuple[int, int | None]]) -> bool:
    """Whether every size is within the limits of its dimension, if it has limits; None is no upper limit."""
    known = [(sizes[dim], low, high) for dim, (low, high) in limits.items() if dim in sizes]
    return all(low <= size and (high is None or size <= high) for size, low, high in known)


_STEPS = (1, 2, 3, 5)
"""Lists the steps from a size to the next candidates. A choice: their remainders differ from those of powers of two."""
_LARGEST = 4096
"""Limits the sizes at which the module is run. A choice."""


def other_sizes(
    branches: Sequence[SizeBranch], now: Mapping[str, int], axes: Mapping[Axis, str]
) -> list[dict[str, int]]:
    """Returns sizes by dimension at which branches go the other way than at `now`. First come sizes that turn most
    branches on a remainder, then sizes that turn few other branches: a limit on the batch has little to do with a pad.
    Near sizes come before far ones. `axes` names the dimension of each axis."""
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


def accepted(
    program: TorchProgram, example: Mapping[str, Any], proposed: Iterable[dict[str, int]], most: int
) -> Iterator[tuple[dict[str, int], Mapping[str, Any]]]:
    """Yields those of the proposed sizes that the module accepts, each with an example of these sizes. Runs the module
    at no more than `most` sizes."""
    from onnxsmith.exporter.inputs.resized_examples import resized

    asked = (sizes for sizes in proposed if within(sizes, program.limits))
    with TorchEager().prepare(program) as session:
        for sizes in islice(asked, most):
            try:
                other = resized(program, example, sizes)
                session.run(other)
            except OnnxsmithError:
                continue
            yield sizes, other


def moved(sizes: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Lists the sizes that are not those of `now`."""
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items() if now[dim] != size)


def turning(
    branches: Sequence[SizeBranch], now: Mapping[str, int], axes: Mapping[Axis, str]
) -> tuple[tuple[dict[str, int], ...], ...]:
    """Returns for each branch a few sizes at which it goes the other way, the nearest first. Branches with the same
    sizes count once. Only the dimensions of `now` change; dimensions that are sums follow, here and in `below`."""
    free = {axis: dim for axis, dim in axes.items() if dim in now}
    found = (tuple(other_sizes([branch], now, free)[:_FEW]) for branch in branches)
    unique = {str(group): group for group in found if group}
    return tuple(unique.values())[:_MOST_TURNED]


def below(
    bounds: Mapping[str, tuple[int, int | None]], now: Mapping[str, int]
) -> tuple[tuple[dict[str, int], ...], ...]:
    """Returns sizes below the smallest that a trace assumes, for all dimensions at once. torch assumes that every size
    is 2 or more, also sizes inside the module, so an axis that is halved four times is traced for 17 and more. The
    smallest sizes come first, then those just below the limit. A single dimension traced for 2 and more is tried at 1
    elsewhere."""
    least = {dim: low for dim, (low, _) in bounds.items() if low >= _TRACED and dim in now}
    most = max(least.values(), default=0)
    if not least or (most <= _TRACED and len(least) == 1):
        return ()
    under = {dim: low - 1 for dim, low in least.items()}
    small = [dict.fromkeys(least, size) for size in _SMALL if size < most]
    return (tuple(small), (under,)) if most > _TRACED else ((under,),)


_TRACED = 2
"""A trace assumes sizes of this number or more."""
_SMALL = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Lists sizes, of which the first that the module accepts is tried. A choice."""
_FEW = 12
"""Limits the sizes for one branch. A choice: the nearest may be too small for a kernel."""
_MOST_TURNED = 12
"""Limits the branches whose other side is searched for. A choice: each is one more run of the module."""


def _candidates(
    branches: Iterable[SizeBranch], now: Mapping[str, int], dims: Sequence[str]
) -> Iterator[dict[str, int]]:
    """Yields sizes of all these dimensions, or of one of them: slightly larger sizes, and neighbours of the conditions'
    numbers."""
    numbers = sorted({number for branch in branches for number in branch.numbers() if number < _LARGEST})
    beside = [size for number in numbers for size in (number - 1, number, number + 1) if size > 1]
    for some in [list(dims), *([dim] for dim in dims if len(dims) > 1)]:
        for step in _STEPS:
            yield {**now, **{dim: now[dim] + step for dim in some}}
        for size in beside:
            yield {**now, **dict.fromkeys(some, size)}


def one_sided(branches: Sequence[SizeBranch]) -> OnnxsmithError:
    """Returns the error for branches whose other side no tried size takes."""
    axes = ", ".join(f"{name}:{axis}" for branch in branches[:1] for name, axis in branch.axes.values())
    other = f", and leave {axes} out of --dynamic" if axes else ""
    return problem(
        "forward/size-compared",
        "a branch depends on a dynamic size",
        where=next((branch.line for branch in branches), ""),
        why="the graph has the example's side; no size was found at which the module runs on the other side",
        fix="write both sides as one computation; or, if every input leads to the same side, give an example of "
        f"that side{other}",
    )


def more_sides(branches: Sequence[SizeBranch], sizes: Mapping[str, int]) -> OnnxsmithError:
    """Returns the error for branches that take a further side at these sizes."""
    at = ", ".join(f"{dim} = {size}" for dim, size in sizes.items())
    return problem(
        "forward/size-compared",
        "branches on dynamic sizes have more sides than were traced",
        where=next((branch.line for branch in branches), ""),
        why=f"at {at} the module runs a side that was not traced; a loop that depends on sizes has one side for "
        "each number of iterations",
        fix="write the sides as one computation, or write the loop with torch.while_loop; or limit the sizes: "
        "dynamic={'x': {0: torch.export.Dim('n', max=64)}}",
    )


def dynamic_axes(program: TorchProgram) -> dict[Axis, str]:
    """Returns the dynamic axes of a program's inputs, with the names of their dimensions."""
    ports = program.signature.inputs
    return {(p.name, axis): dim for p in ports for axis, dim in enumerate(p.shape or ()) if isinstance(dim, str)}
