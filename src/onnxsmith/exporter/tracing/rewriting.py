"""Applies the rewrites that a module needs while it is captured: those of this package and the user's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

import torch

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.exporter.rewrites.base import Rewrite, instead

F = TypeVar("F", bound=Callable[..., Any])

_users: dict[type, Callable[..., Any]] = {}


def rewrite(kind: type) -> Callable[[F], F]:
    """Replaces the forward of every module of a class by the decorated function while the module is captured.

        @onnxsmith.rewrite(SomeModule)
        def traceable(self, x):
            return torch.where(x > 0, x, self.slope * x)

    The function takes the module first, then the arguments of `forward`. It is used for modules of exactly this class,
    in every later export of this process. A second function for a class replaces the first. The module itself is not
    changed, and the graph is compared with the unchanged module.

    Raises:
        OnnxsmithError: `export/rewrite` if `kind` is not a class of torch modules.
    """
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        raise problem(
            "export/rewrite",
            f"{kind!r} is not a class of torch modules",
            fix=f"give its class: @onnxsmith.rewrite({type(kind).__qualname__})"
            if isinstance(kind, torch.nn.Module)
            else "write @onnxsmith.rewrite(SomeModule), with a class that is derived from torch.nn.Module",
        )

    def register(function: F) -> F:
        _users[kind] = function
        return function

    return register


@contextmanager
def rewriting(module: torch.nn.Module) -> Iterator[tuple[str, ...]]:
    """Applies the rewrites that the module needs, in the block. Yields a note for each of them."""
    with ExitStack() as stack:
        found = rooms.members("onnxsmith.exporter.rewrites", Rewrite)
        notes = [one.title for one in found.values() if one.apply(module, stack)]
        used: dict[str, None] = {}
        for part in module.modules():
            own = _users.get(type(part))
            if own is not None:
                instead(part, own, stack)
                used[f"{type(part).__qualname__} is replaced by {own.__qualname__} in the trace"] = None
        yield (*notes, *used)
