"""`avg_pool2d`."""

from __future__ import annotations

from onnxsmith.exporter.translations._average import AveragePool


class AvgPool2d(AveragePool):
    """Averages over windows along two axes."""

    targets = ("aten::avg_pool2d",)
    axes = 2
