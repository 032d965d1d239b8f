"""Small models for the tests of pruning, and what is cut out of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.graph.files.text import from_text
from onnxsmith.precision.pruning.channel_groups import Channels, channels
from onnxsmith.precision.pruning.channel_removal import Kept, kept_without, pruned
from onnxsmith.precision.pruning.channel_selection import Choice
from onnxsmith.precision.pruning.measures.importance import Norm
from onnxsmith.precision.pruning.proof import proven
from onnxsmith.precision.pruning.pruning_preparation import working

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'


def model(text: str, *, inputs: int = 1, seed: int = 0, head: str = HEAD) -> ir.Model:
    """The model that text describes. Inputs of the graph behind the first few become weights, drawn at random, or the
    numbers of their names: `n_1_64` is `[1, 64]`. Variances (`var`) are positive."""
    made = from_text(head + text)
    draw = np.random.default_rng(seed)
    for value in list(made.graph.inputs)[inputs:]:
        name = value.name or ""
        assert value.shape is not None
        shape = [int(size) for size in value.shape if isinstance(size, int)]
        array: Any = draw.standard_normal(shape).astype(np.float32) * (np.prod(shape[1:] or [1]) ** -0.5)
        if name.startswith("n_"):
            array = np.array([int(part.replace("m", "-")) for part in name.split("_")[1:]], np.int64)
        elif "var" in name:
            array = np.square(array) + 0.5
        array = array.astype(np.int64) if value.dtype == ir.DataType.INT64 else array.astype(np.float32)
        value.const_value = ir.tensor(array, name=name)
        made.graph.inputs.remove(value)
        made.graph.initializers[name] = value
    return made


def found(given: ir.Model) -> tuple[ir.Model, Channels]:
    """The model that channels are followed through, and its channels."""
    work = working(given).model
    return work, channels(work)


def cut(given: ir.Model, share: float = 0.5, *, multiple: int = 1) -> tuple[ir.Model, ir.Model, Kept, Channels]:
    """The model that channels are followed through, without `share` of the channels, what stayed, all channels."""
    work, all_channels = found(given)
    scores = Norm().scores(_Subject(work, all_channels))  # type: ignore[arg-type]
    gone = Choice(multiple).gone(all_channels.free, scores, share)
    kept = kept_without(all_channels, gone)
    return work, pruned(work, kept), kept, all_channels


class _Subject:
    def __init__(self, given: ir.Model, all_channels: Channels) -> None:
        self.model, self.found = given, all_channels


def proof(given: ir.Model, share: float = 0.5) -> tuple[ir.Model, Verification]:
    """The pruned model, and its comparison with the given one without the channels."""
    work, made, kept, all_channels = cut(given, share)
    return made, proven(work, made, kept, all_channels, None)


def shapes(given: ir.Model) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights by name."""
    return {
        name: tuple(value.const_value.shape.numpy())
        for name, value in given.graph.initializers.items()
        if value.const_value is not None
    }


def reasons(given: ir.Model) -> list[str]:
    """Why channels stay."""
    return [group.reason for group in found(given)[1].fixed]
