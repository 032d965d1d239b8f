"""Makes `len(tensor)` return a symbolic size: Python requires a plain int from `__len__`, which would fix the axis."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch

from onnxsmith.base.seams.base import replaced
from onnxsmith.exporter.rewrites.base import Rewrite


class Lengths(Rewrite):
    """In the files that define a model's classes, `len(tensor)` returns `tensor.shape[0]`; for any other object `len`
    is unchanged. A file that defines its own `len` keeps it."""

    title = "len(tensor) is tensor.shape[0]"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        for home in _homes(module):
            if "len" not in vars(home):
                stack.enter_context(replaced(home, "len", _length, create=True))
        return False


def _homes(module: torch.nn.Module) -> set[ModuleType]:
    """The Python modules that define the module's classes and their base classes, without torch's own."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    names = {kind.__module__ for kind in kinds} - {"builtins"}
    return {sys.modules[name] for name in names if name in sys.modules and name.partition(".")[0] != "torch"}


def _length(found: Any, /) -> Any:
    return found.shape[0] if isinstance(found, torch.Tensor) and found.dim() else len(found)
