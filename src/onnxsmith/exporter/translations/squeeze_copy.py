"""`squeeze_copy`: a squeezed tensor that is no view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class SqueezeCopy(Translation):
    """In ONNX nothing is a view."""

    targets = ("aten::squeeze_copy",)

    def decompose(self, x: Any, dim: Any = None) -> Any:
        return x.squeeze() if dim is None else x.squeeze(dim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(1, 3, 1, 2)
        yield Sample((x,), {}, "aten::squeeze_copy.default")
        yield Sample((x, 2), {}, "aten::squeeze_copy.dim")
        yield Sample((x, 1), {}, "aten::squeeze_copy.dim")
        yield Sample((x, [0, 2]), {}, "aten::squeeze_copy.dims")
        yield Sample((torch.randn(2, 1, 3), 1), {}, "aten::squeeze_copy.dim", {0: {0: "n"}})
