"""Second moments of the activations that products read. They say what an error of a weight does to the result."""

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
"""Samples at most. That of the experiments of GPTQ (Frantar et al., arXiv 2210.17323, section 4)."""
_HELD = 2**30
"""Bytes of moments that are held at once. A choice: 1 GiB, three inputs of 6,700 elements."""


class Moments:
    """The moments of tensors [..., n] of the main graph: float64 [n, n], the sum of the products of each two elements.

    `widths` are the tensors with their n. They are measured when they are first asked for, with those that follow, as
    many as are held at once; asking in the order of `widths` measures each once. `gptq_rounding.second_moments`
    measures those of convolutions, whose patches are no tensor of the graph.
    """

    def __init__(
        self, model: ir.Model, runtime: Runtime, samples: Iterable[Sample], widths: Mapping[str, int], held: int = _HELD
    ) -> None:
        self._model, self._runtime, self._samples, self._held = model, runtime, samples, held
        self._widths = dict(widths)
        self._known: dict[str, Array | None] = {}

    def of(self, name: str) -> Array | None:
        """The moments of a tensor; None if too few vectors were seen to tell them apart from chance, fewer than n, or
        if one was not finite.

        Raises:
            OnnxsmithError: the runtime's error.
        """
        if name not in self._widths:
            return None
        if name not in self._known:
            self._known = self._measured(self._group(name))
        return self._known[name]

    def none(self) -> Moments:
        """Moments that know no tensor."""
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
    """The sum of moments, of inputs that one weight is multiplied with; None if one of them is unknown."""
    parts = list(found)
    known = [one for one in parts if one is not None]
    return None if not parts or len(known) < len(parts) else np.sum(known, axis=0)
