"""Compares attributes of nodes: makes keys for pairing, and lists the changes within a pair."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import lru_cache

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import AttributeChange
from onnxsmith.graph.reading.exact_text import attribute_text
from onnxsmith.graph.structure import attribute_keys, schema, walk


@lru_cache(maxsize=4096)
def schema_of(op_type: str, domain: str, version: int) -> schema.Schema | None:
    """Returns the schema in force; None if the installed onnx has none."""
    return schema.find(op_type, domain, version)


def schema_at(node: ir.Node, opsets: Mapping[str, int]) -> schema.Schema | None:
    """Returns the schema of a node in a graph with these opsets."""
    version = opsets.get(node.domain, 0)
    return schema_of(node.op_type, node.domain, version) if version else None


def effective(node: ir.Node, opsets: Mapping[str, int]) -> dict[str, ir.Attr]:
    """Returns a node's attributes, with the defaults of those that it leaves out, without bodies."""
    found = {name: one for name, one in node.attributes.items() if one.is_ref() or not walk.holds_subgraphs(one)}
    known = schema_at(node, opsets)
    for name, default in known.defaults.items() if known is not None else ():
        if default is not None and name not in found:
            found[name] = default
    return found


def key(node: ir.Node, opsets: Mapping[str, int]) -> Hashable:
    """Returns a key of a node's attributes. An attribute that has its default value does not count."""
    known = schema_at(node, opsets)
    defaults = known.defaults if known is not None else {}
    items = []
    for name, one in node.attributes.items():
        if not one.is_ref() and walk.holds_subgraphs(one):
            continue
        value, default = attribute_keys.value(one), defaults.get(name)
        if default is None or value != attribute_keys.value(default):
            items.append((name, value))
    return tuple(sorted(items, key=lambda item: item[0]))


def changes(
    a: ir.Node, b: ir.Node, opsets: tuple[Mapping[str, int], Mapping[str, int]], moved: frozenset[str]
) -> Iterator[AttributeChange]:
    """Yields the attributes that differ, and marks values that are only the default. `moved` are attributes that are an
    input of the other node, with an equal value."""
    ours, theirs = effective(a, opsets[0]), effective(b, opsets[1])
    for name in dict.fromkeys((*ours, *theirs)):
        if name in moved:
            continue
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None or attribute_keys.value(one) != attribute_keys.value(other):
            if (one is None or other is None) and name not in a.attributes and name not in b.attributes:
                continue  # another version of the operator has this optional attribute, and no node gives it
            yield AttributeChange(name, _text(one, name in a.attributes), _text(other, name in b.attributes))


def _text(attribute: ir.Attr | None, given: bool) -> str:
    if attribute is None:
        return "-"
    return attribute_text(attribute) + ("" if given else " (default)")


def as_tensor_values(attribute: ir.Attr) -> tuple[object, ...] | None:
    """Returns the numbers of an attribute as a flat tuple; None for other kinds of attributes."""
    if attribute.is_ref() or attribute.value is None:
        return None
    kinds = ir.AttributeType
    if attribute.type in (kinds.INT, kinds.FLOAT):
        return (attribute.value,)
    if attribute.type in (kinds.INTS, kinds.FLOATS):
        return tuple(attribute.value)
    return None
