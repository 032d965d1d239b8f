"""Finds names that several nodes of a graph share. The specification allows such names, but onnxruntime refuses the
file."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.graph.structure import walk


def repeated(model: ir.Model) -> dict[str, ir.Node]:
    """Returns the names that several nodes of a graph share, each with the last of these nodes."""
    found: dict[str, ir.Node] = {}
    for graph in walk.graphs(model):
        counts = Counter(node.name for node in graph if node.name)
        found |= {node.name: node for node in graph if node.name and counts[node.name] > 1}
    return found


def without(model: ir.Model) -> ir.Model:
    """Removes the shared names from the nodes of the model, and returns the model. Node names have no effect on a
    run."""
    names = repeated(model)
    for graph in walk.graphs(model) if names else ():
        for node in graph:
            if node.name in names:
                node.name = None
    return model


def doubts(model: ir.Model, where: str) -> tuple[Problem, ...]:
    """Returns a problem if nodes share names."""
    names = repeated(model)
    if not names:
        return ()
    name, node = next(iter(names.items()))
    result = next((value.name for value in node.outputs if value.name), "")
    return (
        Problem(
            "model/repeated-node-names",
            f"several nodes are called {', '.join(map(repr, list(names)[:3]))}",
            where=where,
            why="onnxruntime refuses a graph with two nodes of one name; the comparison ran without these names",
            fix=f"""onnxsmith rename {where} '{{ gives = "{result}" }}' {name}_2 --kind node -o {where}""",
        ),
    )
