"""Observes one run of a module: the calls of its submodules, writes to its inputs and its state, random draws."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from onnxsmith.base.seams.torch import trees as pytree
from onnxsmith.base.seams.torch.tensors import TorchDispatchMode, buffers_of, version_of
from onnxsmith.exporter.factory import TorchModel, model_frame, user_line
from onnxsmith.exporter.inputs.forward_parameters import signature
from onnxsmith.exporter.lint._function_reading import Call
from onnxsmith.runtimes.torch_eager import Memory


@dataclass
class Seen:
    """The observations of one run. `calls` are the calls of the module and its submodules, by `id`. `drawn` are the
    operators that drew random numbers, with the user's line. `written` are the arguments, `state` the attributes and
    buffers that the run changed. `error` is the error that stopped the run, `where` its line."""

    calls: dict[int, Call] = field(default_factory=dict)
    drawn: list[tuple[str, str]] = field(default_factory=list)
    written: tuple[str, ...] = ()
    state: tuple[str, ...] = ()
    error: Exception | None = None
    where: str = ""


class _RandomDraws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the operators that draw random numbers."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._seen = seen

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags and not _draws_nothing(func, args, kwargs or {}):
            self._seen.drawn.append((str(func).removesuffix(".default"), model_frame(sys._getframe(1))))
        return func(*args, **(kwargs or {}))


def _draws_nothing(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether the call draws nothing: a dropout in evaluation mode, or an attention without dropout."""
    name = str(func)
    if "attention" in name:
        return not float(kwargs.get("dropout_p", 0.0) or 0.0)
    return "dropout" in name and args[-1] in (False, None)


def observe(model: TorchModel) -> Seen:
    """Runs the module once on its example inputs, and restores the module's state."""
    seen = Seen()
    flat, spec = pytree.tree_flatten((tuple(model.args), dict(model.kwargs)))
    fresh = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in flat]
    args, kwargs = pytree.tree_unflatten(fresh, spec)
    seen.calls[id(model.module)] = Call(args, kwargs)
    before = [version_of(leaf) if isinstance(leaf, torch.Tensor) else 0 for leaf in fresh]
    memory, state = Memory(model.module), _state(model.module)
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]), _watched(model.module, seen), _RandomDraws(seen):
            seen.calls[id(model.module)].result = model.module(*args, **kwargs)
        seen.state = tuple(name for name, mark in _state(model.module).items() if state.get(name) != mark)
    except Exception as error:  # noqa: BLE001 — any error of the module is an observation
        seen.error, seen.where = error, user_line(error)
    finally:
        memory.restore()
    after = [version_of(leaf) if isinstance(leaf, torch.Tensor) else 0 for leaf in fresh]
    changed = {id(leaf) for leaf, a, b in zip(fresh, before, after, strict=True) if a != b}
    named = {**dict(_bound(model, args, kwargs))}
    seen.written = tuple(
        name for name, value in named.items() if any(id(leaf) in changed for leaf in pytree.tree_leaves(value))
    )
    return seen


def _bound(model: TorchModel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:

    try:
        return dict(signature(model.module.forward).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {}


def _state(module: torch.nn.Module) -> dict[str, Any]:
    """Returns the module's state in a comparable form: identity and version of its tensors, and its plain values."""
    found: dict[str, Any] = {}
    for path, part in module.named_modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        prefix = f"{path}." if path else ""
        for name, value in {**vars(part), **buffers_of(part)}.items():
            if isinstance(value, torch.Tensor):
                found[prefix + name] = (id(value), version_of(value))
            elif isinstance(value, int | float | bool):
                found[prefix + name] = value
    return found


def _watched(module: torch.nn.Module, seen: Seen) -> AbstractContextManager[None]:
    """Records the arguments and the result of every call of a submodule."""

    def before(part: torch.nn.Module, args: Any, kwargs: Any) -> None:
        seen.calls[id(part)] = Call(args, kwargs)

    def after(part: torch.nn.Module, args: Any, kwargs: Any, result: Any) -> None:
        seen.calls[id(part)] = Call(args, kwargs, result)

    return hooked(module, before, after)


@contextmanager
def hooked(module: torch.nn.Module, before: Callable[..., None], after: Callable[..., None]) -> Iterator[None]:
    """Calls functions before and after each submodule runs, except for scripted ones, which take no hooks."""
    inner = [part for part in module.modules() if not isinstance(part, torch.jit.ScriptModule)]
    handles: list[Any] = [part.register_forward_pre_hook(before, with_kwargs=True) for part in inner]
    handles += [part.register_forward_hook(after, with_kwargs=True) for part in inner]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
