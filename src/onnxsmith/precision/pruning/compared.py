"""Compares the model that channels are followed through with the given one."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.comparison.sessions import verify_models
from onnxsmith.precision.pruning.working import Working, working
from onnxsmith.precision.weights import own_weights
from onnxsmith.settings import Verify


def compared(loaded: ir.Model, sizes: Mapping[str, int] | None, seed: int) -> Working:
    """The model that channels are followed through; where it is not proven to be the given one, without rewrites."""
    found = working(loaded)
    if not found.is_rewritten or verify_models(own_weights(loaded), found.model, Verify(sizes=sizes, seed=seed)).equal:
        return found
    return working(loaded, rewritten=False)
