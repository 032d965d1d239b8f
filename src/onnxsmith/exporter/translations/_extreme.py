"""The common base of `amax` and `amin`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Extreme(Translation):
    """Reduces all axes if none is given; a 0-d tensor is its own extreme. Leaves other calls to PyTorch's exporter."""

    reduce: ClassVar[Callable[..., torch.Tensor]]
    """torch's function, of a tensor and axes."""

    def decompose(self, x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone()
        return NotImplemented if len(dim) else type(self).reduce(x, list(range(x.dim())), keepdim)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x, [], True))
        yield Sample((x, [0, -1]))
        yield Sample((torch.tensor(2.5), [0], True))
        yield Sample((torch.tensor(3),))
