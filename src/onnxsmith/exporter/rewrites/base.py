"""What a rewrite is: a change to what a module computes with, for as long as torch.export traces it.

It replaces what cannot be traced, or would be traced for one size only, by something that computes the same. The module
that the result is held to is never changed, so a rewrite that computes something else is found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import MethodType
from typing import Any, ClassVar

import torch


class Rewrite(ABC):
    """One change; stateless, found by walking this folder."""

    title: ClassVar[str]
    """What it does and why, for the report."""

    @abstractmethod
    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        """Makes the change where the module needs it, with its undoing put on the stack. Whether there was need."""


def instead_where(
    fits: Callable[[torch.nn.Module], Any], module: torch.nn.Module, forward: Any, stack: ExitStack
) -> bool:
    """Gives another forward to every module that fits, `module` and those in it. Whether there was one."""
    found = [part for part in module.modules() if fits(part)]
    for part in found:
        instead(part, forward, stack)
    return bool(found)


def instead(module: torch.nn.Module, forward: Any, stack: ExitStack) -> None:
    """Gives one module another forward, `forward(module, …)`, until the stack is closed."""
    stack.enter_context(_forward(module, MethodType(forward, module)))


@contextmanager
def _forward(module: torch.nn.Module, forward: Any) -> Iterator[None]:
    had, before = "forward" in vars(module), vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if had:
            module.forward = before  # type: ignore[assignment]
        else:
            del module.forward
