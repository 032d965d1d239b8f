"""Finds sets of nodes that a step treats as a whole: selected nodes, matches of a pattern, torch modules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.node_selectors import fits
from onnxsmith.graph.patterns.match import Match
from onnxsmith.graph.structure import provenance, tensor_paths, walk


@dataclass(frozen=True)
class Region:
    """Holds a set of nodes in one graph, with a name for messages. The nodes are in an order that repeats of the region
    share. The region includes the nodes of branches and bodies."""

    name: str
    nodes: tuple[ir.Node, ...]
    graph: ir.Graph


def of_nodes(nodes: Iterable[ir.Node], name: str) -> Region:
    """Returns one region of nodes, in the order of their graph.

    Raises:
        OnnxsmithError: `edit/out-of-scope` if the nodes are in several graphs.
    """
    given = list(nodes)
    inner = {one for node in given for one in walk.inside(node)}
    outer = [node for node in given if node not in inner]
    graph = graph_of(outer[0])
    strange = next((node for node in outer if graph_of(node) is not graph), None)
    if strange is not None:
        raise problem(
            "edit/out-of-scope",
            f"{walk.node_label(strange)} is in another graph than {walk.node_label(outer[0])}",
            where=name,
            why="the nodes of a function come from one graph, body or branch",
            fix="select nodes of one graph; those of its branches and bodies come along",
        )
    chosen = set(outer)
    return Region(name, tuple(node for node in graph if node in chosen), graph)


def of_matches(matches: Iterable[Match]) -> list[Region]:
    """Returns a region for each match of a pattern, with its nodes in the order of the pattern.

    Raises:
        OnnxsmithError: `edit/out-of-scope` if a match reaches into an outer graph.
    """
    found = []
    for match in matches:
        nodes = tuple(dict.fromkeys(node for node in match.nodes if node is not None))
        of_nodes(nodes, walk.node_label(match.node))  # raises unless all are in one graph
        found.append(Region(walk.node_label(match.node), nodes, graph_of(match.node)))
    return found


def of_modules(work: Work, path: str) -> list[Region]:
    """Returns a region for each torch module whose path fits `path`. `layers.*` gives `layers.0` and `layers.1`, each
    with its submodules.

    Raises:
        OnnxsmithError: `edit/no-match` if no node comes from such a module; `edit/out-of-scope`.
    """
    depth = path.count(".") + 1
    groups: dict[str, list[ir.Node]] = {}
    modules: dict[str, None] = {}
    for node in walk.all_nodes(work.model):
        module = provenance.of(node).module
        modules.setdefault(module)
        head = ".".join(module.split(".")[:depth])
        if head and head.count(".") == depth - 1 and fits(head, path):
            groups.setdefault(head, []).append(node)
    if not groups:
        near = tensor_paths.near(path, [module for module in modules if module])
        raise problem(
            "edit/no-match",
            f"no node comes from a torch module {path!r}",
            why="the paths are those of named_modules()" if any(modules) else "the file names no torch modules",
            fix=f"the nearest: {', '.join(near)}" if near else "select nodes by their names or by a pattern",
        )
    return [of_nodes(nodes, name) for name, nodes in groups.items()]
