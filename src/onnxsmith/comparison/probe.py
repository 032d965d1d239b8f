"""One model, run with its weights and inputs slightly changed: by an ulp, to see what rounding does to its outputs, or
by a fault, to see whether a check would notice."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.comparison.tensors import is_float
from onnxsmith.feeds.generate import Feed
from onnxsmith.metrics.base import widen
from onnxsmith.metrics.max_rel import rms
from onnxsmith.model.files.load import load
from onnxsmith.model.surgery.weights import Weight, adjustable, with_numbers
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes.base import Outputs, Session

Array = npt.NDArray[Any]
EACH, ADDED, TABLE = "each", "added", "table"
"""Manners of a fault: a share of each element; a share of their size, added; other values of the same table."""
_MOST_MOVED = 2**26
"""Bytes of weights that are moved at once: those of small tensors, and an even choice of the others."""
_UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Probe:
    """A model in a session of its own, in which every weight is an input with a default. The session is made when it is
    first needed; where the runtime does not take it, or an input, the probe answers None."""

    def __init__(self, source: Path | ir.Model, prepare: Callable[[ir.Model], Session]) -> None:
        self._prepare = prepare
        self._source = source
        self._session: Session | None = None
        self._failed = False
        self._plain: dict[int, Outputs | None] = {}
        self.weights: tuple[Weight, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> ir.Model:
        """The model as it is."""
        return load(self._source)

    def with_numbers(self, values: Mapping[str, ir.TensorProtocol]) -> Probe:
        """A probe of the model with other values of some initializers or Constants."""
        return Probe(with_numbers(self.model, values), self._prepare)

    def prepared(self, model: ir.Model) -> Session:
        """A session of another model, as the probe's own is.

        Raises:
            OnnxsmithError: what the runtime raises.
        """
        return self._prepare(model)

    def start(self) -> bool:
        """Makes the session. False where the runtime does not take weights as inputs."""
        if self._session is None and not self._failed:
            try:
                made, self.weights = adjustable(load(self._source))
                self._session = self._prepare(made)
            except OnnxsmithError:
                self._failed = True
        return not self._failed

    def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            self._session.close()
            self._session, self._failed = None, True

    def plain(self, feed: Feed) -> Outputs | None:
        """What the model answers, nothing changed."""
        if id(feed) not in self._plain:
            self._plain[id(feed)] = self._run(feed.values, {})
        return self._plain[id(feed)]

    def moved(self, feed: Feed, seed: int, *, whole: bool = False, inputs: bool = True) -> Outputs | None:
        """What it answers with float inputs moved by about an ulp, and weights by what rounding in the sums that read
        them comes to: sqrt(n/6) ulps for sums of n terms, the mean of a random walk of their partial sums. Whole
        numbers stay, unless `whole` is asked for; then small ones move by an ulp of the tensor's size. Without
        `inputs` the weights alone move."""
        if not self.start():
            return None
        moved = {weight.name: self._nudged(weight, seed) for weight in self._to_move()}
        if not inputs:
            return self._run(feed.values, moved)
        nudged = {name: _nudged(value, 1.0, (seed, name), by_size=whole) for name, value in feed.values.items()}
        values = nudged if whole else {name: _inexact(value, nudged[name]) for name, value in feed.values.items()}
        return self._run(values, moved)

    def faulty(self, feed: Feed, weight: Weight, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        """What it answers with each element of one weight changed by `share` of itself, up or down at random; a share
        of 1 changes it by as much as its root mean square. In other manners a share of that is ADDED, to zeros as well,
        or places of a TABLE get others of its values."""
        changed = planted(self._values(weight), share, weight.is_levels, seed, manner=manner)
        return self._run(feed.values, {weight.name: changed}) if changed is not None else None

    def replaced(self, feed: Feed, weight: Weight, value: Array) -> Outputs | None:
        """What it answers with another value of one weight."""
        return self._run(feed.values, {weight.name: value})

    def faulty_input(self, feed: Feed, name: str, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        """The same with one of the inputs in a weight's place."""
        value = feed.values[name]
        is_floats = isinstance(value, np.ndarray) and is_float(value)
        changed = planted(value, share, False, seed, manner=manner) if is_floats else None
        return self._run({**feed.values, name: changed}, {}) if changed is not None else None

    def _run(self, values: Mapping[str, Any], weights: Mapping[str, Array]) -> Outputs | None:
        if not self.start() or self._session is None:
            return None
        try:
            return self._session.run({**values, **weights})
        except OnnxsmithError as error:
            if error.problem.id in ("runtime/died", "runtime/timeout"):
                self._failed = True
            return None

    def _values(self, weight: Weight) -> Array:
        return np.asarray(weight.tensor.numpy())

    def _to_move(self) -> list[Weight]:
        floats = [weight for weight in self.weights if not weight.is_levels]
        total = sum(weight.tensor.nbytes for weight in floats)
        if total <= _MOST_MOVED:
            return floats
        small = [weight for weight in floats if weight.tensor.nbytes <= 2**16]
        large = [weight for weight in floats if weight.tensor.nbytes > 2**16]
        step = math.ceil(total / _MOST_MOVED)
        return small + large[::step]

    def _nudged(self, weight: Weight, seed: int) -> Array:
        value = self._values(weight)
        fine = value.dtype.name in ("float32", "float64")  # coarser dtypes are summed in float32
        ulps = max(1.0, math.sqrt(weight.terms / 6)) if fine else 1.0
        return np.asarray(_nudged(value, ulps, (seed, weight.name)))


