"""Makes the outline of a model: its contents, their sizes, and their origin."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.report.parts.model_summary import (
    DataFile,
    Function,
    Macs,
    MacTerm,
    ModelSummary,
    Module,
    Port,
    Weights,
)
from onnxsmith.base.words import nodes_and_constants, several
from onnxsmith.graph.reading.exact_text import dtype_name
from onnxsmith.graph.reading.scopes import Scope, function_name, nodes, scopes
from onnxsmith.graph.reading.weights import Held, is_constant, readable
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.signature import Port as SignaturePort
from onnxsmith.graph.structure.signature import signature
from onnxsmith.graph.structure.walk import op_name
from onnxsmith.viewer.inspection.costs.cost_totals import stored, without_products
from onnxsmith.viewer.inspection.mac_rules.base import Products, rule_of

_ONNX_DOMAINS = {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview", "ai.onnx.preview.training"}
_DEEPEST_MODULE = 4
"""Limits the level at which the first branching of modules is searched. A choice: wrappers are rarely deeper."""


def counted(model: ir.Model) -> list[ir.Value]:
    """Returns the values whose shapes the outline counts with."""
    found = [node for scope, node in nodes(model) if not scope.path and rule_of(node) is not None]
    return [value for node in found for value in (*node.inputs, *node.outputs) if value is not None]


def summary(model: ir.Model, shaped: ir.Model, path: Path | None, tensors: Sequence[Held]) -> ModelSummary:
    """Makes the summary of `model`. `shaped` is its copy with inferred shapes, `path` its file, or None. `tensors` are
    its stored tensors."""
    places = list(scopes(model))
    ports = signature(model)
    producer = " ".join(text for text in (model.producer_name, model.producer_version) if text)
    return ModelSummary(
        path="" if path is None else str(path),
        bytes=None if path is None else path.stat().st_size,
        data_files=_data_files(tensors),
        producer=producer,
        ir_version=model.ir_version,
        opsets=dict(model.opset_imports),
        model_version=model.model_version,
        domain=model.domain or "",
        graph=model.graph.name or "",
        doc=model.doc_string or model.graph.doc_string or "",
        metadata=dict(model.metadata_props),
        inputs=tuple(_port(port) for port in ports.inputs),
        outputs=tuple(_port(port) for port in ports.outputs),
        weights=_weights(tensors),
        parameters=sum(group.parameters for group in stored(model, lambda _: ()).values()),
        missing=tuple(item.name for item in tensors if item.missing),
        nodes=walk.count_nodes(model),
        constant_nodes=walk.count_constants(model),
        subgraphs=sum(place.depth > 0 for place in places),
        nesting=max(place.depth for place in places),
        operators=walk.histogram(model),
        functions=_functions(model),
        foreign=_foreign(model),
        macs=macs(nodes(shaped), model.functions),
        modules=_modules([node for _, node in nodes(model) if not is_constant(node)]),
    )


def _port(port: SignaturePort) -> Port:
    return Port(port.name, str(port), port.default)


def _data_files(tensors: Iterable[Held]) -> tuple[DataFile, ...]:
    found: dict[str, list[ir.ExternalTensor]] = {}
    for item in tensors:
        if isinstance(item.tensor, ir.ExternalTensor):
            found.setdefault(os.fspath(item.tensor.location), []).append(item.tensor)
    return tuple(
        DataFile(
            location,
            len(members),
            sum(tensor.nbytes for tensor in members),
            Path(members[0].path).stat().st_size if readable(members[0]) else None,
        )
        for location, members in sorted(found.items())
    )


def _weights(tensors: Iterable[Held]) -> tuple[Weights, ...]:
    groups: dict[tuple[bool, str], list[ir.TensorProtocol]] = {}
    for item in tensors:
        if item.tensor is not None:
            groups.setdefault((item.constant, dtype_name(item.tensor.dtype)), []).append(item.tensor)
    found = [
        Weights(
            "constants" if constant else "initializers",
            dtype,
            len(members),
            sum(tensor.size for tensor in members),
            sum(tensor.nbytes for tensor in members),
        )
        for (constant, dtype), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda group: (group.where != "initializers", -group.bytes, group.dtype)))


def _functions(model: ir.Model) -> tuple[Function, ...]:
    calls = Counter(node.op_identifier() for _, node in nodes(model))
    return tuple(
        Function(
            function_name(function),
            len(function.inputs),
            len(function.outputs),
            sum(not is_constant(node) for node in walk.nodes(function)),
            calls[identifier],
        )
        for identifier, function in model.functions.items()
    )


def _foreign(model: ir.Model) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for _, node in nodes(model):
        if node.domain not in _ONNX_DOMAINS and node.op_identifier() not in model.functions:
            found.setdefault(node.domain, set()).add(node.op_type)
    return {domain: tuple(sorted(ops)) for domain, ops in sorted(found.items())}


def _modules(found: Sequence[ir.Node]) -> tuple[Module, ...]:
    """Counts nodes by torch module, at the first depth with several modules, in the order of the graph."""
    paths = [provenance.module_of(node).split(".") for node in found]
    if not any(path != [""] for path in paths):
        return ()
    by_depth = [Counter(".".join(path[:depth]) for path in paths) for depth in range(1, _DEEPEST_MODULE + 1)]
    counts = next((counts for counts in by_depth if len(counts.keys() - {""}) > 1), by_depth[0])
    return tuple(Module(name, count) for name, count in counts.items())


def headline(part: ModelSummary) -> str:
    """Writes the summary as one line."""
    name = Path(part.path).name if part.path else part.graph or "the model"
    ports = f"{len(part.inputs)} in, {len(part.outputs)} out"
    counted = nodes_and_constants(part.nodes, part.constant_nodes)
    return f"{name}: {counted}, {several(part.parameters, 'parameter')}, {ports}"


# Counts the multiply-accumulates of a model's outline: those of the main graph, by the rules of `mac_rules/`.


def macs(nodes: Iterable[tuple[Scope, ir.Node]], functions: Iterable[ir.OperatorIdentifier] = ()) -> Macs:
    """Counts the multiply-accumulates of one run of a graph, from its nodes with inferred shapes.

    Symbolic sizes stay symbols. Calls of local `functions` are not operators without a rule.
    """
    terms: Counter[tuple[str, ...]] = Counter()
    other: Counter[str] = Counter()
    counted = unknown = nested = 0
    local = set(functions)
    for scope, node in nodes:
        rule = rule_of(node)
        if rule is None:
            if not without_products(node) and node.op_identifier() not in local:
                other[op_name(node)] += 1
        elif scope.path:
            nested += 1
        elif (products := rule.products(node)) is None:
            unknown += 1
        else:
            counted += 1
            _add(terms, products)
    ordered = sorted(terms.items(), key=lambda item: (len(item[0]), -item[1], item[0]))
    return Macs(tuple(MacTerm(n, dims) for dims, n in ordered), counted, unknown, nested, dict(sorted(other.items())))


def _add(terms: Counter[tuple[str, ...]], products: Products) -> None:
    for product in products:
        number = 1
        for dim in product:
            number *= dim if isinstance(dim, int) else 1
        terms[tuple(sorted(dim for dim in product if isinstance(dim, str)))] += number
