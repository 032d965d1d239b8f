"""Shows the differences of two models: pairs of nodes, nodes without a partner, and the changes in each pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import NodeChange, WeightChange
from onnxsmith.comparison.graphs.array_differences import equal, figures
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.quantizer_pairing import dequantised, is_quantizer
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer.model_scene import Viewed
from onnxsmith.viewer.numbering import value_type
from onnxsmith.viewer.scene import Difference

_EQUAL_KINDS = ("form", "rounding")
"""Lists the kinds of changes that do not count as a different weight: another storage form, or another rounding."""
_READ = 16 * 2**20
"""Limits the bytes of integers of a weight that are turned into floats. A choice: a tenth of a second of work."""
_EQUAL, _ATTRIBUTES, _WEIGHTS, _BOTH, _OPERATOR, _WIRING = range(6)


def difference(models: Sequence[ir.Model], found: Found, shown: Sequence[Viewed]) -> Difference:
    """Makes the difference of two scenes from the paired nodes of `models`. A scene may show a copy of its model with
    the nodes in the same order."""
    numbers = [_numbers(model, viewed) for model, viewed in zip(models, shown, strict=True)]
    copies = [
        dict(zip(walk.all_nodes(m), walk.all_nodes(v.source), strict=True)) for m, v in zip(models, shown, strict=True)
    ]
    weights = _Weights(list(found.weights.changes()))
    pairs: list[tuple[int, int, int]] = []
    changes: dict[int, list[str]] = {}
    rounded: list[int] = []
    for one, other in found.pairs.nodes.items():
        if one not in numbers[0] or other not in numbers[1]:
            continue
        change = found.changes.get(one)
        changed = list(weights.of(one, other))
        types = list(_types(copies[0][one], copies[1][other]))
        read, is_weight = _quantised(copies[0][one], copies[1][other])
        state = _state(change, [row for row in changed if row.kind not in _EQUAL_KINDS], types)
        if read and state in (_EQUAL, _WIRING, _ATTRIBUTES):
            state = max(state, _WIRING) if not is_weight else _BOTH if state == _ATTRIBUTES else _WEIGHTS
        lines = [*(_lines(change) if change is not None else ()), *map(_weight, changed), *types, *read]
        if state == _EQUAL and any(row.kind == "rounding" for row in changed):
            rounded.append(len(pairs))
        if lines:
            changes[len(pairs)] = lines
        pairs.append((numbers[0][one], numbers[1][other], state))
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    removed, added = (
        sorted(number for number in own.values() if number not in done)
        for own, done in zip(numbers, paired, strict=True)
    )
    regions = [
        ([numbers[0][node] for node in region.named(0)], [numbers[1][node] for node in region.named(1)])
        for region in found.same
    ]
    of_weights = tuple(
        [own[node] for node in nodes if node in own] for own, nodes in zip(numbers, found.of_weights, strict=True)
    )
    return Difference(pairs, removed, added, changes, regions, rounded, (of_weights[0], of_weights[1]))


def _numbers(model: ir.Model, shown: Viewed) -> dict[ir.Node, int]:
    """Returns the numbers of a model's nodes in the scene of its copy."""
    copies = zip(walk.all_nodes(model), walk.all_nodes(shown.source), strict=True)
    return {node: shown.nodes[copy] for node, copy in copies if copy in shown.nodes}


def _state(change: NodeChange | None, weights: Sequence[WeightChange], types: Sequence[str]) -> int:
    if change is not None and change.op != change.new_op:
        return _OPERATOR
    if change is not None and change.attributes:
        return _BOTH if weights else _ATTRIBUTES
    if weights:
        return _WEIGHTS
    return _WIRING if types or change is not None else _EQUAL


def _lines(change: NodeChange) -> Iterator[str]:
    if change.op != change.new_op:
        yield f"operator: {change.op} → {change.new_op}"
    for one in change.attributes:
        yield f"{one.name}: {one.old} → {one.new}"
    for wire in change.wiring:
        yield f"{wire.slot}: {wire.old} → {wire.new}"


