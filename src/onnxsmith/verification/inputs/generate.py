"""Generates inputs: seeded, of the declared dtype, within the graph's limits, and not all zeros if that is possible."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure import carried_fields
from onnxsmith.graph.structure.signature import Port, Signature, signature
from onnxsmith.verification.inputs import boundary_values, input_ranges, ranks, roles
from onnxsmith.verification.inputs.counts import Count, counts
from onnxsmith.verification.inputs.draw_description import EDGES, SCALES, Manner
from onnxsmith.verification.inputs.example_variants import like_example, spread_like
from onnxsmith.verification.inputs.input_readers import Owners, owners
from onnxsmith.verification.inputs.roles import Draw, Role, made
from onnxsmith.verification.inputs.shapes import shape_of
from onnxsmith.verification.inputs.size_constraints import Numbers, numbers
from onnxsmith.verification.inputs.size_proposals import Sizes
from onnxsmith.verification.inputs.tree_ensembles import SPLITS, Table, ensembles

if TYPE_CHECKING:
    from onnxsmith.verification.inputs import string_inputs
    from onnxsmith.verification.inputs.string_inputs import Texts


def refuse_negative(seed: int) -> None:
    """Raises for a seed below 0, which numpy's generators do not take.

    Raises:
        OnnxsmithError: `input/seed`.
    """
    if seed < 0:
        raise problem("input/seed", f"a seed of {seed} is not usable", fix="give a whole number from 0: --seed 0")


Array = npt.NDArray[Any]
Values = dict[str, Any]

_BOUNDLESS = 2**24
"""Names the width from which a range of integers counts as no limit. A choice: no table has so many rows."""
_MARKED = 0.2
"""Sets the share of integers that are marks, such as padding. A choice."""
_LACKING = 0.3
"""Sets the share of missing values (NaN) with the spread EDGES, in inputs that may have missing values. A choice."""
_FOLLOWED = 4.0
"""Limits the scaling of values that follow an example. A choice: a module may refuse values beyond this scaling."""


@dataclass(frozen=True)
class Feed:
    """Holds the inputs for one run. `label` says how they were made. `is_traced` marks values with which the candidate
    was traced: it repeats what it gave for them, whatever it computes. `at_edges` marks values at which a model may
    decide either way. `meant` marks values with one right answer, because no operation rounds them before the
    decision. `zero` names an input that was tried as a count of 0."""

    label: str
    sizes: Sizes
    values: Values = field(repr=False)
    at_edges: bool = False
    meant: bool = False
    zero: str = ""
    is_traced: bool = False


@dataclass
class Generator:
    """Makes feeds for a signature.

    `allowed` limits integer inputs, `texts` provides strings, `roles` describe the use of an input. New values follow
    the structure and spread of `examples`. `inner` are the inputs with the dimension names of the graph's shape
    inference. `allowed` and `roles` use these names.
    """

    signature: Signature
    allowed: Mapping[str, input_ranges.Allowed] = field(default_factory=dict)
    texts: Mapping[str, Texts] = field(default_factory=dict)
    examples: Mapping[str, Array] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)
    inner: tuple[Port, ...] = ()
    numbers: Numbers = field(default_factory=Numbers)
    thresholds: tuple[float, ...] = ()
    compared: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Holds the numbers with which the graph compares the values of a float input."""
    lacking: frozenset[str] = frozenset()
    """Names the inputs in which the graph replaces missing values (NaN)."""
    table: Table = field(default_factory=lambda: Table(()))
    """Makes the rows that the tree ensembles read."""
    keys: Mapping[str, string_inputs.Keys] = field(default_factory=dict)
    """Holds the possible keys of an input that is a map."""
    ranks: Mapping[str, ranks.Sizes] = field(default_factory=dict)
    """Holds the shapes of inputs whose rank the file does not say."""
    counts: Mapping[str, Count] = field(default_factory=dict)
    """Holds the inputs that may be counts."""
    present: frozenset[str] = frozenset()
    """Names the optional inputs that get a value, because the graph reads them without a check for absence."""

    @classmethod
    def for_model(cls, model: ir.Model) -> Generator:
        """Makes a generator with the limits, roles and numbers that the graph shows for its inputs."""
        own = model
        if model.functions:
            from onnxsmith.graph.surgery.inlining import inlined

            model, _ = inlined(model)
            infer(model)
        inside = owners(model)
        inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
        limited = {v.name or "": limits for v in inputs if (limits := _limits(v, inside)) is not None}
        limited |= {
            v.name or "": input_ranges.Allowed(0, 1, both)
            for v in inputs
            if v.dtype == ir.DataType.BOOL and (both := input_ranges.branches(v, inside))
        }
        strings = {v.name or "": _texts(v, inside) for v in inputs if v.dtype == ir.DataType.STRING}
        found = {v.name or "": found for v in inputs if (found := roles.role(v, inside)) is not None}
        keys = {v.name or "": _keys(v, inside) for v in inputs if carried_fields.map_types(v) is not None}
        floating = [v for v in inputs if v.dtype is not None and v.dtype.is_floating_point()]
        compared = {v.name or "": met for v in floating if (met := boundary_values.compared(v, inside))}
        lacking = {v.name or "": ranks.guessed(v, inside) for v in inputs if v.shape is None}
        present = frozenset(v.name or "" for v in inputs if any(n.op_type == "OptionalGetElement" for n, _ in v.uses()))
        inner = signature(model).inputs
        made = cls(
            Signature((), ()), limited, strings, roles=found, inner=inner, numbers=numbers(model), ranks=lacking,
            thresholds=boundary_values.thresholds(model), present=present, table=Table(ensembles(model)), keys=keys,
            compared=compared, counts=counts(model, inside),
            lacking=frozenset(v.name or "" for v in floating if boundary_values.may_be_missing(v, inside)),
        )  # fmt: skip
        return made.under(signature(own))

    def under(self, interface: Signature) -> Generator:
        """Returns the same generator, with the inputs and dimension names of `interface`."""
        ports = tuple(
            ranks.sized(port, self.ranks[port.name]) if _lacks_rank(port) and port.name in self.ranks else port
            for port in interface.inputs
        )
        return replace(self, signature=replace(interface, inputs=ports))

    def renamed(self, names: Mapping[str, str], interface: Signature) -> Generator:
        """Returns the same generator for renamed inputs; `names` maps old names to new names."""

        def under(held: Mapping[str, Any]) -> dict[str, Any]:
            return {names.get(name, name): value for name, value in held.items()}

        renamed = replace(
            self,
            allowed=under(self.allowed),
            keys=under(self.keys),
            compared=under(self.compared),
            counts=under(self.counts),
            lacking=frozenset(names.get(name, name) for name in self.lacking),
            ranks=under(self.ranks),
            texts=under(self.texts),
            examples=under(self.examples),
            roles=under(self.roles),
            present=frozenset(names.get(name, name) for name in self.present),
            table=self.table.renamed(names),
            inner=tuple(replace(port, name=names.get(port.name, port.name)) for port in self.inner),
        )
        return renamed.under(interface)

    def choices(self) -> dict[str, tuple[int, ...]]:
        """Returns the inputs whose values may lead to different branches, each with such values: integers that the
        graph compares with constants, and single bools."""
        found = {name: limits.choices for name, limits in self.allowed.items() if limits.choices}
        for port in self.signature.required():
            is_bool = port.dtype == "bool" and port.kind == "tensor" and port.shape is not None
            if is_bool and all(dim == 1 for dim in port.shape or ()):
                found.setdefault(port.name, (1, 0))
        return found

    def counted(self) -> dict[str, tuple[int, ...]]:
        """Returns the inputs that may be counts, each with the numbers at which it is tried."""
        return {name: count.values(self.numbers.counted | self.numbers.free) for name, count in self.counts.items()}

    def known(self, sizes: Sizes) -> dict[str, int]:
        """Returns the sizes, also under the dimension names of the graph's shape inference."""
        found = dict(sizes)
        own = {port.name: port for port in self.signature.inputs}
        for port in self.inner:
            mine = own.get(port.name)
            if mine is None or mine.shape is None or port.shape is None:
                continue
            for dim, theirs in zip(mine.shape, port.shape, strict=False):
                size = dims.evaluate(dim, sizes)
                if isinstance(theirs, str) and size is not None:
                    found.setdefault(theirs, size)
        return found

    def feed(
        self,
        sizes: Sizes,
        *,
        seed: int = 0,
        spread: str = "normal",
        chosen: Mapping[str, int] | None = None,
        manner: Manner | None = None,
    ) -> Feed:
        """Makes one feed. Equal arguments give bit-identical values. `manner` replaces `spread`, with further options.

        Raises:
            OnnxsmithError: `input/seed`.
        """
        refuse_negative(seed)
        chosen, manner = chosen or {}, manner or Manner(spread)
        values: Values = {}
        known = self.known(sizes)
        parts = [f"{name}={size}" for name, size in sizes.items()] + [f"{name}:={v}" for name, v in chosen.items()]
        label = ", ".join([*parts, f"seed {seed}", str(manner)])
        for port in self.signature.required():
            if port.kind == "optional" and port.name not in self.present:
                continue
            keys = [port.name, *([label] if port.name in self.counts else [])]  # few counts: each feed draws others
            draw = Draw(np.random.default_rng([seed, *(zlib.crc32(key.encode()) for key in keys)]))
            if port.kind == "map" and port.keys and not port.many:
                from onnxsmith.verification.inputs import string_inputs

                values[port.name] = string_inputs.drawn_map(port, self.keys.get(port.name, ()), draw.rng)
                continue
            shape = shape_of(port, sizes)
            is_list = port.kind == "sequence" or port.many
            many = 2 if is_list else 1
            choice = chosen.get(port.name)
            made = [self._made(port, shape, draw, manner, choice, known) for _ in range(many)]
            values[port.name] = made if is_list else made[0]
        if manner.rows:
            self.table.put(values, manner.rows, manner.part, seed)
        return Feed(label, dict(sizes), values, at_edges=manner.spread == EDGES, meant=manner.rows == SPLITS)

    def _made(
        self,
        port: Port,
        shape: tuple[int, ...],
        draw: Draw,
        manner: Manner,
        choice: int | None,
        known: Mapping[str, int],
    ) -> Array:
        if port.dtype == "string":
            from onnxsmith.verification.inputs.string_inputs import Texts

            return self.texts.get(port.name, Texts()).drawn(draw.rng, shape)
        kind = ir.DataType[port.dtype.upper()]
        dtype = np.dtype(kind.numpy())
        if choice is not None:
            return np.full(shape, choice, dtype)
        if manner.fill is not None and (kind.is_integer() or port.dtype == "bool"):
            low = self.allowed[port.name].low if port.name in self.allowed else 0
            return np.full(shape, max(manner.fill, low) if low > 0 else manner.fill, dtype)
        structured = self._structured(port, shape, draw, manner, known)
        if structured is not None:
            return np.asarray(structured).astype(dtype)
        if port.dtype == "bool":
            return _not_all_zero(np.asarray(draw.rng.integers(0, 2, shape), bool))
        if kind.is_integer():
            return self._integers(port, shape, draw, manner, known).astype(dtype)
        if dtype.kind == "c":
            return np.asarray(draw.rng.standard_normal(shape) + 1j * draw.rng.standard_normal(shape)).astype(dtype)
        if dtype.name == "float8_e8m0fnu":  # powers of two: no sign, no zero
            return np.asarray(np.exp2(draw.rng.integers(-3, 4, shape))).astype(dtype)
        return _not_all_zero(np.asarray(self._floats(port, shape, draw.rng, manner, known)).astype(dtype))

    def _structured(
        self, port: Port, shape: tuple[int, ...], draw: Draw, manner: Manner, known: Mapping[str, int]
    ) -> Array | None:
        """Makes values for the input's role, or with the structure of its example. Returns None if the input has
        neither."""
        role, limits = self.roles.get(port.name), self.allowed.get(port.name)
        upside_down = role is not None and role.kind == "sides" and manner.spread == EDGES
        if role is not None and not upside_down:
            found = made(role, shape, known, draw)
            if found is not None and role.kind == "sides" and limits is not None and limits.certain:
                low, high = limits.within(known)
                return np.asarray(np.rint(low + found * (high - low)))  # corners that are indices: scaled and rounded
            if found is not None:
                return found
        example = self.examples.get(port.name)
        if example is None or (limits is not None and limits.choices):
            return None
        found = like_example(example, shape, draw)
        if found is None or limits is None or not limits.certain or not found.size:
            return found
        low, high = limits.within(known)
        return found if low <= found.min() and found.max() <= high else None

    def _integers(
        self, port: Port, shape: tuple[int, ...], draw: Draw, manner: Manner, known: Mapping[str, int]
    ) -> Array:
        limits = self.allowed.get(port.name, input_ranges.Allowed(0, 4))
        if limits.choices:
            return _pick(draw.rng, np.array(limits.choices + (limits.beside if shape else ())), shape)
        low, high = limits.within(known)
        example = self.examples.get(port.name)
        certain = limits.certain and high - low < _BOUNDLESS
        if manner.spread == EDGES and not certain and example is None:
            return boundary_values.integers(shape, draw.rng, np.dtype(ir.DataType[port.dtype.upper()].numpy()))
        if example is not None and example.size and not certain:
            low, high = int(example.min()), int(example.max())
        width, signed = ir.DataType[port.dtype.upper()].bitwidth, ir.DataType[port.dtype.upper()].is_signed()
        low = max(low, -(2 ** (width - 1)) if signed else 0)
        high = min(high, 2 ** (width - 1 if signed else width) - 1, 2**31)
        if manner.most is not None:
            high = max(min(high, manner.most), low)
        drawn = np.asarray(draw.rng.integers(min(low, high), high + 1, shape))
        marks = [mark for mark in limits.marks if low <= mark <= high]
        if marks:
            drawn = np.where(draw.rng.random(shape) < _MARKED, _pick(draw.rng, np.array(marks), shape), drawn)
        return _not_all_zero(drawn, high)

    def _floats(self, port: Port, shape: tuple[int, ...], rng: Any, manner: Manner, known: Mapping[str, int]) -> Array:
        drawn = self._numbers(port, shape, rng, manner, known)
        lost = port.name in self.lacking and manner.spread == EDGES
        return np.where(rng.random(shape) < _LACKING, np.nan, drawn) if lost else drawn

    def _numbers(self, port: Port, shape: tuple[int, ...], rng: Any, manner: Manner, known: Mapping[str, int]) -> Array:
        spread = manner.spread
        allowed = self.allowed.get(port.name)
        if allowed is not None and allowed.certain:  # floats that a Cast turns into indices
            low, high = allowed.within(known)
            return np.asarray(rng.uniform(low, min(high, manner.most or high) + 0.9, shape))
        example = self.examples.get(port.name)
        if spread == EDGES:
            drawn = boundary_values.floats(shape, rng, self.thresholds)
            held = example[np.isfinite(example)] if example is not None else np.zeros(0)
            if not held.size or held.min() < 0 < held.max():
                return drawn
            sign = -1 if held.min() < 0 else 1  # numbers of one sign are sizes, shares or distances: keep their range
            return np.asarray(np.clip(sign * np.abs(drawn), held.min(), held.max()))
        if example is not None and example.size > 1 and (spread == "normal" or spread in SCALES):
            found = spread_like(example, shape, rng)
            if found is not None:
                return self._near_compared(port, found * _rescaled(example, spread), example, rng)
        if spread == "normal" or spread in SCALES:
            drawn = np.asarray(rng.standard_normal(shape)) * SCALES.get(spread, 1.0)
            limits = self.compared.get(port.name)
            return boundary_values.near_limits(drawn, limits, rng) if limits else drawn
        return np.asarray(rng.random(shape)) + (1 if spread == "positive" else 0)

    def _near_compared(self, port: Port, drawn: Array, example: Array, rng: Any) -> Array:
        """Moves numbers to the numbers with which the graph compares the input. If all numbers of the example have the
        same sign, the result stays in the example's range, because a module may refuse other numbers."""
        low, high = example.min(), example.max()
        mixed = low < 0 < high
        limits = [limit for limit in self.compared.get(port.name, ()) if mixed or low <= limit <= high]
        if not limits:
            return drawn
        moved = boundary_values.near_limits(drawn, limits, rng)
        return moved if mixed else np.clip(moved, low, high)


