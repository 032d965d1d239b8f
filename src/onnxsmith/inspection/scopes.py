"""The places of a model that hold nodes: its graph, its functions, and the branches and bodies inside both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.model.graph.walk import node_label


@dataclass(frozen=True, eq=False)
class Scope:
    """One graph. `path` is "" for the model's own, `local::Norm` for a function's, `If_3/then_branch` for a branch's.

    `depth` counts the graphs around it; `opsets` are the versions in force, by domain; `in_function` says that it is a
    function or lies in one, so that it runs once for each call.
    """

    path: str
    depth: int
    graph: ir.Graph
    opsets: Mapping[str, int]
    in_function: bool

    def version(self, domain: str) -> int | None:
        """The imported version of a domain, None when it is not imported."""
        if domain in ("", "ai.onnx"):
            return self.opsets.get("", self.opsets.get("ai.onnx"))
        return self.opsets.get(domain)


def nodes(model: ir.Model) -> Iterator[tuple[Scope, ir.Node]]:
    """Every node with its scope, in the file's order; the nodes of a branch or body come right after their owner."""
    for root in roots(model):
        yield from _nodes(root)


def scopes(model: ir.Model) -> Iterator[Scope]:
    """Every scope, one without nodes too, in the order of `nodes`."""
    for root in roots(model):
        yield from _scopes(root)


def roots(model: ir.Model) -> Iterator[Scope]:
    """The model's graph, then its functions."""
    yield Scope("", 0, model.graph, model.opset_imports, False)
    for function in model.functions.values():
        yield Scope(function_name(function), 0, function.graph, function.opset_imports, True)


def function_name(function: ir.Function) -> str:
    """`domain::name`, with the overload where there is one."""
    name = f"{function.domain}::{function.name}"
    return f"{name}:{function.overload}" if function.overload else name


def subgraphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    """The graphs in a node's attributes, by the attribute's name (and position, where it holds several)."""
    for attribute in node.attributes.values():
        if attribute.is_ref():
            continue
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.name, attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from ((f"{attribute.name}[{index}]", graph) for index, graph in enumerate(attribute.as_graphs()))


def _nodes(scope: Scope) -> Iterator[tuple[Scope, ir.Node]]:
    for node in scope.graph:
        yield scope, node
        for inner in _inner(scope, node):
            yield from _nodes(inner)


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for node in scope.graph:
        for inner in _inner(scope, node):
            yield from _scopes(inner)


def _inner(scope: Scope, node: ir.Node) -> Iterator[Scope]:
    for name, graph in subgraphs(node):
        step = f"{node_label(node)}/{name}"
        path = f"{scope.path}/{step}" if scope.path else step
        yield Scope(path, scope.depth + 1, graph, scope.opsets, scope.in_function)
