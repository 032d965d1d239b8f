"""Defines the base of measures, which say how much each channel of a group matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.pruning.channel_groups import Channels, Group
from onnxsmith.precision.pruning.channel_links import Slot
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.metrics.base import Floats


@dataclass(frozen=True)
class Subject:
    """The model whose channels are measured, and the data on which to run it."""

    model: ir.Model
    found: Channels
    runtime: Runtime
    samples: Samples
    saliency: Mapping[str, Floats] = field(default_factory=dict)
    """The user's saliency by name of the torch parameter, for a measure that needs it."""
    places: Moved = field(default_factory=Moved)
    """The weights whose elements were moved from parameters."""


class Measure(ABC):
    """Scores channels. Measures are found by walking this folder; the name on the command line is their id."""

    title: ClassVar[str]

    @abstractmethod
    def scores(self, subject: Subject) -> Sequence[Floats]:
        """Returns a number for each channel of each group of `subject.found.free`. Channels with the least numbers are
        removed first. Numbers are comparable between groups: each layer's contribution is scaled to a mean of 1, unless
        the measure has one scale for all layers."""


def together(group: Group, squares: Mapping[Slot, Floats]) -> Floats:
    """Returns, for each channel, the root of the mean over axes of its `squares`, each relative to the mean of its
    axis. Axes without an entry do not count. If there is no entry at all, all channels matter equally."""
    total, axes = np.zeros(len(group.channels)), 0
    for place, slot in enumerate(group.slots):
        own = squares.get(slot)
        if own is None or not own.any():
            continue
        sums = np.array([own[channel[place][1]].sum() for channel in group.channels])
        total += sums / sums.mean() if sums.any() else 0.0
        axes += 1
    return np.asarray(np.sqrt(total / axes)) if axes else np.ones(len(group.channels))
