"""`avg_pool3d`."""

from __future__ import annotations

from onnxsmith.exporter.translations._average import AveragePool


class AvgPool3d(AveragePool):
    """Averages over windows along three axes."""

    targets = ("aten::avg_pool3d",)
    axes = 3
