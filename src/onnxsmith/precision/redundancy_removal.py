"""Removes redundant texts, types and opsets from a finished model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.structure import provenance, walk


def slimmed(model: ir.Model, given: ir.Model) -> tuple[str, ...]:
    """Shortens the texts on the origins of nodes. Removes the opsets of domains without nodes, the declared types of
    initializers, whose tensors have types, and other types that the given model does not declare. Readers infer those,
    except for operators that onnx does not have. In a model of a few hundred kilobytes all this is a tenth of the
    quantised file. Returns notes for the report."""
    used = {node.domain for node in walk.all_nodes(model)}
    for domain in [one for one in model.opset_imports if one and one not in used and not model.functions]:
        del model.opset_imports[domain]
    gone = provenance.abridge(model)
    declared = {value.name for value in walk.values(given) if value.type is not None}
    for value in _silent(model):
        if value.is_initializer() or value.name not in declared:
            value.type, value.shape = None, None
    return (f"{gone:,} characters about the origins of nodes went; their modules and lines stay",) if gone else ()


def _silent(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the values whose types readers find without a declaration."""
    for value in walk.values(model):
        maker = value.producer()
        is_port = value.is_graph_input() or value.is_graph_output()
        if not is_port and (value.const_value is not None or (maker is not None and not maker.domain)):
            yield value
