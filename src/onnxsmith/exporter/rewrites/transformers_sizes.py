"""Makes transformers' `torch_int` and `torch_float` keep a symbolic size symbolic."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class TransformersSizes(Rewrite):
    """The two functions support `torch.jit.trace` only, in which sizes are tensors. Their code is replaced, so that
    every file that imported them uses it."""

    title = "transformers' torch_int and torch_float keep sizes symbolic"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("transformers.utils.generic")
        for name, own in (("torch_int", _int), ("torch_float", _float)):
            function = getattr(library, name, None)
            if isinstance(function, FunctionType):
                stack.callback(setattr, function, "__code__", function.__code__)
                function.__code__ = own.__code__
        return False


def _int(x: Any) -> Any:
    """Must not use this module's globals: its code replaces another function's code."""
    import torch

    return torch.sym_int(x) if isinstance(x, torch.SymInt | torch.SymFloat) else int(x)  # type: ignore[no-untyped-call]


def _float(x: Any) -> Any:
    import torch

    return torch.sym_float(x) if isinstance(x, torch.SymInt | torch.SymFloat) else float(x)  # type: ignore[no-untyped-call]
