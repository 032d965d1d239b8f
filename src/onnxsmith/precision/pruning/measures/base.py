"""Defines a measure: how much each channel of a group matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.calibration_data import Samples
from onnxsmith.precision.pruning.channel_links import Slot
from onnxsmith.precision.pruning.groups import Channels, Group
from onnxsmith.precision.pruning.moved_weights import Moved
from onnxsmith.runtimes.base import Runtime
from onnxsmith.verification.metrics.base import Floats


@dataclass(frozen=True)
class Subject:
    """The model whose channels are measured, and data to run it on."""

    model: ir.Model
    found: Channels
    runtime: Runtime
    samples: Samples
    saliency: Mapping[str, Floats] = field(default_factory=dict)
    """What the user gives by name of the torch parameter, for a measure that needs it."""
    places: Moved = field(default_factory=Moved)
    """The weights that are parameters with their elements in other places."""


class Measure(ABC):
    """One measure. Measures are found by walking this folder; the name on the command line is their id."""

    title: ClassVar[str]

    @abstractmethod
    def scores(self, subject: Subject) -> Sequence[Floats]:
        """A number for each channel of each group of `subject.found.free`: those with the least go first. The numbers
        of all groups can be compared: what a layer contributes has a mean of 1, unless a measure has a scale that all
        layers share."""


def together(group: Group, squares: Mapping[Slot, Floats]) -> Floats:
    """The root of the mean over axes of what `squares` has for the elements of each channel, relative to the mean of
    the axis. Axes without an entry do not count; without any, all channels matter equally."""
    total, axes = np.zeros(len(group.channels)), 0
    for place, slot in enumerate(group.slots):
        own = squares.get(slot)
        if own is None or not own.any():
            continue
        sums = np.array([own[channel[place][1]].sum() for channel in group.channels])
        total += sums / sums.mean() if sums.any() else 0.0
        axes += 1
    return np.asarray(np.sqrt(total / axes)) if axes else np.ones(len(group.channels))
