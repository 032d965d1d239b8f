"""Compares properties of two models besides their graphs: versions, metadata, documentation, functions, declared
types."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import onnx_ir as ir

from onnxsmith.base.report.parts.model_changes import PropertyChange
from onnxsmith.base.seams.metadata import meta, metadata_props
from onnxsmith.base.words import several
from onnxsmith.comparison.graphs import attribute_changes
from onnxsmith.comparison.graphs.graph_differences import Found
from onnxsmith.comparison.graphs.model_pairs import FunctionPairs
from onnxsmith.comparison.graphs.ports import type_text
from onnxsmith.graph.reading.exact_text import attribute_text
from onnxsmith.graph.reading.scopes import function_name
from onnxsmith.graph.structure import attribute_keys, quantization_annotations
from onnxsmith.graph.structure.walk import node_label, op_name


def changes(a: ir.Model, b: ir.Model, functions: FunctionPairs, found: Found) -> Iterator[PropertyChange]:
    """Yields the properties that differ."""
    yield from _versions(a, b, found)
    yield from _functions(a, b, functions)
    yield from _documents(a, b)
    yield from _of_nodes(found)
    yield from _of_values(found)


def _versions(a: ir.Model, b: ir.Model, found: Found) -> Iterator[PropertyChange]:
    if a.ir_version != b.ir_version:
        yield PropertyChange("version", "IR version", str(a.ir_version), str(b.ir_version))
    for domain in dict.fromkeys((*a.opset_imports, *b.opset_imports)):
        old, new = a.opset_imports.get(domain), b.opset_imports.get(domain)
        if old != new:
            about = _affected(found, domain, old, new)
            yield PropertyChange("version", f"opset {domain or 'ai.onnx'}", _text(old), _text(new), about=about)


def _affected(found: Found, domain: str, old: int | None, new: int | None) -> str:
    """Returns a text with the operators of paired nodes whose definition differs between the two versions of the
    domain."""
    if old is None or new is None:
        return ""
    counts: Counter[str] = Counter()
    for one, other, _ in found.paths:
        if one.domain == domain and one.op_type == other.op_type:
            first = attribute_changes.schema_of(one.op_type, domain, old)
            second = attribute_changes.schema_of(one.op_type, domain, new)
            if first is not None and second is not None and first.since != second.since:
                counts[f"{one.op_type} {first.since} → {second.since}"] += 1
    return f"defined anew: {', '.join(f'{count} {op}' for op, count in counts.most_common())}" if counts else ""


def _functions(a: ir.Model, b: ir.Model, functions: FunctionPairs) -> Iterator[PropertyChange]:
    for identifiers, old, new in ((functions.removed, "present", "-"), (functions.added, "-", "present")):
        for domain, name, overload in identifiers:
            full = f"{domain}::{name}{f':{overload}' if overload else ''}"
            yield PropertyChange("function", full, old, new, about="calls compared inlined")
    for one, other in functions.pairs:
        yield from _function(a.functions[one], b.functions[other])


def _function(a: ir.Function, b: ir.Function) -> Iterator[PropertyChange]:
    name = function_name(a)
    for key in dict.fromkeys((*a.attributes, *b.attributes)):
        old, new = a.attributes.get(key), b.attributes.get(key)
        if old is None or new is None or attribute_keys.value(old) != attribute_keys.value(new):
            yield PropertyChange("function", f"attribute {key}", _parameter(old), _parameter(new), where=name)
    for domain in dict.fromkeys((*a.opset_imports, *b.opset_imports)):
        first, second = a.opset_imports.get(domain), b.opset_imports.get(domain)
        if first != second:
            yield PropertyChange("version", f"opset {domain or 'ai.onnx'}", _text(first), _text(second), where=name)
    yield from _texts(a.metadata_props, b.metadata_props, name)
    if (a.doc_string or "") != (b.doc_string or ""):
        yield PropertyChange("doc", "description", _text(a.doc_string), _text(b.doc_string), where=name)


def _parameter(attribute: ir.Attr | None) -> str:
    return "-" if attribute is None else attribute_text(attribute) or "required"


def _documents(a: ir.Model, b: ir.Model) -> Iterator[PropertyChange]:
    for key in ("producer_name", "producer_version", "domain", "model_version"):
        old, new = getattr(a, key), getattr(b, key)
        if (old or None) != (new or None):
            yield PropertyChange("metadata", key.replace("_", " "), _text(old), _text(new))
    yield from _texts(a.metadata_props, b.metadata_props, "")
    yield from _texts(a.graph.metadata_props, b.graph.metadata_props, "the graph")
    if a.device_configurations != b.device_configurations:
        texts = (str(list(model.device_configurations)) for model in (a, b))
        yield PropertyChange("metadata", "device configurations", *texts)
    for where, one, other in (("", a.doc_string, b.doc_string), ("the graph", a.graph.doc_string, b.graph.doc_string)):
        if (one or "") != (other or ""):
            yield PropertyChange("doc", "description", _text(one), _text(other), where=where)


def _texts(ours: Mapping[str, str], theirs: Mapping[str, str], where: str) -> Iterator[PropertyChange]:
    for key in dict.fromkeys((*ours, *theirs)):
        if ours.get(key) != theirs.get(key):
            yield PropertyChange("metadata", key, _text(ours.get(key)), _text(theirs.get(key)), where=where)


def _of_nodes(found: Found) -> Iterator[PropertyChange]:
    rows = []
    for one, other, _ in found.paths:
        name = f"{op_name(one)} {node_label(one)}"
        rows += list(_texts(one.metadata_props, other.metadata_props, name))
        if (one.doc_string or "") != (other.doc_string or ""):
            rows.append(
                PropertyChange("doc", "description", _text(one.doc_string), _text(other.doc_string), where=name)
            )
        ours, theirs = (str(node.device_configurations or "-") for node in (one, other))
        if ours != theirs:
            rows.append(PropertyChange("metadata", "device configurations", ours, theirs, where=name))
    yield from _gathered(rows, "node")


def _of_values(found: Found) -> Iterator[PropertyChange]:
    rows = []
    pairs = [*found.pairs.values.items(), *found.weights.pairs()]
    for a, b in pairs:
        name = a.name or ""
        rows += list(_texts(metadata_props(a), metadata_props(b), name))
        if (a.doc_string or "") != (b.doc_string or ""):
            rows.append(PropertyChange("doc", "description", _text(a.doc_string), _text(b.doc_string), where=name))
        old, new = (str(meta(value).get(quantization_annotations.KEY) or "-") for value in (a, b))
        if (old == "-") != (new == "-"):
            rows.append(PropertyChange("metadata", "quantization annotation", old, new, where=name))
        inside = a.producer() is not None and not a.is_graph_output() and not b.is_graph_output()
        if inside and a.producer() in found.pairs.nodes and not found.dimensions.same(a, b):
            old, new = type_text(a), type_text(b)
            if old != new:
                rows.append(PropertyChange("shape", "declared type", old, new, where=name))
    yield from _gathered([row for row in rows if row.kind != "shape"], "tensor")
    yield from (row for row in rows if row.kind == "shape")


def _gathered(rows: Iterable[PropertyChange], noun: str) -> Iterator[PropertyChange]:
    """Yields one row for each property that several nodes or tensors have."""
    groups: dict[tuple[str, str], list[PropertyChange]] = defaultdict(list)
    for row in rows:
        groups[row.kind, row.name].append(row)
    for (kind, name), found in groups.items():
        first = found[0]
        more = f"and of {several(len(found) - 1, f'other {noun}')}" if len(found) > 1 else ""
        yield PropertyChange(kind, name, first.old, first.new, first.where, more)


def _text(value: object) -> str:
    return "-" if value is None or value == "" else str(value)
