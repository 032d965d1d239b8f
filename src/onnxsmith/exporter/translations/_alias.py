"""Second names of operators of two tensors; PyTorch's exporter promotes their dtypes under the first name only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Alias(Translation):
    """Calls the operator by its first name."""

    first: ClassVar[Callable[..., torch.Tensor]]

    def decompose(self, x: Any, other: Any, **more: Any) -> Any:
        return type(self).first(x, other, **more)

    def samples(self) -> Iterator[Sample]:
        x, counts = torch.randn(3, 4), torch.arange(1, 5)
        yield Sample((x, counts))
        yield Sample((counts, x))
        yield Sample((x, x + 1))
        yield Sample((x.double(), torch.tensor(3)))
        yield Sample((x, counts), dynamic={0: {0: "n"}})
