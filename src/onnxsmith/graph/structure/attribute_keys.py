"""Makes keys of attributes, which are equal if the attributes are. There are three strengths:

- `exact`: equal bits. Used to merge nodes, and for parts that are written once.
- `value`: as `exact`, but a NaN equals every NaN. Used to compare models.
- `literals`: as `exact`, for all attributes of a node, if each is a number, a text or a list of them. Used by rules
  that replace several nodes by one.

A branch or a body equals only itself there. `of_body` compares bodies.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import tensor_keys, walk

_KINDS = ir.AttributeType
_LITERAL = {_KINDS.INT, _KINDS.FLOAT, _KINDS.STRING, _KINDS.INTS, _KINDS.FLOATS, _KINDS.STRINGS}


def exact(attribute: ir.Attr) -> Hashable:
    """Returns a key; equal keys mean equal types and bits, or references to the same attribute of a function. 0.0 and
    -0.0 differ."""
    if attribute.is_ref():
        return ("reference", attribute.type.name, attribute.ref_attr_name)
    return (attribute.type.name, _content(attribute))


def value(attribute: ir.Attr) -> Hashable:
    """Returns a key as `exact` does, but every NaN in a float or a list of floats equals every other NaN."""
    if attribute.is_ref() or attribute.type not in (_KINDS.FLOAT, _KINDS.FLOATS):
        return exact(attribute)
    numbers = attribute.value if attribute.type is _KINDS.FLOATS else [attribute.value]
    return (attribute.type.name, tuple("nan" if np.isnan(number) else _float(number) for number in numbers))


def of_holder(holder: ir.Node | ir.Function) -> Hashable:
    """Returns the exact keys of all attributes by name."""
    return frozenset((name, exact(one)) for name, one in holder.attributes.items())


def of_body(body: ir.Graph | ir.Function) -> Hashable:
    """Returns a key; equal keys mean equal operators, exact attributes, stored tensors and names of values. Docs,
    metadata and declared types do not count."""
    graph = body.graph if isinstance(body, ir.Function) else body
    stored = frozenset(
        (name, None if value.const_value is None else tensor_keys.with_strings(value.const_value))
        for name, value in graph.initializers.items()
    )
    nodes = tuple(
        (
            *(node.op_identifier(), _names(node.inputs), _names(node.outputs)),
            frozenset((name, exact(one)) for name, one in node.attributes.items() if not _is_body(one)),
            frozenset((name, of_body(inner)) for name, inner in walk.named_subgraphs(node)),
        )
        for node in graph
    )
    return _names(graph.inputs), stored, nodes, _names(graph.outputs)


def _names(values: Iterable[ir.Value | None]) -> Hashable:
    return tuple("" if value is None else value.name for value in values)


def _is_body(attribute: ir.Attr) -> bool:
    return walk.holds_subgraphs(attribute) and not attribute.is_ref()


def literals(node: ir.Node) -> Hashable | None:
    """Returns the keys of all attributes by name; None if one is a reference, a tensor, a type, a branch or a body."""
    is_literal = all(one.type in _LITERAL and not one.is_ref() for one in node.attributes.values())
    return of_holder(node) if is_literal else None


def _content(attribute: ir.Attr) -> Hashable:
    given = attribute.value
    match attribute.type:
        case _KINDS.FLOAT:
            return _float(given)
        case _KINDS.FLOATS:
            return tuple(map(_float, given))
        case _KINDS.TENSOR:
            return tensor_keys.with_strings(given)
        case _KINDS.TENSORS:
            return tuple(map(tensor_keys.with_strings, given))
        case _KINDS.INT | _KINDS.STRING:
            return given  # type: ignore[no-any-return]
        case _KINDS.INTS | _KINDS.STRINGS:
            return tuple(given)
        case _KINDS.GRAPH:
            return id(given)
        case _KINDS.GRAPHS:
            return tuple(map(id, given))
    return repr(given)


def _float(number: float) -> bytes:
    with np.errstate(over="ignore"):
        return np.float32(number).tobytes()  # the dtype of the file
