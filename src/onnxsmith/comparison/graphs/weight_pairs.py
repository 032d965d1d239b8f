"""Compares the weights of pairs of nodes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.clock import advance
from onnxsmith.base.report.parts.model_changes import WeightChange
from onnxsmith.comparison.graphs import array_differences
from onnxsmith.comparison.graphs.array_differences import equal, figures
from onnxsmith.comparison.graphs.constant_recognition import Constants
from onnxsmith.comparison.graphs.interning import Level
from onnxsmith.graph.files.external import forget_pages, is_same_place
from onnxsmith.graph.reading.exact_text import dtype_name, elements
from onnxsmith.graph.structure import provenance, sparse, tensor_keys
from onnxsmith.verification.metrics.base import Array, is_numeric, widen

_SHOWN = 8
"""How many elements and readers of a changed weight the report names. A choice: one line."""
_WHOLE = 3 * 4096
"""Bytes up to which equal numbers mean equal tensors (`constant_recognition.py`)."""
_WEIGHT = 16
"""Least elements of a removed node's constant that is compared with constants of added nodes. A choice: smaller ones
are equal by chance."""


class WeightPairs:
    """The pairs of weights that paired nodes read at the same place. Each pair is compared once."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants
        self._readers: dict[tuple[ir.Value, ir.Value], tuple[str, list[str]]] = {}
        self._own: tuple[dict[ir.Value, tuple[str, list[str]]], dict[ir.Value, tuple[str, list[str]]]] = {}, {}

    def add(self, path: str, a: ir.Value, b: ir.Value, reader: str) -> None:
        """Adds a pair that the node `reader` reads in both models."""
        self._readers.setdefault((a, b), (path, []))[1].append(reader)

    def add_own(self, side: int, path: str, value: ir.Value, reader: str) -> None:
        """Adds a constant that a node without a partner reads."""
        self._own[side].setdefault(value, (path, []))[1].append(reader)

    def pairs(self) -> list[tuple[ir.Value, ir.Value]]:
        """Returns the pairs of weights."""
        return list(self._readers)

    def elements(self) -> int:
        """Returns the number of elements of the first side's weights."""
        tensors = [self._constants.tensor(a) for a, _ in self._readers]
        return sum(tensor.size for tensor in tensors if tensor is not None)

    def changes(self) -> Iterator[WeightChange]:
        """Yields the weights that differ."""
        for done, ((a, b), (path, readers)) in enumerate(self._readers.items()):
            advance("weights", done, len(self._readers))
            found = self._compared(a, b, path, tuple(dict.fromkeys(readers))[:_SHOWN])
            forget_pages(self._constants.tensor(a))
            forget_pages(self._constants.tensor(b))
            if found is not None:
                yield found
        yield from self._elsewhere()

    def _compared(self, a: ir.Value, b: ir.Value, path: str, readers: tuple[str, ...]) -> WeightChange | None:
        pair = _Pair(a, b, self._constants.tensor(a), self._constants.tensor(b), path, readers)
        if pair.one is None or pair.other is None:
            return pair.change("unreadable")
        number = self._constants.number
        if pair.one.nbytes <= _WHOLE and number(a, Level.EXACT) == number(b, Level.EXACT):
            return pair.stored_otherwise()
        if ir.DataType.STRING in (pair.one.dtype, pair.other.dtype):
            return _texts(pair, pair.one, pair.other)
        try:
            return _numbers(pair, pair.one, pair.other)
        except (OSError, ValueError):
            return pair.change("unreadable")

    def _elsewhere(self) -> Iterator[WeightChange]:
        """Yields weights of removed nodes that added nodes read in another form."""
        paired = {value for pair in self._readers for value in pair}
        groups: dict[tuple[object, ...], list[ir.Value]] = defaultdict(list)
        for value in self._own[1]:
            if value not in paired and (key := self._fingerprint(value)) is not None:
                groups[key].append(value)
        for value, (path, readers) in self._own[0].items():
            key = self._fingerprint(value) if value not in paired and groups else None
            for other in groups.get(key, ()) if key is not None else ():
                first, second = self._constants.tensor(value), self._constants.tensor(other)
                if first is None or second is None:
                    continue
                # An equal weight with another reader is not stored differently.
                if tuple(first.shape) == tuple(second.shape) and equal(first.numpy(), second.numpy()):
                    break
                found = in_form(first.numpy(), second.numpy())
                if found is not None and found[2]:
                    names = tuple(dict.fromkeys((*readers, *self._own[1][other][1])))[:_SHOWN]
                    yield _Pair(value, other, first, second, path, names).change("form", form=found[0])
                    break

    def _fingerprint(self, value: ir.Value) -> tuple[object, ...] | None:
        """Returns a key that is equal for weights with the same elements in any order."""
        tensor = self._constants.tensor(value)
        if tensor is None or tensor.size < _WEIGHT or tensor.dtype == ir.DataType.STRING:
            return None
        array = np.asarray(tensor.numpy())
        raw = array.reshape(-1) if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)
        kind = raw.view(f"u{min(raw.dtype.itemsize, 8)}")
        return tensor.dtype, tensor.size, int(np.sum(kind, dtype=np.uint64))


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two weights, with their tensors."""

    a: ir.Value
    b: ir.Value
    one: ir.TensorProtocol | None
    other: ir.TensorProtocol | None
    path: str
    readers: tuple[str, ...]

    def storage(self) -> str:
        """Returns how the place of storage differs, such as `initializer → Constant`; "" if it does not."""
        old, new = _place(self.a, self.one), _place(self.b, self.other)
        return f"{old} → {new}" if old != new else ""

    def stored_otherwise(self) -> WeightChange | None:
        """Returns the row for equal weights that are stored differently; None if they are not."""
        return self.change("form", form=self.storage()) if self.storage() else None

    def change(
        self, kind: str, *, form: str = "", arrays: tuple[Array, Array] | None = None, changed: float | None = None
    ) -> WeightChange:
        """Returns the row for two weights that differ; `arrays` are compared in numbers."""
        found = figures(*arrays) if arrays is not None and arrays[0].size else None
        if found is not None and arrays is not None:
            changed = found.changed / arrays[0].size
        one, other = self.one, self.other
        shown = kind not in ("form", "rounding") and all(
            tensor is not None and tensor.size <= _SHOWN for tensor in (one, other)
        )
        return WeightChange(
            path=self.path,
            name=self.a.name or "",
            new_name=self.b.name or "",
            kind=kind,
            dtype=dtype_name(one.dtype if one is not None else self.a.dtype),
            new_dtype=dtype_name(other.dtype if other is not None else self.b.dtype),
            shape=_shape(self.a, one),
            new_shape=_shape(self.b, other),
            readers=self.readers,
            form=form,
            old=_values(one) if shown else "",
            new=_values(other) if shown else "",
            max_abs=found.max_abs if found is not None else None,
            max_rel=found.max_rel if found is not None else None,
            changed=changed,
            cosine_distance=found.cosine_distance if found is not None else None,
            aliases=tuple(dict.fromkeys((*provenance.folded_from(self.a), *provenance.folded_from(self.b)))),
        )


def _numbers(pair: _Pair, one: ir.TensorProtocol, other: ir.TensorProtocol) -> WeightChange | None:
    is_same = one is other or is_same_place(one, other)
    first, second = np.asarray(one.numpy()), np.asarray(other.numpy())
    same_shape, same_dtype = first.shape == second.shape, one.dtype == other.dtype
    if same_shape and same_dtype and (is_same or equal(first, second)):
        return pair.stored_otherwise()
    kind = "values" if same_shape and same_dtype else "type"
    if same_shape and same_dtype and array_differences.within_rounding(first, second):
        return pair.change("rounding", form=pair.storage(), arrays=(first, second))
    found = in_form(first, second)
    if found is not None:
        form = ", ".join(filter(None, (found[0], pair.storage())))
        if found[2]:  # for a mere cast, the figures show its rounding
            return pair.change("form", form=form, arrays=(first, second) if same_shape and not same_dtype else None)
        if array_differences.within_rounding(found[1], second):
            return pair.change("rounding", form=form, arrays=(found[1], second))
        if kind == "type":
            return pair.change(kind, form=form, arrays=(found[1], second))
    return pair.change(kind, form=pair.storage(), arrays=(first, second) if same_shape else None)


def _texts(pair: _Pair, one: ir.TensorProtocol, other: ir.TensorProtocol) -> WeightChange | None:
    if one.dtype != other.dtype or tuple(one.shape) != tuple(other.shape):
        return pair.change("type", form=pair.storage())
    first, second = tensor_keys.strings(one), tensor_keys.strings(other)
    changed = sum(x != y for x, y in zip(first, second, strict=True))
    if not changed:
        return pair.stored_otherwise()
    return pair.change("values", form=pair.storage(), changed=changed / len(first))


def _place(value: ir.Value, tensor: ir.TensorProtocol | None) -> str:
    kind = "initializer" if value.is_initializer() else "Constant"
    return f"sparse {kind}" if sparse.message_of(tensor) is not None else kind


def _values(tensor: ir.TensorProtocol | None) -> str:
    return f"[{', '.join(elements(tensor, _SHOWN))}]" if tensor is not None else ""


def _shape(value: ir.Value, tensor: ir.TensorProtocol | None) -> tuple[int, ...]:
    shape = tensor.shape if tensor is not None else value.shape
    return tuple(dim for dim in shape if isinstance(dim, int)) if shape is not None else ()


def own(value: ir.Value, tensor: ir.TensorProtocol | None, kind: str, path: str) -> WeightChange:
    """Returns the row for a weight that only one side has and no node reads."""
    dtype, shape = dtype_name(tensor.dtype if tensor is not None else value.dtype), _shape(value, tensor)
    is_old = kind == "removed"
    return WeightChange(
        path, value.name if is_old and value.name else "", value.name if not is_old and value.name else "", kind,
        dtype if is_old else "", "" if is_old else dtype, shape if is_old else (), () if is_old else shape, (),
    )  # fmt: skip


# Recognises a weight that is stored in another form: transposed, reshaped, cast.

_MOST_AXES = 5
"""How many axes an array may have for every permutation to be tried. A choice: 120 permutations, of which few fit."""
_SAMPLE = 512
"""How many elements a permutation is tried on before all are compared. A choice."""
_ALIKE = 0.9
"""Least cosine of samples at which a transposed weight counts as the same weight, changed. A choice."""


def in_form(a: Array, b: Array) -> tuple[str, Array, bool] | None:
    """Returns the form in which `b` stores the weight `a`, `a` in that form, and whether the two are then equal. None
    if the two have nothing in common, or `b` has no other form."""
    if a.size != b.size or not a.size or not is_numeric(a) or not is_numeric(b):
        return None
    narrow = a if a.dtype == b.dtype else cast(a, b)
    kind = "" if a.dtype == b.dtype else "cast"
    if a.shape == b.shape and kind and array_differences.equal(narrow, b):
        return kind, narrow, True
    near: tuple[float, str, Array] | None = None
    for order in _orders(a, b):
        turned = narrow.transpose(order)
        cosine = _cosine(turned, b)
        if near is None or cosine > near[0]:
            near = (cosine, f"transposed {order}{', cast' if kind else ''}", turned)
        if cosine > 1 - 1e-9 and array_differences.equal(turned, b):
            return near[1] if near[2] is turned else f"transposed {order}", turned, True
        if cosine > 1 - 1e-9 and not kind and array_differences.within_rounding(turned, b):
            return f"transposed {order}", turned, False
    if a.shape != b.shape:
        flat = narrow.reshape(b.shape)
        if array_differences.equal(flat, b):
            return f"reshaped{', cast' if kind else ''}", flat, True
        if near is not None and near[0] > _ALIKE:
            return near[1], near[2], False
        if _cosine(flat, b) > _ALIKE:
            return f"reshaped{', cast' if kind else ''}", flat, False
    return (kind, narrow, False) if kind and a.shape == b.shape else None


def cast(a: Array, b: Array) -> Array:
    """Returns `a` in the dtype of `b`."""
    with np.errstate(all="ignore"):
        if a.dtype.kind == "c" or b.dtype.kind == "c":
            return a.astype(b.dtype) if b.dtype.kind == "c" else a.real.astype(b.dtype)
        wide = a if a.dtype.kind in "fiub" else a.astype(np.float32)
        return wide.astype(b.dtype)


def _orders(a: Array, b: Array) -> Iterator[tuple[int, ...]]:
    """Yields the permutations of the axes that turn the shape of `a` into that of `b`."""
    if a.ndim != b.ndim or not 2 <= a.ndim <= _MOST_AXES:
        return
    for order in itertools.permutations(range(a.ndim)):
        kept = [axis for axis in order if a.shape[axis] > 1]
        if kept != sorted(kept) and tuple(a.shape[axis] for axis in order) == b.shape:
            yield order


def _cosine(a: Array, b: Array) -> float:
    """Returns the cosine of the same few hundred elements of both arrays."""
    rng = np.random.default_rng(0)
    places = tuple(rng.integers(0, size, _SAMPLE) for size in a.shape) if a.size > _SAMPLE else ...
    x, y = (np.nan_to_num(widen(np.asarray(one[places])).reshape(-1), posinf=1.0, neginf=-1.0) for one in (a, b))
    peak = max(float(np.max(np.abs(x))), float(np.max(np.abs(y))), 1e-300)
    x, y = x / peak, y / peak
    norms = float(np.sqrt(np.sum(x**2)) * np.sqrt(np.sum(y**2)))
    return float(np.sum(x * y)) / norms if norms else float(np.array_equal(x, y))
