"""Defines the state that the steps of a simplification share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.optimizer.journal import Journal
from onnxsmith.optimizer.kernels import Kernels


@dataclass
class State:
    """The model that is being changed, its inferred shapes, and the journal of rewrites.

    `stale` are nodes whose inputs have new facts since the nodes were inferred; `refresh` infers them again. `room` are
    the bytes by which constants may still enlarge the model. `kernels` are the kernels of the runtime that will run the
    model; None if every operator may be made.
    """

    model: ir.Model
    inference: Inference
    journal: Journal
    stale: set[ir.Node] = field(default_factory=set)
    kernels: Kernels | None = None
    room: float = math.inf

    def refresh(self) -> bool:
        """Infers the stale nodes again; returns whether there are new facts."""
        stale, self.stale = self.stale, set()
        return self.inference.refresh(stale)
