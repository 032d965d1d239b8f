"""Walks over the scopes of a model, which hold its nodes: the graph, the functions, and the branches and bodies in
both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure.walk import FLAT, direct, has_subgraphs, named_subgraphs, node_label


@dataclass(frozen=True, eq=False)
class Scope:
    """One graph. `path` is "" for the main graph, `local::Norm` for a function, `If_3/then_branch` for a branch.

    `depth` counts the outer graphs. `opsets` are the imported versions by domain. `in_function` is true for a function
    and the graphs inside it, which run once for each call."""

    path: str
    depth: int
    graph: ir.Graph
    opsets: Mapping[str, int]
    in_function: bool

    def version(self, domain: str) -> int | None:
        """Returns the imported version of a domain; None without an import."""
        if domain in ("", "ai.onnx"):
            return self.opsets.get("", self.opsets.get("ai.onnx"))
        return self.opsets.get(domain)


def nodes(model: ir.Model) -> Iterator[tuple[Scope, ir.Node]]:
    """Yields every node with its scope, in the file's order; the nodes of a branch or body follow their owner."""
    for root in roots(model):
        yield from _nodes(root)


def scopes(model: ir.Model) -> Iterator[Scope]:
    """Yields every scope, also empty scopes, in the order of `nodes`."""
    for root in roots(model):
        yield from _scopes(root)


def roots(model: ir.Model) -> Iterator[Scope]:
    """Yields the main graph, then the functions."""
    yield Scope("", 0, model.graph, model.opset_imports, False)
    for function in model.functions.values():
        yield Scope(function_name(function), 0, function.graph, function.opset_imports, True)


def function_name(function: ir.Function) -> str:
    """Returns `domain::name`, or `domain::name:overload`."""
    name = f"{function.domain}::{function.name}"
    return f"{name}:{function.overload}" if function.overload else name


def _nodes(scope: Scope) -> Iterator[tuple[Scope, ir.Node]]:
    is_flat = FLAT in scope.graph.meta
    for node in direct(scope.graph):
        yield scope, node
        if not is_flat and has_subgraphs(node):
            for inner in _inner(scope, node):
                yield from _nodes(inner)


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for node in scope.graph if FLAT not in scope.graph.meta else ():
        if has_subgraphs(node):
            for inner in _inner(scope, node):
                yield from _scopes(inner)


def _inner(scope: Scope, node: ir.Node) -> Iterator[Scope]:
    for name, graph in named_subgraphs(node):
        step = f"{node_label(node)}/{name}"
        path = f"{scope.path}/{step}" if scope.path else step
        yield Scope(path, scope.depth + 1, graph, scope.opsets, scope.in_function)
