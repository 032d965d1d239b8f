"""Finds where the called and the traced code path of a module diverge on one input: the innermost module with equal
inputs and different results, and the last line that both paths run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.exporter.factory import is_models
from onnxsmith.exporter.module.run_observation import hooked
from onnxsmith.runtimes.base import Feeds
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram

_NOTICED = 1e-3
"""Two sums over a tensor differ if their relative difference is above this. A choice: far above the rounding of float32
(6e-8)."""


@dataclass(frozen=True)
class Parting:
    """The place at which two code paths diverge. `module` is the module's path and class, `line` (`file:line`) the last
    line that both run, or the module's forward. `is_torchs` says whether the module's class belongs to torch."""

    module: str
    line: str
    is_torchs: bool


@dataclass(frozen=True)
class _Event:
    """The start of a submodule's call with the arguments, or its end with the results. `owner` is the call that
    computed these tensors: the caller at the start, the submodule's own call at the end."""

    kind: str
    module: str
    number: int
    owner: tuple[str, int]
    sums: tuple[Any, ...]


def find(called: TorchProgram, traced: TorchProgram, feeds: Feeds) -> Parting:
    """Finds the first difference. Runs both programs on the input twice: for the module, then for the line."""
    parts = dict(called.module.named_modules())
    name, number = _first_difference(list(_events(called, feeds)), list(_events(traced, feeds)))
    part = parts[name]
    code = getattr(type(part).forward, "__code__", None)
    line = _last_common(_lines(called, feeds, part, number), _lines(traced, feeds, part, number))
    if not line and isinstance(code, CodeType):
        line = f"{code.co_filename}:{code.co_firstlineno}"
    kind = type(part).__qualname__
    return Parting(f"{name} ({kind})" if name else kind, line, type(part).__module__.startswith("torch."))


def _first_difference(called: list[_Event], traced: list[_Event]) -> tuple[str, int]:
    """Returns the module and the number of its call at the first difference, in the order of the events."""
    others = {(event.kind, event.module, event.number): event for event in traced}
    for event in called:
        other = others.get((event.kind, event.module, event.number))
        if other is not None and not _alike(event.sums, other.sums):
            return event.owner
    return "", 0


def _alike(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    if len(a) != len(b):
        return False
    for (shape, *left), (other, *right) in zip(a, b, strict=True):
        scale = max(abs(left[0]), abs(right[0]), 1e-30)  # 1e-30 only avoids 0 for two tensors of zeros
        if shape != other or any(abs(x - y) > _NOTICED * scale for x, y in zip(left, right, strict=True)):
            return False
    return True


def _sums(tree: Any) -> tuple[Any, ...]:
    """Returns shape, sum of magnitudes, and a weighted sum of every dense float tensor in the tree."""
    found = []
    for leaf in pytree.tree_leaves(tree):
        if isinstance(leaf, torch.Tensor) and not leaf.is_nested and leaf.dtype.is_floating_point:
            flat = leaf.detach().double().flatten()
            flat = torch.where(flat.isfinite(), flat, 1e6)  # NaN would equal nothing: an arbitrary large number
            # Weights that differ by position, so that a permutation of the elements changes the sum.
            weights = torch.cos(torch.arange(flat.numel(), dtype=torch.float64))
            found.append((tuple(leaf.shape), float(flat.abs().sum()), float((flat * weights).sum())))
    return tuple(found)


def _events(program: TorchProgram, feeds: Feeds) -> Iterator[_Event]:
    names = {part: name for name, part in program.module.named_modules()}
    seen: list[_Event] = []
    counts: dict[str, int] = {}
    stack: list[tuple[str, int]] = [("", 0)]

    def before(part: torch.nn.Module, args: Any, kwargs: Any) -> None:
        name = names[part]
        number = counts[name] = counts.get(name, -1) + 1
        seen.append(_Event("begin", name, number, stack[-1], _sums((args, kwargs))))
        stack.append((name, number))

    def after(part: torch.nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        owner = stack.pop()
        seen.append(_Event("end", *owner, owner, _sums(result)))

    with hooked(program.module, before, after):
        _run(program, feeds)
    yield from seen


def _run(program: TorchProgram, feeds: Feeds) -> None:
    memory = Memory(program.module)
    try:
        args, kwargs = program.arguments(feeds)
        with torch.no_grad(), program.around():
            program.module(*args, **kwargs)
    finally:
        memory.restore()


def _lines(program: TorchProgram, feeds: Feeds, part: torch.nn.Module, number: int) -> list[tuple[str, int]]:
    """Returns the lines that the module's call `number` runs, in its forward and in model code that it calls."""
    own = getattr(type(part).forward, "__code__", None)
    found: list[tuple[str, int]] = []
    calls = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            found.append((frame.f_code.co_filename, frame.f_lineno))
        return local

    def watch(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal calls
        if event != "call":
            return None
        if frame.f_code is own and frame.f_locals.get("self") is part:
            calls += 1
            return local if calls == number + 1 else None
        return local if calls == number + 1 and is_models(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        _run(program, feeds)
    finally:
        sys.settrace(before)
    return found


def _last_common(a: list[tuple[str, int]], b: list[tuple[str, int]]) -> str:
    """Returns the last line before the two sequences diverge; empty if they are equal."""
    for index, (left, right) in enumerate(zip(a, b, strict=False)):
        if left != right:
            file, line = a[max(index - 1, 0)]
            return f"{file}:{line}"
    return ""
