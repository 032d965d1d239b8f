"""Runs one model with slightly changed weights and inputs. A change by an ulp measures the effect of rounding; a fault
tests whether a check would notice it."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any, Self

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.graph.surgery.tie_noise import SEED, SWITCH, WHOLE, puts_in_order, with_tie_noise
from onnxsmith.graph.surgery.weights_as_inputs import Weight, additions, adjustable, with_numbers
from onnxsmith.runtimes.base import Outputs, Session
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.metrics.base import blocks, widen
from onnxsmith.verification.metrics.distances import rms
from onnxsmith.verification.value_comparison import is_float

Array = npt.NDArray[Any]
EACH, ADDED, TABLE = "each", "added", "table"
"""Names three kinds of faults: each element changed by a share of itself; a share of the tensor's root mean square
added to each element; elements replaced by other values of the same table."""
_MOST_MOVED = 2**26
"""Limits the bytes of weights that are moved at once: all small tensors, and an even selection of the others. A choice:
64 MiB."""
_SEEDS_KEPT = 2
"""Counts the seeds whose moved weights are kept: the samples that every input gets (`verification/noise.py`)."""
_UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Maps dtypes to unit roundoffs (IEEE 754; bfloat16 has 8 bits of significand)."""


class Probe:
    """Holds a model in a session of its own, in which every weight is an input with a default. The session is made when
    it is first needed. If the runtime refuses the model or an input, the probe returns None."""

    settled: Set[str] = frozenset()
    """Names the weights in which no more faults are planted, because their faults were seen elsewhere."""

    def __init__(
        self,
        source: Path | ir.Model,
        prepare: Callable[[ir.Model], Session],
        *,
        settled: Set[str] = frozenset(),
        extend: Callable[[ir.Model, bytes, Signature], Session | None] = lambda *_: None,
    ) -> None:
        self.settled = settled
        self._extend = extend
        self.tried: set[str] = set()
        """Names the weights in which faults were planted."""
        self._prepare = prepare
        self._source = source
        self._session: Session | None = None
        self._failed = False
        self._has_order = False
        self._kept: dict[int, Mapping[str, Array]] = {}
        self._known: dict[tuple[object, ...], tuple[Feed, Outputs | None]] = {}
        """Holds the outputs by the id of the input's values, and how these and the weights were moved. The input is
        kept alive so that its id is not reused."""
        self.weights: tuple[Weight, ...] = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def model(self) -> ir.Model:
        """Returns the unchanged model."""
        return load(self._source)

    def with_numbers(self, values: Mapping[str, ir.TensorProtocol]) -> Probe:
        """Returns a probe of the model with other values for some initializers or Constant nodes."""
        return Probe(with_numbers(self.model, values), self._prepare)

    def prepared(self, model: ir.Model) -> Session:
        """Returns a session of another model, prepared like the probe's own.

        Raises:
            OnnxsmithError: the errors of the runtime.
        """
        return self._prepare(model)

    def start(self) -> bool:
        """Makes the session. Returns False if the runtime does not take weights as inputs."""
        if self._session is None and not self._failed:
            try:
                self._session = self._extended() or self._rewritten()
            except OnnxsmithError:
                self._failed = True
        return not self._failed

    def _extended(self) -> Session | None:
        """Returns a session of the model's own file with further inputs; None if the file has to be rewritten."""
        model = load(self._source)
        found = None if puts_in_order(model) else additions(model)
        if found is None:
            return None
        added, interface, weights = found
        session = self._extend(model, added, interface)
        self.weights = weights if session is not None else ()
        return session

    def _rewritten(self) -> Session:
        """Returns a session of a changed copy of the model."""
        made, self.weights = adjustable(load(self._source))
        self._has_order = with_tie_noise(made)
        return self._prepare(made)

    def close(self) -> None:
        """Ends the session."""
        if self._session is not None:
            self._session.close()
            self._session, self._failed, self._kept = None, True, {}

    def plain(self, feed: Feed) -> Outputs | None:
        """Returns the outputs of the unchanged model."""
        return self._once(feed, (), lambda: self._run(feed.values, {}))

    def _once(self, feed: Feed, how: tuple[object, ...], run: Callable[[], Outputs | None]) -> Outputs | None:
        """Returns the outputs of `run`, which runs once for each input and each `how`: several comparisons ask about
        the same inputs."""
        key = (id(feed.values), *how)
        if key not in self._known:
            self._known[key] = (feed, run())
        return self._known[key][1]

    def moved(
        self, feed: Feed, seed: int, *, whole: bool = False, inputs: bool = True, ties: bool = False
    ) -> Outputs | None:
        """Returns the outputs with float inputs moved by about an ulp, and weights moved by the rounding of the sums
        that read them. For sums of n terms this is sqrt(n/6) ulps, the mean of a random walk of their partial sums.
        Whole numbers stay. With `whole` whole numbers move too, small numbers by an ulp of the tensor's root mean
        square. Without `inputs`, only the weights move. Elements that an operator puts in order move by an ulp as well.
        With `ties` whole numbers among these elements move too, because equal elements may be in any order."""
        how = (seed, whole, inputs, ties)
        return self._once(feed, how, lambda: self._moved(feed, seed, whole=whole, inputs=inputs, ties=ties))

    def _moved(self, feed: Feed, seed: int, *, whole: bool, inputs: bool, ties: bool) -> Outputs | None:
        if not self.start():
            return None
        moved = dict(self._nudges(seed))
        if self._has_order:
            numbers = {SWITCH: 1, SEED: seed + 1, WHOLE: ties}
            moved |= {name: np.array(number, np.float32) for name, number in numbers.items()}
        if not inputs:
            return self._run(feed.values, moved)
        nudged = {name: _nudged(value, 1.0, (seed, name), by_size=whole) for name, value in feed.values.items()}
        values = nudged if whole else {name: _inexact(value, nudged[name]) for name, value in feed.values.items()}
        return self._run(values, moved)

    def faulty(self, feed: Feed, weight: Weight, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        """Returns the outputs with a fault in one weight. Each element is changed by `share` of itself, up or down at
        random. A share of 1 changes each element by as much as the tensor's root mean square. With `manner` ADDED, a
        share of the root mean square is added, also to zeros. With TABLE, some elements get other values of the
        table."""
        changed = planted(self._values(weight), share, weight.is_levels, seed, manner=manner)
        if changed is None:
            return None
        self.tried.add(weight.name)
        return self._run(feed.values, {weight.name: changed})

    def replaced(self, feed: Feed, weight: Weight, value: Array) -> Outputs | None:
        """Returns the outputs with another value for one weight."""
        return self._run(feed.values, {weight.name: value})

    def faulty_input(self, feed: Feed, name: str, share: float, seed: int, *, manner: str = EACH) -> Outputs | None:
        """Returns the outputs with a fault in one input instead of a weight."""
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

    def _nudges(self, seed: int) -> Mapping[str, Array]:
        """Returns the moved weights, which are the same for every input. Those of the first seeds are kept."""
        found = self._kept.get(seed)
        if found is None:
            found = {weight.name: self._nudged(weight, seed) for weight in self._to_move()}
            if seed < _SEEDS_KEPT:
                self._kept[seed] = found
        return found

    def _nudged(self, weight: Weight, seed: int) -> Array:
        value = self._values(weight)
        fine = value.dtype.name in ("float32", "float64")  # kernels sum coarser dtypes in float32: no error to add
        ulps = max(1.0, math.sqrt(weight.terms / 6)) if fine else 1.0
        moved = np.asarray(_nudged(value, ulps, (seed, weight.name)))
        return _inexact(value, moved) if weight.is_placed else moved


def _inexact(value: Any, moved: Any) -> Any:
    """Returns the moved values, except that numbers of few digits (multiples of 1/256) stay. Whole numbers and halves
    are exact on purpose, and a model that rounds or compares them has one right answer."""
    if moved is value:
        return value
    parts = widen(value) * 256
    return np.where(np.rint(parts) == parts, value, moved)


def _nudged(value: Any, ulps: float, key: tuple[int, str], *, by_size: bool = False) -> Any:
    """Moves floats by some `ulps` at random; other values stay unchanged. The ulp is the ulp of the element. With
    `by_size`, it is the ulp of the tensor's root mean square if the element is smaller."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in _UNITS or not value.size:
        return value
    rng = np.random.default_rng([key[0], zlib.crc32(key[1].encode())])
    unit = 2 * _UNITS[value.dtype.name] * ulps
    if value.dtype.itemsize >= 4 and not by_size:
        return _nudged_in_place(value, unit, rng)
    with np.errstate(over="ignore", invalid="ignore"):
        wide = value.astype(np.float64)
        drawn = rng.uniform(-1.5, 1.5, value.shape)  # after rounding to whole ulps: -1, 0 and 1 equally often
        least = rms(wide[np.isfinite(wide)]) if by_size and np.isfinite(wide).any() else 0.0
        size = np.maximum(np.abs(wide), least)
        moved = (wide + size * unit * drawn).astype(value.dtype)
        return np.where(np.isfinite(moved), moved, value)


def _nudged_in_place(value: Array, unit: float, rng: np.random.Generator) -> Array:
    """Does the same as `_nudged` in the values' own dtype, which takes a twelfth of the time for large weights."""
    with np.errstate(over="ignore", invalid="ignore"):
        moved = rng.random(value.shape, dtype=value.dtype.type)
        moved -= value.dtype.type(0.5)
        moved *= value.dtype.type(3 * unit)
        moved *= np.abs(value)
        moved += value
    finite = np.isfinite(moved)
    return moved if finite.all() else np.where(finite, moved, value)


def planted(value: Array, share: float, levels: bool, seed: int, *, manner: str = EACH) -> Array | None:
    """Returns `value` with a fault. Returns None if the value cannot be changed, because it is all zero, empty or not
    finite. In a table of whole numbers, or of two values like a mask, a change by 1% means little, so the fault is
    another value of the table."""
    rng = np.random.default_rng([seed, value.size])
    if value.dtype.kind == "c" or not value.size:
        return None
    whole = all(np.isfinite(block).all() for (block,) in blocks(value))
    size = rms(value if whole else _finite(widen(value)))
    if not size:
        return None
    wide = widen(value)
    if levels:
        steps = share * size
        flips = rng.random(value.shape) < min(steps**2, 1.0)
        flips.reshape(-1)[int(rng.integers(value.size))] = True  # at least one step, else there is no fault
        wide = wide + np.where(flips, max(round(steps), 1), 0) * rng.choice((-1, 1), value.shape)
        limits = ml_dtypes.iinfo(value.dtype)  # type: ignore[no-untyped-call]
        return np.asarray(np.clip(wide, limits.min, limits.max).astype(value.dtype))
    if manner == TABLE:
        finite = _finite(wide)
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


def _finite(wide: Array) -> Array:
    return wide[np.isfinite(wide)]


def _is_table(finite: Array) -> bool:
    """Whether the values are positions, levels or marks: different whole numbers, or two values with 0 among them."""
    if finite.size < 2 or finite.min() == finite.max():
        return False
    if np.array_equal(finite, np.rint(finite)):
        return True
    return bool(np.isin(finite, (0.0, finite.min(), finite.max())).all()) and 0.0 in (finite.min(), finite.max())