def _inexact(value: Any, moved: Any) -> Any:
    """What moved, but for numbers of few digits: whole ones, halves and the like are meant as they are, and a model
    that rounds or compares them has one right answer."""
    if moved is value:
        return value
    parts = widen(value) * 256
    return np.where(np.rint(parts) == parts, value, moved)


def _nudged(value: Any, ulps: float, key: tuple[int, str], *, by_size: bool = False) -> Any:
    """Floats moved by some `ulps` at random, of themselves, or of the tensor's root mean square where they are smaller
    and `by_size` is asked for; anything else as it is."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in _UNITS or not value.size:
        return value
    rng = np.random.default_rng([key[0], zlib.crc32(key[1].encode())])
    unit = 2 * _UNITS[value.dtype.name] * ulps
    with np.errstate(over="ignore", invalid="ignore"):
        wide = value.astype(np.float64)
        drawn = rng.uniform(-1.5, 1.5, value.shape)  # rounded to an ulp or none, each as often
        least = rms(wide[np.isfinite(wide)]) if by_size and np.isfinite(wide).any() else 0.0
        size = np.maximum(np.abs(wide), least)
        moved = (wide + size * unit * drawn).astype(value.dtype)
        return np.where(np.isfinite(moved), moved, value)


def planted(value: Array, share: float, levels: bool, seed: int, *, manner: str = EACH) -> Array | None:
    """`value` with a fault; None where it stays as it is: all of it is zero, empty or not finite. Of a table of whole
    numbers, or of two values as masks are, a hundredth means little: a fault in it is another of its values.
    """
    rng = np.random.default_rng([seed, value.size])
    wide = widen(value)
    finite = wide[np.isfinite(wide)]
    size = rms(finite) if finite.size else 0.0
    if not size or value.dtype.kind == "c":
        return None
    if levels:
        steps = share * size
        flips = rng.random(value.shape) < min(steps**2, 1.0)
        flips.reshape(-1)[int(rng.integers(value.size))] = True  # one step at least: less is no fault
        wide = wide + np.where(flips, max(round(steps), 1), 0) * rng.choice((-1, 1), value.shape)
        limits = np.iinfo(value.dtype)
        return np.asarray(np.clip(wide, limits.min, limits.max).astype(value.dtype))
    if manner == TABLE:
        if not _is_table(finite):
            return None
        places = rng.random(value.shape) < min(share, 1.0)
        places.reshape(-1)[int(rng.integers(value.size))] = True
        made = np.where(places, rng.permutation(wide.ravel()).reshape(wide.shape), wide)
        first, last = finite.min(), finite.max()
        made = np.where(places & (made == wide), np.where(wide == last, first, last), made).astype(value.dtype)
        return None if np.array_equal(made, value, equal_nan=True) else np.asarray(made)
    with np.errstate(over="ignore", invalid="ignore"):
        by_size = rng.standard_normal(value.shape) * min(share, 1.0) * size
        change = by_size if share >= 1 or manner == ADDED else wide * share * rng.choice((-1, 1), value.shape)
        made = (wide + np.where(np.isfinite(wide), change, 0)).astype(value.dtype)
    return None if np.array_equal(made, value) else np.asarray(made)


def _is_table(finite: Array) -> bool:
    """Whether these are positions, levels or marks: whole numbers that differ, or two values of which one is 0."""
    if finite.size < 2 or finite.min() == finite.max():
        return False
    if np.array_equal(finite, np.rint(finite)):
        return True
    return bool(np.isin(finite, (0.0, finite.min(), finite.max())).all()) and 0.0 in (finite.min(), finite.max())
