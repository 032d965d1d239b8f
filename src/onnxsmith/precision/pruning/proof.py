"""Proves that a pruned model computes the same as the given model in which nothing reads the removed channels."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.graph.structure.dim_ranges import Sizes, written
from onnxsmith.graph.structure.signature import signature
from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.pruning.channel_groups import Channels
from onnxsmith.precision.pruning.channel_removal import Kept, masked
from onnxsmith.precision.pruning.pruning_preparation import Working, working
from onnxsmith.precision.weight_counts import own_weights
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.sessions import verify_models

_SAMPLES = 2
"""The user's samples that are compared in addition to generated inputs. A choice."""


def proven(
    model: ir.Model,
    pruned: ir.Model,
    kept: Kept,
    found: Channels,
    samples: Samples | None,
    *,
    sizes: Sizes | None = None,
    seed: int = 0,
) -> Verification:
    """Compares the pruned model with the whole one, in which the weights that read removed channels are zero.

    Only these weights are changed: removed channels are still computed, with any values. So the comparison fails if
    another node reads a removed channel, if indices do not match, or if sizes are wrong.
    """
    reference = masked(model, kept, found.links.products)
    given = [] if samples is None else [sample for _, sample in zip(range(_SAMPLES), samples, strict=False)]
    interface = signature(model)
    feeds = tuple(
        Feed(f"sample {number} of the data", of_feed(interface, sample.feeds), dict(sample.feeds))
        for number, sample in enumerate(given, 1)
    )
    return verify_models(
        reference,
        pruned,
        Verify(sizes=written(sizes), seed=seed),
        given=feeds,
        names=("the model with zeros", "the pruned model"),
    )


# Compares the model that channels are followed through with the given one.


def compared(loaded: ir.Model, sizes: Sizes | None, seed: int) -> Working:
    """Prepares the model through which channels are followed. If it is not proven equal to the given model, prepares it
    without rewrites."""
    found = working(loaded)
    if (
        not found.is_rewritten
        or verify_models(own_weights(loaded), found.model, Verify(sizes=written(sizes), seed=seed)).equal
    ):
        return found
    return working(loaded, rewritten=False)
