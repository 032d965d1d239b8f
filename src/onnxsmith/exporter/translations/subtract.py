"""`subtract`, which is `sub`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class Subtract(Alias):
    """Another name of `sub`."""

    targets = ("aten::subtract.Tensor",)
    first = torch.sub