def _keys(value: ir.Value, inside: Owners) -> string_inputs.Keys:
    from onnxsmith.verification.inputs import string_inputs

    return string_inputs.map_keys(value, inside)


def _texts(value: ir.Value, inside: Owners) -> Texts:
    from onnxsmith.verification.inputs.string_inputs import texts

    return texts(value, inside)


def _lacks_rank(port: Port) -> bool:
    return port.shape is None and port.kind != "map" and not port.default


def _limits(value: ir.Value, inside: Owners) -> input_ranges.Allowed | None:
    """Returns the graph's limits for integers, and for floats that a Cast turns into indices."""
    if value.dtype is None or value.dtype == ir.DataType.BOOL:
        return None
    if value.dtype.is_integer():
        return input_ranges.allowed(value, inside)
    return input_ranges.indexing(value, inside) if value.dtype.is_floating_point() else None


def _rescaled(example: Array, spread: str) -> float:
    """Returns the factor of a spread for values like an example. If all numbers have the same sign (an image, a
    probability), the factor is 1, because a module may refuse other numbers."""
    if spread not in SCALES or not example.min() < 0 < example.max():
        return 1.0
    return min(SCALES[spread], _FOLLOWED)


def _not_all_zero(array: Array, high: int = 1) -> Array:
    if array.size and high > 0 and not array.any():
        array[(0,) * array.ndim] = 1
    return array


def _pick(rng: np.random.Generator, pool: Array, shape: tuple[int, ...]) -> Array:
    """Returns random elements of `pool`; an array even for the shape (), for which numpy's `choice` returns a
    scalar."""
    return pool[rng.integers(0, len(pool), shape)] if shape else pool[rng.integers(0, len(pool), 1)].reshape(())
