"""`less_equal`, which is `le`."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._alias import Alias


class LessEqual(Alias):
    """Another name of `le`."""

    targets = ("aten::less_equal.Tensor",)
    first = torch.le
