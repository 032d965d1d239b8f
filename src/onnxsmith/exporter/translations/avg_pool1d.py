"""`avg_pool1d`."""

from __future__ import annotations

from onnxsmith.exporter.translations._average import AveragePool


class AvgPool1d(AveragePool):
    """Averages over windows along one axis."""

    targets = ("aten::avg_pool1d",)
    axes = 1
