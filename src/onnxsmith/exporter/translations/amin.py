"""`amin` of a number, and along no axis in particular."""

from __future__ import annotations

import torch

from onnxsmith.exporter.translations._extreme import Extreme


class Amin(Extreme):
    """The least element."""

    targets = ("aten::amin",)
    reduce = torch.amin
