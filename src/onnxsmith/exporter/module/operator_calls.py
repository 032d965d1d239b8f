"""Records the calls of some operators while a module runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.tensors import TorchDispatchMode
from onnxsmith.exporter.translating.overloads import overloads
from onnxsmith.runtimes.torch_eager import Memory, TorchProgram

_MOST = 8
"""Limits the calls of each operator that are kept. A choice: their tensors stay in memory."""


@dataclass(frozen=True)
class OperatorCall:
    """A call of an operator, with copies of its tensors from before the call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any


def calls(program: TorchProgram, example: Mapping[str, Any], targets: Collection[Any]) -> dict[Any, list[OperatorCall]]:
    """Runs the module once on the example, and returns the first calls of each target that it calls.

    A target is an operator's name (`lib::op`, `lib::op.overload`) or a subclass of `torch.autograd.Function`. Restores
    the module's state. An operator that PyTorch itself splits into others before it computes is not seen.
    """
    found: dict[Any, list[OperatorCall]] = {}

    def call(target: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if len(found.get(target, ())) >= _MOST:
            return function(*args, **kwargs)
        positional, named = _copied((args, dict(kwargs)))
        after = function(*args, **kwargs)
        found.setdefault(target, []).append(OperatorCall(positional, named, _copied(after)))
        return after

    ops = {op: target for target in targets if isinstance(target, str) for op in overloads(target)}
    memory = Memory(program.module)
    try:
        with ExitStack() as stack:
            for target in targets:
                if isinstance(target, type):
                    stack.enter_context(replaced(target, "apply", _applied(target, call)))
            stack.enter_context(torch.no_grad())
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.enter_context(_Watch(ops, call))
            args, kwargs = program.arguments(example)
            program.module(*args, **kwargs)
    except Exception:  # noqa: BLE001 — a module may refuse to be watched; the calls up to there count
        pass
    finally:
        memory.restore()
    return found


def _applied(target: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    apply = target.apply
    return lambda *args, **kwargs: call(target, apply, args, kwargs)


def _copied(value: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), value)


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Calls `call` in place of each call of an operator in `ops`."""

    def __init__(self, ops: Mapping[Any, Any], call: Callable[..., Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._ops, self._call = ops, call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._ops:
            return self._call(self._ops[func], func, args, kwargs or {})
        return func(*args, **(kwargs or {}))
