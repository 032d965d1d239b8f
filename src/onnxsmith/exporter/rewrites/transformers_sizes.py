"""transformers' `torch_int` and `torch_float` leave a symbolic size symbolic; as they are, they take its number."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class TransformersSizes(Rewrite):
    """They know `torch.jit.trace` only, in which sizes are tensors. They get other code, so that every file that has
    imported them is served."""

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
    """With no name of this file in it: it runs in the place of another function."""
    import torch

    return torch.sym_int(x) if isinstance(x, torch.SymInt | torch.SymFloat) else int(x)  # type: ignore[no-untyped-call]


def _float(x: Any) -> Any:
    import torch

    return torch.sym_float(x) if isinstance(x, torch.SymInt | torch.SymFloat) else float(x)  # type: ignore[no-untyped-call]
