"""Runs models in ONNX Runtime, by no code of onnxsmith, at any optimisation level; and random feeds like an example."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

Arrays = dict[str, Any]

LEVELS = {
    "disable": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


class Runner:
    """A session of a model. Raises what onnxruntime raises."""

    def __init__(self, model: onnx.ModelProto | Path, level: str = "disable", write: Path | None = None) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = LEVELS[level]
        if write is not None:
            options.optimized_model_filepath = str(write)
        source = str(model) if isinstance(model, Path) else model.SerializeToString()
        self.session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.outputs = [port.name for port in self.session.get_outputs()]

    def run(self, feed: Mapping[str, Any]) -> Arrays:
        """The outputs by name, sequences and maps left out."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.session.run(None, dict(feed))
        named = zip(self.outputs, found, strict=True)
        return {name: value for name, value in named if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"}


def feeds(example: Mapping[str, Any], count: int, seed: int) -> Iterator[Arrays]:
    """Feeds of the example's shapes and of values like its own, the example first."""
    rng = np.random.default_rng(seed)
    yield dict(example)
    for _ in range(count - 1):
        yield {name: _alike(np.asarray(value), rng) for name, value in example.items()}


def _alike(array: Any, rng: np.random.Generator) -> Any:
    if array.size < 2 or array.dtype.kind not in "fiub" or (array.dtype.kind in "iu" and array.size <= 4):
        return array  # a rate, a count, a length: few of its values are taken
    values = np.unique(array)
    if values.size <= 2:
        return rng.permutation(array.reshape(-1)).reshape(array.shape)  # a mask, or a constant
    if array.dtype.kind != "f":
        return rng.integers(values[0], values[-1], array.shape, endpoint=True).astype(array.dtype)
    drawn = rng.standard_normal(array.shape) * array.std(dtype=np.float64) + array.mean(dtype=np.float64)
    return np.clip(drawn, array.min(), array.max()).astype(array.dtype)


def moved(array: Any, rng: np.random.Generator) -> Any:
    """Floats one unit in the last place up or down, each by chance; anything else as it is."""
    array = np.asarray(array)
    if array.dtype not in (np.float32, np.float64, np.float16) or not array.size:
        return array
    toward = np.where(rng.integers(0, 2, array.shape) > 0, np.inf, -np.inf).astype(array.dtype)
    return np.where(array == 0, array, np.nextafter(array, toward)).astype(array.dtype)
