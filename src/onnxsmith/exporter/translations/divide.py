"""`divide`, which is `div`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class Divide(Alias):
    """Another name of `div`."""

    targets = ("aten::divide.Tensor",)
    first = torch.div
