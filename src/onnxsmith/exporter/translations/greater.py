"""`greater`, which is `gt`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class Greater(Alias):
    """Another name of `gt`."""

    targets = ("aten::greater.Tensor",)
    first = torch.gt
