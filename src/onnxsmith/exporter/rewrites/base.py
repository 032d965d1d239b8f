"""The base class of rewrites: changes to a module while torch.export traces it.

A rewrite replaces code that cannot be traced, or only for one size, by code that computes the same. The graph is
compared with the unchanged module, so a wrong rewrite is noticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import MethodType
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.inputs import stateful


class Rewrite(ABC):
    """Makes one change. Stateless."""

    title: ClassVar[str]
    """Says in the report what is changed, and why."""

    @abstractmethod
    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        """Makes the change and puts its reversal on the stack. Returns whether the report should mention it."""


def instead_where(
    fits: Callable[[torch.nn.Module], Any], module: torch.nn.Module, forward: Any, stack: ExitStack
) -> bool:
    """Replaces the forward of `module` and its submodules for which `fits` is true. Returns whether there is such a
    module."""
    found = [part for part in module.modules() if fits(part)]
    for part in found:
        instead(part, forward, stack)
    return bool(found)


def instead(module: torch.nn.Module, forward: Any, stack: ExitStack) -> None:
    """Replaces one module's forward by `forward(module, …)` until the stack is closed. A forward that passes the
    module's state stays, and calls the replacement."""
    owner = stateful.of(module) or module
    stack.enter_context(_forward(owner, MethodType(forward, module)))


@contextmanager
def _forward(module: Any, forward: Any) -> Iterator[None]:
    had, before = "forward" in vars(module), vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if had:
            module.forward = before
        else:
            del module.forward
