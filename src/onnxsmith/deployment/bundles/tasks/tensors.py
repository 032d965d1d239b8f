"""`--task tensors`: inputs and outputs as they are, without processing."""

from __future__ import annotations

from onnxsmith.deployment.bundles.tasks.base import Task


class Tensors(Task):
    """No processing; fits every model."""
