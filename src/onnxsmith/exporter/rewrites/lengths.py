"""`len(tensor)` is the size of its first axis: Python makes a number of what `__len__` gives, and fixes the axis so."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.seams.base import replaced


class Lengths(Rewrite):
    """In the files that the classes of a model come from, `len` gives a tensor's first size as `shape` has it, and of
    everything else what it always gives. A file with a `len` of its own keeps it."""

    title = "len(tensor) is tensor.shape[0]"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        for home in _homes(module):
            if "len" not in vars(home):
                stack.enter_context(replaced(home, "len", _length, create=True))
        return False


def _homes(module: torch.nn.Module) -> set[ModuleType]:
    """The Python modules of its classes and of what they are derived from, without torch's own."""
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    names = {kind.__module__ for kind in kinds} - {"builtins"}
    return {sys.modules[name] for name in names if name in sys.modules and name.partition(".")[0] != "torch"}


def _length(found: Any, /) -> Any:
    return found.shape[0] if isinstance(found, torch.Tensor) and found.dim() else len(found)
