"""Defines a measure: how much each channel of a group matters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.metrics.base import Floats
from onnxsmith.precision.pruning.groups import Channels, Group
from onnxsmith.precision.pruning.links import Slot
from onnxsmith.precision.reading_data import Samples
from onnxsmith.runtimes.base import Runtime


@dataclass(frozen=True)
class Subject:
    """The model whose channels are measured, and data to run it on."""

    model: ir.Model
    found: Channels
    runtime: Runtime
    samples: Samples


class Measure(ABC):
    """One measure. Measures are found by their files; the name on the command line is the name of the file."""

    title: ClassVar[str]

    @abstractmethod
    def scores(self, subject: Subject) -> Sequence[Floats]:
        """A number for each channel of each group of `subject.found.free`: those with the least go first. The mean of
        what a layer contributes is 1 in all layers."""


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
