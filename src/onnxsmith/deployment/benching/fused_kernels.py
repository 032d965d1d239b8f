"""Finds the nodes of a file that a kernel of the optimised graph computes.

An optimiser fuses nodes, and gives the fused nodes new names. Most names of tensors stay: a fused node writes the
tensor that the last of its original nodes wrote, and reads the tensors that the first of them read. It computes the
nodes between these tensors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.graph.surgery.inlining import inlined

_PREFIX = "onnxsmith."
_NUMBER = re.compile(re.escape(_PREFIX) + r"(\d+)(?![\d.])")
_BLOCKED = "_nchwc"
"""The ending of the name that onnxruntime gives a node whose result has a blocked layout. The rest is the name of the
tensor (nchwc_transformer.cc)."""


class Numbered:
    """A copy of a model without calls of functions. Every node has a unique name, so that a kernel can be traced to it.
    `labels` are the names of the nodes in the file."""

    def __init__(self, model: ir.Model) -> None:
        self.model, self.note = inlined(model)
        self.nodes = list(walk.all_nodes(self.model))
        self.labels = {node: node_label(node) for node in self.nodes}
        for number, node in enumerate(self.nodes):
            node.name = f"{_PREFIX}{number}"
        self._producers = {value.name: node for node in self.nodes for value in node.outputs if value.name}

    def sources(self, optimised: Sequence[Mapping[str, Any]]) -> list[list[ir.Node]]:
        """Returns for each node of the optimised graph the nodes of the file that it computes; empty if unknown."""
        tensors: dict[str, str] = {}
        """The file's name of a tensor of the optimised graph."""
        results = [self._results(node) for node in optimised]
        for node, found in zip(optimised, results, strict=True):
            tensors |= {theirs: ours for theirs, ours in zip(node["outputs"], found, strict=False) if ours}
        computed = set(tensors.values())
        made: dict[str, list[ir.Node]] = {}
        """The nodes that the kernel computes which first has the tensor."""
        sources = []
        for node, found in zip(optimised, results, strict=True):
            names = [name for name in found if name]
            operands = {tensors.get(name, name) for name in node["inputs"]}
            if names and operands.issuperset(names) and names[0] in made:
                sources.append(made[names[0]])  # the same tensor in another layout
                continue
            sources.append(self._between(names, operands, computed) or self._named(node["name"]))
            made |= {name: sources[-1] for name in names if name not in made}
        return sources

    def _results(self, node: Mapping[str, Any]) -> list[str]:
        """Returns the names in the file of the tensors that a node computes, "" if unknown."""
        blocked = node["name"].removesuffix(_BLOCKED)
        own = _NUMBER.fullmatch(node["name"])
        names = [v.name or "" for v in self.nodes[int(own[1])].outputs] if own and self._has(own[1]) else []
        found = []
        for index, name in enumerate(node["outputs"]):
            if name in self._producers:
                found.append(name)
            elif index == 0 and blocked != node["name"] and blocked in self._producers:
                found.append(blocked)
            else:
                found.append(names[index] if index < len(names) else "")
        return found

    def _between(self, results: Sequence[str], operands: set[str], computed: set[str]) -> list[ir.Node]:
        """Returns the nodes between the operands and the results. Walks backwards from the results, and stops at
        tensors that another kernel has computed."""
        found: dict[ir.Node, None] = {}
        waiting = [name for name in results if name in self._producers]
        while waiting:
            node = self._producers[waiting.pop()]
            if node in found:
                continue
            found[node] = None
            for value in node.inputs:
                name = value.name if value is not None else None
                if name and name in self._producers and name not in operands and name not in computed:
                    waiting.append(name)
        # `index` searches the list, so only short results are put in order.
        return sorted(found, key=self.nodes.index) if len(found) < 100 else list(found)

    def _named(self, name: str) -> list[ir.Node]:
        """Returns the nodes whose names are part of `name`: `fused onnxsmith.3`."""
        return [self.nodes[int(number)] for number in _NUMBER.findall(name) if self._has(number)]

    def _has(self, number: str) -> bool:
        return int(number) < len(self.nodes)
