"""What the steps of a simplification share."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.model.shapes.inference import Inference
from onnxsmith.simplifier.journal import Journal


@dataclass
class State:
    """The model that is being changed, what is known of it, and what was done to it.

    `stale` are the nodes of whose inputs more is known than when they were inferred; `refresh` catches up.
    """

    model: ir.Model
    inference: Inference
    journal: Journal
    stale: set[ir.Node] = field(default_factory=set)

    def refresh(self) -> bool:
        """Infers again what changed; says whether more is known now."""
        stale, self.stale = self.stale, set()
        return self.inference.refresh(stale)
