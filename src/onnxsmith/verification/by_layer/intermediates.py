"""Computes the values of a model's tensors on one input, in as few runs as a budget of memory allows.

Each run is one session with an exposed copy of the model (`graph/surgery/exposing.py`). The size of a tensor follows
from its inferred shape and the sizes of the input. If the shape is unknown, a run that returns shapes in place of
values tells the size.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.surgery.exposing import Exposed, Exposing, Outlet, Which
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Runtime, Value
from onnxsmith.verification.value_comparison import Difference, difference

BUDGET = 2**30
"""Limits the bytes of values that are held at once, by default. A choice: 1 GiB."""
_TEXT = 64
"""Assumes this number of bytes for a string. A choice."""
_MOST_FAILURES = 32
"""Limits the failed runs after which the search for the tensors that make them fail ends. A choice."""


def intermediates(
    source: Path | ir.Model,
    runtime: Runtime,
    options: Options | None,
    names: Which,
    feeds: Feeds,
    budget: int = BUDGET,
) -> Intermediates:
    """Returns the values of the requested tensors (named as in `graph/surgery/exposing.py`) for one input.

    The unchanged model is run once immediately; further runs happen while the result is iterated. At most `budget`
    bytes of requested values are held at one time, not counting the model's own outputs and values that the caller
    holds.

    Raises:
        OnnxsmithError: `model/unknown-tensor` for a name that no tensor has; the runtime's error for the unchanged
            model. Errors for exposed tensors are in `refused`.
    """
    return Intermediates(source, runtime, options, names, feeds, budget)


class Intermediates:
    """Iterates over values by name; can be iterated once.

    `outlets` describes each tensor, in the order of the graph. `refused` are the tensors that cannot be returned, with
    the reason. `outputs` are the outputs of the unchanged model, from `provider`. Four attributes are complete only
    after the iteration: `moved`, the outputs that change when tensors are exposed, compared with a tolerance of 0;
    `runs`, the number of runs; `alone`, tensors larger than the budget, which were computed one by one; and the rest of
    `refused`.
    """

    def __init__(
        self,
        source: Path | ir.Model,
        runtime: Runtime,
        options: Options | None,
        names: Which,
        feeds: Feeds,
        budget: int,
        exposing: Exposing | None = None,
    ) -> None:
        self._runtime, self._options, self._feeds, self._budget = runtime, options, feeds, budget
        self._exposing = exposing or Exposing(load(source))
        asked = self._exposing.choose(names)
        self.refused = self._exposing.refusals(asked)
        self.outlets = {name: self._exposing.outlets[name] for name in asked if name not in self.refused}
        self.trouble = self._exposing.trouble
        self.moved: dict[str, Difference] = {}
        self.runs = 0
        self.alone: list[str] = []
        self._failures = 0
        with runtime.prepare(source, options) as session:
            self.outputs: Outputs = session.run(feeds)
            self.provider = session.provider

    def __iter__(self) -> Iterator[tuple[str, Value]]:
        known = [name for name, outlet in self.outlets.items() if outlet.given != "output"]
        exposed = self._exposing.expose(known)
        for name in known:
            yield name, exposed.value(name, {}, self._feeds)
        computed = [name for name, outlet in self.outlets.items() if outlet.given == "output"]
        with folders.temporary() as folder:
            chunks = self._chunks(computed)
            if len(chunks) > 1:
                self._exposing.share_weights(folder / "weights")
            for chunk in chunks:
                yield from self._given(chunk)

    def _given(self, names: list[str]) -> Iterator[tuple[str, Value]]:
        """Yields the values of one run. If the run fails, splits the names in halves, down to the tensors that make it
        fail."""
        try:
            exposed, outputs = self._run(names)
        except OnnxsmithError as error:
            self._failures += 1
            if len(names) > 1 and self._failures < _MOST_FAILURES:
                middle = len(names) // 2
                yield from self._given(names[:middle])
                yield from self._given(names[middle:])
                return
            found = error.problem
            self.refused |= dict.fromkeys(names, f"the runtime fails if this tensor is read: {found.what}; {found.why}")
            for name in names:
                del self.outlets[name]
            return
        for name in names:
            self.outlets[name] = exposed.outlets[name]
            yield name, exposed.value(name, outputs, self._feeds)

    def _run(self, names: Sequence[str]) -> tuple[Exposed, Outputs]:
        exposed = self._exposing.expose(names)
        self.runs += 1
        with self._runtime.prepare(exposed.model, self._options) as session:
            outputs = session.run(self._feeds)
        for name, value in self.outputs.items():
            found = difference(value, outputs[name], 0.0)
            if found.reason and (name not in self.moved or found.worst_rel > self.moved[name].worst_rel):
                self.moved[name] = found
        return exposed, outputs

    def _chunks(self, names: Sequence[str]) -> list[list[str]]:
        """Splits the names, in order, into chunks that fit into the budget."""
        sizes = self._sizes(names)
        chunks: list[list[str]] = []
        held = self._budget
        for name in names:
            size = sizes.get(name, self._budget)
            if held + size > self._budget or not chunks:
                chunks.append([])
                held = 0
            chunks[-1].append(name)
            held += size
            if name in sizes and size > self._budget:
                self.alone.append(name)
        return chunks

    def _sizes(self, names: Sequence[str]) -> dict[str, int]:
        """Returns the bytes of each tensor, as far as they can be known before the tensor is computed."""
        bound = self._bound()
        sizes = {name: size for name in names if (size := _nbytes(self.outlets[name], bound)) is not None}
        unknown = [name for name in names if name not in sizes]
        if unknown and len(names) > 1:
            sizes |= self._measured(unknown)
        return sizes

    def _measured(self, names: Sequence[str]) -> dict[str, int]:
        """Returns the bytes of tensors, from a run that returns the tensors' shapes. Empty if the run fails."""
        exposed = self._exposing.expose(names, sizes=True)
        try:
            with self._runtime.prepare(exposed.model, self._options) as session:
                outputs = session.run(self._feeds)
        except OnnxsmithError:
            return {}
        found: dict[str, int] = {}
        for name in exposed.outlets:
            shapes = exposed.value(name, outputs, self._feeds)
            listed = shapes if isinstance(shapes, list) else [shapes]
            found[name] = sum(_stored(self.outlets[name].dtype, shape.tolist()) for shape in listed)
        return found

    def _bound(self) -> dict[str, int]:
        """Returns the size of each symbol in the input."""
        sizes: dict[str, int] = {}
        for name, value in self._feeds.items():
            shape = self._exposing.outlets[name].shape
            if isinstance(value, np.ndarray) and shape is not None:
                pairs = zip(shape, value.shape, strict=False)
                sizes |= {dim: size for dim, size in pairs if isinstance(dim, str)}
        return sizes


def _nbytes(outlet: Outlet, bound: Mapping[str, int]) -> int | None:
    """Returns the bytes of a tensor whose shape follows from the sizes of the input; None for other tensors."""
    if outlet.kind != "tensor" or outlet.path or outlet.shape is None or outlet.dtype == "undefined":
        return None
    sizes = [size for dim in outlet.shape if (size := dims.evaluate(dim, bound)) is not None]
    return _stored(outlet.dtype, sizes) if len(sizes) == len(outlet.shape) else None


def _stored(dtype: str, shape: Sequence[int]) -> int:
    """Returns the bytes of an array. The size of strings is a guess, and an unknown dtype counts as float64."""
    known = ir.DataType.DOUBLE if dtype == "undefined" else ir.DataType[dtype.upper()]
    return math.prod(shape) * (_TEXT if known == ir.DataType.STRING else known.numpy().itemsize)
