"""Traces `torch.triu_indices(n, n)` with symbolic sizes; torch takes only plain numbers there, which fixes the axis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite
from onnxsmith.exporter.translating.function_substitution import InPlaceOf


class TriangularIndices(Rewrite):
    """Replaces `torch.triu_indices` and `torch.tril_indices` of symbolic sizes by the places of the ones in a
    triangular matrix, which come in the same order: row by row."""

    title = "indices of a triangle are those of the ones in a triangular matrix"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        stack.enter_context(
            InPlaceOf({torch.triu_indices: _indices(torch.triu), torch.tril_indices: _indices(torch.tril)})
        )
        return False


def _indices(triangle: Callable[..., torch.Tensor]) -> Callable[..., Any]:
    def found(row: Any, col: Any, offset: Any = 0, *, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
        """int64 tensor of shape [2, number of elements], as torch's function gives it; NotImplemented for numbers."""
        if not any(isinstance(size, torch.SymInt) for size in (row, col, offset)):
            return NotImplemented
        ones = triangle(torch.ones(row, col, device=device), offset)
        return torch.nonzero(ones).t().to(dtype or torch.int64)

    return found
