"""What the reference evaluator gives."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from onnxsmith.runtimes.base import Feeds, Outputs
from onnxsmith.runtimes.reference import Reference


def evaluated(model: Path | ir.Model, feeds: Feeds) -> Outputs:
    """Every output of the model on these inputs."""
    with Reference().prepare(model) as session:
        return session.run(feeds)


def is_taken(model: Path | ir.Model) -> bool:
    """Whether the evaluator prepares it; raises where not."""
    with Reference().prepare(model):
        return True
