"""Makes keys of attributes, which are equal if the attributes are. There are three kinds:

- `exact`: equal bits. Used to merge nodes, and for parts that are written once.
- `value`: as `exact`, but a NaN equals every NaN. Used to compare models.
- `literals`: as `exact`, for all attributes of a node, if each is a number, a text or a list of them. Used by rules
  that replace several nodes by one.

A branch or a body equals only itself.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure import tensor_keys

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


def literals(node: ir.Node) -> Hashable | None:
    """Returns the keys of all attributes by name; None if one is a reference, a tensor, a type, a branch or a body."""
    attributes = node.attributes
    if any(one.is_ref() or one.type not in _LITERAL for one in attributes.values()):
        return None
    return frozenset((name, exact(one)) for name, one in attributes.items())


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