def _weight(change: WeightChange) -> str:
    name = change.name if change.name == change.new_name else f"{change.name} → {change.new_name}"
    what = "equal up to rounding" if change.kind == "rounding" else change.kind
    said = [f"weight {name}: {change.form or what}"]
    if change.form and change.kind == "rounding":
        said.append(what)
    if (change.dtype, change.shape) != (change.new_dtype, change.new_shape):
        said.append(f"{change.dtype}{list(change.shape)} → {change.new_dtype}{list(change.new_shape)}")
    if change.changed is not None:
        said.append(f"{change.changed:.2%} of the elements differ")
    if change.max_abs is not None:
        said.append(f"by at most {change.max_abs:.3g}")
    if change.max_rel is not None:
        said.append(f"relative {change.max_rel:.3g}")
    if change.cosine_distance is not None:
        said.append(f"cosine distance {change.cosine_distance:.2g}")
    if change.old or change.new:
        said.append(f"{change.old} → {change.new}")
    return ", ".join(said)


def _quantised(one: ir.Node, other: ir.Node) -> tuple[list[str], bool]:
    """Returns the operands that only one of two nodes reads through a DequantizeLinear, and whether a weight is among
    them. Leaves out weights whose integers give the same floats."""
    said: list[str] = []
    is_weight = False
    for place, (x, y) in enumerate(zip(one.inputs, other.inputs, strict=False)):
        makers = [_dequantizer(value) for value in (x, y)]
        maker = makers[0] or makers[1]
        if maker is None or all(makers) or x is None or y is None or maker.inputs[0] is None:
            continue
        integers, plain = maker.inputs[0], y if makers[0] is not None else x
        if plain.const_value is None or integers.const_value is None:
            said.append(_read(place, value_type(integers), makers[0] is not None))
            continue
        gap = _gap(plain.const_value, maker, integers.const_value.nbytes)
        if gap == 0:
            continue
        off = f", which changes the values by at most {gap:.3g}" if gap is not None else ""
        said.append(_read(place, value_type(integers), makers[0] is not None) + off)
        is_weight = True
    return said, is_weight


def _gap(stored: ir.TensorProtocol, maker: ir.Node, nbytes: int) -> float | None:
    """Returns the difference between stored floats and the floats of a DequantizeLinear of stored integers. Returns 0
    if they are equal, None if the difference is unknown."""
    try:
        floats = dequantised(maker) if nbytes <= _READ else None
        array = np.asarray(stored.numpy()) if floats is not None else None
    except (OSError, ValueError):  # the values cannot be read
        return None
    if floats is None or array is None or floats.shape != array.shape:
        return None
    made = floats.astype(array.dtype)
    return 0.0 if equal(array, made) else figures(array, made).max_abs


def _read(place: int, integers: str, by_old: bool) -> str:
    through = f"dequantised from {integers}"
    return f"input {place}: {through} → float" if by_old else f"input {place}: float → {through}"


def _dequantizer(value: ir.Value | None) -> ir.Node | None:
    made = value.producer() if value is not None else None
    return made if made is not None and is_quantizer(made) and made.op_type == "DequantizeLinear" else None


def _types(one: ir.Node, other: ir.Node) -> Iterator[str]:
    """Yields the results whose dtypes, ranks or fixed sizes differ. Names of dimensions do not count."""
    for place, (a, b) in enumerate(zip(one.outputs, other.outputs, strict=False)):
        if a.type is not None and b.type is not None and (a.type != b.type or _sizes_differ(a.shape, b.shape)):
            yield f"type of result {place}: {value_type(a)} → {value_type(b)}"


def _sizes_differ(one: ir.Shape | None, other: ir.Shape | None) -> bool:
    if one is None or other is None:
        return False
    if len(one) != len(other):
        return True
    return any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(one, other, strict=True))


class _Weights:
    """Groups changed weights by the nodes that read them."""

    def __init__(self, changes: Sequence[WeightChange]) -> None:
        self._operands: dict[tuple[str, str], list[WeightChange]] = {}
        self._readers: dict[str, list[WeightChange]] = {}
        for change in changes:
            if change.kind != "unreadable":
                self._operands.setdefault((change.name, change.new_name), []).append(change)
                for reader in change.readers:
                    self._readers.setdefault(reader, []).append(change)

    def of(self, one: ir.Node, other: ir.Node) -> Iterator[WeightChange]:
        """Yields the changes of the weights that a pair of nodes reads."""
        if not self._readers:
            return
        found: dict[int, WeightChange] = {}
        names: Mapping[str, None] = dict.fromkeys(value.name or "" for value in other.inputs if value is not None)
        for value in filter(None, one.inputs):
            for name in names:
                found.update((id(row), row) for row in self._operands.get((value.name or "", name), ()))
        found.update((id(row), row) for row in self._readers.get(node_label(one), ()))
        yield from found.values()
