"""`cholesky`: the older name of `linalg.cholesky`, which torch 2.14 removed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.base.library_versions import Lifetime
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.linalg_cholesky_ex import definite


class Cholesky(Translation):
    """The factor of `linalg_cholesky_ex`."""

    targets = ("aten::cholesky",)
    lifetimes: ClassVar = {"aten::cholesky": Lifetime(removed="2.14")}

    def decompose(self, matrix: Any, upper: bool = False) -> Any:
        if matrix.is_complex():
            return NotImplemented
        factor, _ = torch.linalg.cholesky_ex(matrix, upper=upper)
        return factor

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 5, 5),), around=definite)
        yield Sample((torch.randn(3, 3, dtype=torch.float64),), {"upper": True}, around=definite)
