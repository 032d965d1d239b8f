"""Defines `--task tensors`: passes inputs and outputs on as they are, without processing."""

from __future__ import annotations

from onnxsmith.deployment.bundles.tasks.base import Task


class Tensors(Task):
    """Has no processing, so it fits every model."""
