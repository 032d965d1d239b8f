"""Arguments of forward that are objects with tensors in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from onnxsmith.exporter.probes.base import Case, Probe
from onnxsmith.problem import Problem
from onnxsmith.report.parts.diagnosis import Finding, Weight


class Objects(Probe):
    """torch cannot take them apart, so their tensors become constants of the graph."""

    rank = 30

    def look(self, case: Case) -> Iterator[Finding]:
        given = {**{f"argument {n}": value for n, value in enumerate(case.model.args)}, **case.model.kwargs}
        for name, value in given.items():
            for leaf in pytree.tree_leaves(value):
                inside = _tensors(leaf)
                if inside:
                    yield self._finding(name, leaf, inside, case)

    def _finding(self, name: str, leaf: Any, inside: list[str], case: Case) -> Finding:
        kind = type(leaf).__name__
        names = [part.rpartition(".")[2] for part in inside]
        made = "\n".join(f"        held.{part} = {short}" for part, short in zip(inside, names, strict=True))
        code = (
            f"class Flat(torch.nn.Module):\n"
            f"    def __init__(self, net):\n"
            f"        super().__init__()\n"
            f"        self.net = net\n\n"
            f"    def forward(self, x, {', '.join(names)}):\n"
            f"        held = {kind}.__new__({kind})\n"
            f"{made}\n"
            f"        return self.net(x, held)"
        )
        return Finding(
            Problem(
                "export/object-input",
                f"{name} of forward is a {kind}, an object that torch cannot take apart",
                where=type(case.model.module).__qualname__,
                why=f"its tensors ({', '.join(inside)}) become constants of the graph, or the trace fails",
                fix="wrap the module: let forward take the tensors one by one, and build the object inside",
            ),
            Weight.STOPS,
            "recompose",
            code=code,
        )


def _tensors(leaf: Any) -> list[str]:
    if isinstance(leaf, torch.Tensor | str | int | float | bool | None) or not hasattr(leaf, "__dict__"):
        return []
    return [name for name, value in vars(leaf).items() if isinstance(value, torch.Tensor)]
