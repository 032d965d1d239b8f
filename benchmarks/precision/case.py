"""A case: what one file of `cases/` says."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from precision import metrics

Item = tuple[dict[str, np.ndarray], Any]


@dataclass(frozen=True)
class Case:
    """A model, its data and its metric; `also` are figures beside the metric that decides."""

    name: str
    prepare: Callable[[Path], Path]
    samples: Callable[[], Iterator[Item]]
    calibration: Callable[[], Iterator[Item]]
    metric: str | metrics.Metric
    higher: bool
    decode: Callable[[dict[str, np.ndarray]], Any]
    also: dict[str, metrics.Metric] = field(default_factory=dict)

    def measure(self, predictions: list[Any], labels: list[Any]) -> dict[str, float]:
        """The metric, under its name, and the figures beside it."""
        metric = self.metric if callable(self.metric) else metrics.METRICS[self.metric]
        return {
            name: function(predictions, labels) for name, function in {self.metric_name: metric, **self.also}.items()
        }

    @property
    def metric_name(self) -> str:
        """What the metric is called in tables."""
        return self.metric if isinstance(self.metric, str) else self.metric.__name__

    def loss(self, reference: float, value: float) -> float:
        """How much worse `value` is than the float32 model's, in the metric's unit."""
        return reference - value if self.higher else value - reference


def names() -> list[str]:
    """The cases, by their files."""
    return sorted(path.stem for path in (Path(__file__).parent / "cases").glob("*.py") if path.stem != "__init__")


def load(name: str) -> Case:
    """The case of the file `cases/NAME.py`."""
    module = importlib.import_module(f"precision.cases.{name}")
    return Case(
        module.NAME,
        module.prepare,
        module.samples,
        module.calibration,
        module.METRIC,
        module.BETTER == "higher",
        module.decode,
        getattr(module, "ALSO", {}),
    )
