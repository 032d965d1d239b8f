"""`less`, which is `lt`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class Less(Alias):
    """Another name of `lt`."""

    targets = ("aten::less.Tensor",)
    first = torch.lt
