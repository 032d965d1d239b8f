"""`multiply`, which is `mul`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class Multiply(Alias):
    """Another name of `mul`."""

    targets = ("aten::multiply.Tensor",)
    first = torch.mul
