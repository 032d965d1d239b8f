"""`_is_any_true`, which a check of a tensor asks."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class IsAnyTrue(Translation):
    """`_is_any_true`."""

    targets = ("aten::_is_any_true",)

    def decompose(self, x: torch.Tensor) -> torch.Tensor:
        return x.any()

    def samples(self) -> Iterator[Sample]:
        for values in ([True, True], [True, False], []):
            yield Sample((torch.tensor(values, dtype=torch.bool),), dynamic={0: {0: "n"}} if values else {})
        yield Sample((torch.tensor(True),))
