"""Makes the values: seeded, of the port's dtype, within what the graph allows, all zeros only if nothing else is."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.feeds import ranges
from onnxsmith.feeds.sizes import Sizes
from onnxsmith.model.signature import Dim, Port, Signature, signature
from onnxsmith.problem import problem

Array = npt.NDArray[Any]
Values = dict[str, Any]

SPREADS = ("normal", "unit", "positive")
"""Float values: standard normal; uniform in 0..1; uniform in 1..2, for graphs that take logarithms or divide."""


@dataclass(frozen=True)
class Feed:
    """Inputs for one run and how they came about."""

    label: str
    sizes: Sizes
    values: Values = field(repr=False)


@dataclass
class Generator:
    """Makes feeds for a signature.

    `allowed` limits integer inputs, `texts` gives strings, `examples` are arrays whose spread new floats follow.
    """

    signature: Signature
    allowed: Mapping[str, ranges.Allowed] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    examples: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def for_model(cls, model: ir.Model) -> Generator:
        """A generator that has read from the graph what its inputs may be."""
        inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
        integers = {v.name or "": ranges.allowed(v) for v in inputs if v.dtype is not None and v.dtype.is_integer()}
        texts = {v.name or "": ranges.strings(v) for v in inputs if v.dtype == ir.DataType.STRING}
        return cls(signature(model), integers, texts)

    def choices(self) -> dict[str, tuple[int, ...]]:
        """Integer inputs that the graph compares with constants: each of these values takes it another way."""
        return {name: limits.choices for name, limits in self.allowed.items() if limits.choices}

    def feed(
        self, sizes: Sizes, *, seed: int = 0, spread: str = "normal", chosen: Mapping[str, int] | None = None
    ) -> Feed:
        """One feed. The same arguments give the same values to the bit."""
        chosen = chosen or {}
        values: Values = {}
        for port in self.signature.required():
            if port.kind == "optional":
                continue
            rng = np.random.default_rng([seed, zlib.crc32(port.name.encode())])
            make = self._maker(port, sizes, spread, chosen.get(port.name))
            many = 2 if port.kind == "sequence" else 1
            made = [np.asarray(make(rng)) for _ in range(many)]  # numpy draws scalars for the shape ()
            values[port.name] = made if port.kind == "sequence" else made[0]
        parts = [f"{name}={size}" for name, size in sizes.items()] + [f"{name}:={v}" for name, v in chosen.items()]
        return Feed(", ".join([*parts, f"seed {seed}", spread]), dict(sizes), values)

    def _maker(self, port: Port, sizes: Sizes, spread: str, choice: int | None) -> Any:
        shape = shape_of(port, sizes)
        if port.dtype == "string":
            return lambda rng: _pick(rng, np.array(self.texts.get(port.name, ("a", "b")), dtype=object), shape)
        dtype = np.dtype(ir.DataType[port.dtype.upper()].numpy())
        if port.dtype == "bool":
            return lambda rng: _not_all_zero(np.asarray(rng.integers(0, 2, shape), bool))
        if ir.DataType[port.dtype.upper()].is_integer():
            return lambda rng: self._integers(port, shape, dtype, rng, choice)
        if dtype.kind == "c":
            return lambda rng: (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
        if dtype.name == "float8_e8m0fnu":  # powers of two: no sign, no zero
            return lambda rng: np.exp2(rng.integers(-3, 4, shape)).astype(dtype)
        return lambda rng: _not_all_zero(np.asarray(self._floats(port, shape, rng, spread)).astype(dtype))

    def _integers(self, port: Port, shape: tuple[int, ...], dtype: Any, rng: Any, choice: int | None) -> Array:
        if choice is not None:
            return np.full(shape, choice, dtype)
        limits = self.allowed.get(port.name, ranges.Allowed(0, 4))
        low, high = limits.low, limits.high
        if port.name in self.examples and not limits.choices and limits.why == ranges.Allowed(0, 0).why:
            example = self.examples[port.name]
            low, high = (int(example.min()), int(example.max())) if example.size else (low, high)
        width, signed = ir.DataType[port.dtype.upper()].bitwidth, ir.DataType[port.dtype.upper()].is_signed()
        low = max(low, -(2 ** (width - 1)) if signed else 0)
        high = min(high, 2 ** (width - 1 if signed else width) - 1, 2**31)
        if limits.choices:
            return _pick(rng, np.array(limits.choices), shape).astype(dtype)
        return _not_all_zero(np.asarray(rng.integers(min(low, high), high + 1, shape)).astype(dtype), high)

    def _floats(self, port: Port, shape: tuple[int, ...], rng: Any, spread: str) -> Array:
        example = self.examples.get(port.name)
        if example is not None and example.size > 1 and spread == "normal":
            wide = example.astype(np.float64)
            wide = wide[np.isfinite(wide)]
            if wide.size and wide.min() < wide.max():
                peak = np.abs(wide).max()  # squares of the largest numbers are none
                wide = wide / peak
                low, high = wide.min(), wide.max()
                drawn: Array = np.asarray(rng.normal(wide.mean(), wide.std(), shape))
                outside = (drawn < low) | (drawn > high)  # drawn again, not cut off: equal numbers have no order
                return np.asarray(np.where(outside, rng.uniform(low, high, shape), drawn) * peak)
        if spread == "normal":
            return np.asarray(rng.standard_normal(shape))
        return np.asarray(rng.random(shape)) + (1 if spread == "positive" else 0)


def _not_all_zero(array: Array, high: int = 1) -> Array:
    if array.size and high > 0 and not array.any():
        array[(0,) * array.ndim] = 1
    return array


def _pick(rng: np.random.Generator, pool: Array, shape: tuple[int, ...]) -> Array:
    """Elements of `pool`; an array even for the shape (), for which numpy's own choice gives an element."""
    return pool[rng.integers(0, len(pool), shape)] if shape else pool[rng.integers(0, len(pool), 1)].reshape(())


def shape_of(port: Port, sizes: Sizes) -> tuple[int, ...]:
    """The port's shape with sizes put in for its symbols.

    Raises:
        OnnxsmithError: `feeds/unknown-rank` when the file does not say how many dimensions the input has.
    """
    if port.shape is None:
        raise problem(
            "feeds/unknown-rank",
            f"the file does not say how many dimensions input {port.name!r} has",
            fix=f"give an example: --input {port.name}=float32[1,3,224,224]",
        )
    return tuple(size_of(dim, sizes) for dim in port.shape)


def size_of(dim: Dim, sizes: Sizes) -> int:
    """The size of a dimension: itself, its symbol's, or its expression's value."""
    if isinstance(dim, int):
        return dim
    if dim in sizes:
        return sizes[dim]
    try:
        value = ir.SymbolicDim(dim).evaluate(sizes)
    except Exception:  # noqa: BLE001 — a dimension can be any text; one that is no expression has no value
        value = None
    if not isinstance(value, int) or value < 0:
        raise problem("feeds/unknown-size", f"dimension {dim!r} has no size", fix=f"give one: --dim {dim}=…")
    return value
