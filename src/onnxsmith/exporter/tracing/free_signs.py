"""Finds the outputs of a captured program whose vectors have an arbitrary sign: eigenvectors, singular vectors and the
factors of QR, also behind operators that turn with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from onnxsmith.verification.free_values import Freedom, Part

Labels = tuple[str, ...]
"""Names each axis: `batch0`, … and `vector` are axes along which the sign changes; empty for an axis along a vector."""


@dataclass(frozen=True)
class _Turning:
    """A tensor whose vectors turn with those of `source`. `picked` are the parts of the vectors that it holds."""

    source: Node
    labels: Labels
    picked: tuple[Any, ...] = ()


def free_signs(exported: ExportedProgram) -> tuple[Freedom, ...]:
    """Returns the freedoms of the outputs. The name of each part is the number of the output. Outputs of one
    decomposition turn together; if they hold different vectors of it, they are left out."""
    found: dict[str, _Turning] = {}
    for node in exported.graph.nodes:
        if node.op == "call_function":
            turning = _turning(node, found)
            if turning is not None:
                found[node.name] = turning
    outputs: dict[Node, list[tuple[int, _Turning]]] = {}
    for number, name in enumerate(exported.graph_signature.user_outputs):
        held = found.get(name) if isinstance(name, str) else None
        if held is not None:
            outputs.setdefault(held.source, []).append((number, held))
    return tuple(freedom for held in outputs.values() for freedom in _together(held))


def _together(held: list[tuple[int, _Turning]]) -> Iterator[Freedom]:
    signs = [tuple(label for label in one.labels if label) for _, one in held]
    if len({one.picked for _, one in held}) > 1 or len(set(signs)) > 1:
        return
    if any(label and not label.startswith("batch") and label != "vector" for one in signs for label in one):
        return
    parts = []
    for number, one in held:
        rank = len(one.labels)
        along = tuple(axis - rank for axis, label in enumerate(one.labels) if not label)
        if not along:
            return
        parts.append(Part(str(number), along))
    yield Freedom("sign", tuple(parts))


def _turning(node: Node, found: Mapping[str, _Turning]) -> _Turning | None:
    """Returns how the result of a node turns; None if it does not, or if that is not known."""
    name = _name(node)
    if name == "getitem":
        return _of_decomposition(node)
    rule = _RULES.get(name)
    turned = [one for one in node.all_input_nodes if one.name in found]
    if rule is None or len(turned) != 1 or len([one for one in _tensors(node) if one is turned[0]]) != 1:
        return None
    held = found[turned[0].name]
    made = rule(node, turned[0], held)
    rank = _rank(node)
    return made if made is not None and rank is not None and len(made.labels) == rank else None


def _of_decomposition(node: Node) -> _Turning | None:
    source, index = node.args
    if not isinstance(source, Node) or not isinstance(index, int):
        return None
    kind, rank = _name(source).lstrip("_"), _rank(node)
    if rank is None or rank < 2:
        return None
    batch = tuple(f"batch{axis}" for axis in range(rank - 2))
    columns, rows = (*batch, "", "vector"), (*batch, "vector", "")
    if kind == "linalg_eigh":
        return _Turning(source, columns) if index == 1 else None
    if kind == "linalg_svd" and not _is_full(source):
        return _Turning(source, columns if index == 0 else rows) if index in (0, 2) else None
    if kind == "svd" and _argument(source, 1, "some", default=True):
        return _Turning(source, columns) if index in (0, 2) else None
    if kind == "linalg_qr" and _argument(source, 1, "mode", default="reduced") == "reduced":
        return _Turning(source, columns if index == 0 else rows)
    return None


def _is_full(source: Node) -> bool:
    """Whether a singular value decomposition has further vectors, which are some basis of a space."""
    rows, columns = source.args[0].meta["val"].shape[-2:]  # type: ignore[union-attr]
    return bool(_argument(source, 1, "full_matrices", default=_name(source) == "linalg_svd")) and str(rows) != str(
        columns
    )


def _argument(node: Node, place: int, name: str, *, default: Any) -> Any:
    return node.kwargs.get(name, node.args[place] if len(node.args) > place else default)


def _tensors(node: Node) -> list[Node]:
    return [one for one in (*node.args, *node.kwargs.values()) if isinstance(one, Node)]


def _rank(node: Node) -> int | None:
    value = node.meta.get("val")
    return value.dim() if isinstance(value, torch.Tensor) else None


def _name(node: Node) -> str:
    """Returns the name of an operator without its overload: `mul`, `_linalg_eigh`."""
    target: Any = node.target
    return str(getattr(getattr(target, "overloadpacket", target), "__name__", target))


# Each rule gets the node, the operand that turns, and how it turns.

_Rule = Callable[[Node, Node, _Turning], "_Turning | None"]


def _same(node: Node, _: Node, held: _Turning) -> _Turning | None:
    return held


def _scaled(node: Node, operand: Node, held: _Turning) -> _Turning | None:
    """A product or quotient turns with its operand if it has the operand's shape, apart from axes before it."""
    if _name(node) == "div" and node.args[0] is not operand:
        return None
    before, after = operand.meta["val"].shape, node.meta["val"].shape
    extra = len(after) - len(before)
    same = all(str(a) == str(b) for a, b in zip(before, after[extra:], strict=True))
    return replace(held, labels=("",) * extra + held.labels) if same else None


