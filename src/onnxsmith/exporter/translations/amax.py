"""`amax` of a number, and along no axis in particular."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._extreme import Extreme


class Amax(Extreme):
    """The greatest element."""

    targets = ("aten::amax",)
    reduce = torch.amax
