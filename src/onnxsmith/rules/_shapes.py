"""What rules that move data around ask of shapes: what a Reshape makes of its input, and how to say a shape again."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules._patterns import integer

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that keep the elements and their order."""

Dims = tuple[facts.Element | None, ...]


def reshaped(node: ir.Node) -> Dims | None:
    """The dimensions of the result of one of `RESHAPES`, from its shape and, where that leaves some open, from the
    target; None without a rank."""
    inferred = facts.dims(node.outputs[0])
    target = facts.integers(node.inputs[1]) if node.op_type == "Reshape" and len(node.inputs) > 1 else None
    if target is None or (inferred is not None and len(inferred) != len(target)):
        return inferred
    data, copies = facts.dims(node.inputs[0]) or (), integer(node, "allowzero", 0) == 0
    said: list[facts.Element | None] = []
    for index, element in enumerate(target):
        if element == 0 and copies:
            said.append(data[index] if index < len(data) else None)
        else:
            said.append(None if element == -1 else element)
    if inferred is None:
        return tuple(said)
    return tuple(one if isinstance(one, int) or two is None else two for one, two in zip(inferred, said, strict=True))


def target(wanted: Sequence[facts.Element | None], data: Sequence[facts.Element | None]) -> list[int] | None:
    """A constant target of a Reshape (without `allowzero`) that gives `wanted` from data of these dimensions, which has
    as many elements: 0 where it copies, -1 for at most one that has no number; None where that cannot say it."""
    written: list[int] = []
    for index, dim in enumerate(wanted):
        if isinstance(dim, int) and dim > 0:
            written.append(dim)
        elif dim is not None and index < len(data) and dim == data[index]:
            written.append(0)
        elif dim == 0:
            return None
        else:
            written.append(-1)
    return written if written.count(-1) <= 1 else None


def perm(node: ir.Node) -> list[int] | None:
    """The permutation of a Transpose; None where it is not known."""
    given = node.attributes.get("perm")
    if given is not None:
        return None if given.is_ref() else list(given.as_ints())
    dims = facts.dims(node.inputs[0])
    return None if dims is None else list(range(len(dims)))[::-1]
