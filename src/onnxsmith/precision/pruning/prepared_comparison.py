"""Compares the model that channels are followed through with the given one."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.settings import Verify
from onnxsmith.precision.pruning.pruning_preparation import Working, working
from onnxsmith.precision.weight_counts import own_weights
from onnxsmith.verification.sessions import verify_models


def compared(loaded: ir.Model, sizes: Mapping[str, int] | None, seed: int) -> Working:
    """The model that channels are followed through; where it is not proven to be the given one, without rewrites."""
    found = working(loaded)
    if not found.is_rewritten or verify_models(own_weights(loaded), found.model, Verify(sizes=sizes, seed=seed)).equal:
        return found
    return working(loaded, rewritten=False)