def _permuted(node: Node, _: Node, held: _Turning) -> _Turning | None:
    order: Any = _argument(node, 1, "dims", default=())
    return replace(held, labels=tuple(held.labels[axis] for axis in order))


def _swapped(node: Node, _: Node, held: _Turning) -> _Turning | None:
    name = _name(node)
    first, second = (-2, -1) if name in ("mT", "t", "numpy_T", "adjoint") else (node.args[1], node.args[2])
    labels = list(held.labels)
    if len(labels) < 2:
        return held
    labels[first], labels[second] = labels[second], labels[first]  # type: ignore[index]
    return replace(held, labels=tuple(labels))


def _picked(node: Node, _: Node, held: _Turning) -> _Turning | None:
    """Takes a part along an axis; a part of the vectors is remembered."""
    axis = int(_argument(node, 1, "dim", default=0)) % len(held.labels)
    rest = str(tuple(node.args[2:])) + str(dict(node.kwargs))
    label = held.labels[axis]
    picked = (*held.picked, (label, _name(node), rest)) if label else held.picked
    labels = list(held.labels)
    if _name(node) == "select":
        del labels[axis]
    return replace(held, labels=tuple(labels), picked=picked)


def _with_axis(node: Node, _: Node, held: _Turning) -> _Turning | None:
    labels = list(held.labels)
    axis: Any = _argument(node, 1, "dim", default=0)
    labels.insert(axis if axis >= 0 else axis + len(labels) + 1, "")
    return replace(held, labels=tuple(labels))


def _product(node: Node, operand: Node, held: _Turning) -> _Turning | None:
    """A matrix product turns with an operand whose vectors it sums over."""
    rank = _rank(node)
    if rank is None or rank < 2 or len(held.labels) < 2:
        return None
    *batch, row, column = held.labels
    if _name(node) == "linear":
        row, column = column, row
        if node.args[1] is not operand or len(node.args) > 2:
            return None
    is_second = node.args[1] is operand
    if (row if is_second else column) != "":
        return None
    kept = ("", column) if is_second else (row, "")
    lead = ("",) * (rank - 2 - len(batch)) + tuple(batch)
    shapes = operand.meta["val"].shape[:-2], node.meta["val"].shape[: rank - 2]
    same = all(str(a) == str(b) for a, b in zip(shapes[0], shapes[1][rank - 2 - len(batch) :], strict=True))
    return replace(held, labels=lead + kept) if same else None


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(("neg", "clone", "contiguous", "alias", "detach", "to", "_to_copy", "type_as"), _same),
    **dict.fromkeys(("mul", "div"), _scaled),
    **dict.fromkeys(("transpose", "swapaxes", "mT", "t", "numpy_T", "adjoint"), _swapped),
    **dict.fromkeys(("slice", "select", "narrow"), _picked),
    **dict.fromkeys(("matmul", "mm", "bmm", "linear"), _product),
    "permute": _permuted,
    "unsqueeze": _with_axis,
}  # fmt: skip
