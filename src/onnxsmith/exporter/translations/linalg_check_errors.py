"""What PyTorch raises when a factorisation failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgCheckErrors(Translation):
    """Nothing: a graph has no way to raise, and computes on with what the factorisation left."""

    targets = ("aten::_linalg_check_errors",)

    def decompose(self, info: Any, api_name: str, *, is_matrix: bool) -> Any:
        return None

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, matrix: torch.Tensor) -> Any:
            found, info = torch.linalg.inv_ex(matrix + 4 * torch.eye(2))
            op(info, "linalg.inv", is_matrix=True)
            return found

        yield Sample((torch.randn(2, 2).tanh(),), around=around)
