"""Measures the second moments of the activations that products read. They say how much an error in a weight changes the
result."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.scaled_blocks import Array
from onnxsmith.runtimes.base import Options, Runtime
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap

_SAMPLES = 128
"""The most samples: as many as in the experiments of GPTQ (Frantar et al., arXiv 2210.17323, section 4)."""
_HELD = 2**30
"""The most bytes of moments held at once. A choice: 1 GiB, three inputs of 6,700 elements."""


class Moments:
    """Second moments of tensors [..., n] of the main graph: float64 [n, n], the sums of the products of any two
    elements.

    `widths` are the tensors with their n. The first request for a tensor measures it and the tensors that follow it, as
    many as are held at once. So requests in the order of `widths` measure each tensor once. For convolutions, whose
    patches are no tensor of the graph, use `gptq_rounding.second_moments`.
    """

    def __init__(
        self, model: ir.Model, runtime: Runtime, samples: Iterable[Sample], widths: Mapping[str, int], held: int = _HELD
    ) -> None:
        self._model, self._runtime, self._samples, self._held = model, runtime, samples, held
        self._widths = dict(widths)
        self._known: dict[str, Array | None] = {}

    def of(self, name: str) -> Array | None:
        """Returns the moments of a tensor. Returns None if fewer than n vectors were seen, which are too few to tell
        from chance, or if a number was not finite.

        Raises:
            OnnxsmithError: the runtime's error.
        """
        if name not in self._widths:
            return None
        if name not in self._known:
            self._known = self._measured(self._group(name))
        return self._known[name]

    def none(self) -> Moments:
        """Returns moments without tensors, so that `of` returns None for each name."""
        return Moments(self._model, self._runtime, (), {})

    def _group(self, first: str) -> list[str]:
        names = list(self._widths)
        names = names[names.index(first) :]
        total = itertools.accumulate(self._widths[name] ** 2 * np.dtype(np.float64).itemsize for name in names)
        return [name for name, size in zip(names, total, strict=True) if name == first or size <= self._held]

    def _measured(self, names: list[str]) -> dict[str, Array | None]:
        sums = {name: np.zeros((self._widths[name], self._widths[name])) for name in names}
        counts = dict.fromkeys(names, 0)
        inputs = {value.name for value in self._model.graph.inputs}
        made = [name for name in names if name not in inputs]
        with OnnxTap(self._model, self._runtime.preparer(), Options(), "", is_inferred=True) as tap:
            for sample in itertools.islice(self._samples, _SAMPLES):
                feeds: dict[str, Any] = dict(sample.feeds)
                values = {**feeds, **(tap.values(feeds, made) if made else {})}
                for name in names:
                    vectors = np.asarray(values[name], np.float32).reshape(-1, self._widths[name])
                    sums[name] += vectors.T @ vectors
                    counts[name] += len(vectors)
        enough = {name: counts[name] >= self._widths[name] and bool(np.isfinite(sums[name]).all()) for name in names}
        return {name: sums[name] if enough[name] else None for name in names}


def total(found: Iterable[Array | None]) -> Array | None:
    """Adds the moments of several inputs that are multiplied with one weight. Returns None if any of them is
    unknown."""
    parts = list(found)
    known = [one for one in parts if one is not None]
    return None if not parts or len(known) < len(parts) else np.sum(known, axis=0)
