"""`greater_equal`, which is `ge`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class GreaterEqual(Alias):
    """Another name of `ge`."""

    targets = ("aten::greater_equal.Tensor",)
    first = torch.ge
