"""The time of each node, out of the profile of `bench`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.base.report.parts._text import duration
from onnxsmith.base.report.parts.profile import KernelTime, Profile
from onnxsmith.base.words import first_few, several
from onnxsmith.viewer.overlays.base import Layer, Names, Overlaying

_MOST_KERNELS = 4
"""Kernels that the text of a node names. A choice: one line."""


class Times(Overlaying):
    """Seconds in a run. A kernel that computes several nodes gives its time to the node whose operator it has: a Conv
    with an Add and a Relu in it is a Conv. The others get no time of that kernel, and say where it counts."""

    def subject(self, part: Profile) -> str:
        return part.subject

    def remarks(self, part: Profile) -> Iterator[str]:
        total = part.attributed + part.unattributed
        if part.unattributed:
            yield f"{duration(part.unattributed)} of {duration(total)} is in kernels whose nodes are unknown"

    def layers(self, part: Profile, names: Names) -> Iterator[Layer]:
        seconds: dict[int, float] = {}
        texts: dict[int, list[str]] = {}
        others: dict[int, list[str]] = {}
        for kernel in part.kernels:
            main = _main(kernel)
            nodes = {node: name for name in kernel.nodes for node in names.node(name)}
            owners = [node for node, name in nodes.items() if name in main] or list(nodes)
            for node, name in nodes.items():
                own = kernel.seconds / len(owners) if node in owners else 0.0
                seconds[node] = seconds.get(node, 0.0) + own
                texts.setdefault(node, [])
                place = texts if node in owners else others
                place.setdefault(node, []).append(_said(kernel, name, [nodes[one] for one in owners]))
        layer = Layer(f"time on {part.subject}", "s")
        for node, own_texts in texts.items():
            said = [*own_texts, *others.get(node, ())]
            layer.figures[node] = seconds[node], first_few(said, _MOST_KERNELS, "; ")
        yield layer


def _main(kernel: KernelTime) -> set[str]:
    """The nodes that a kernel is made for: those of its own operator, else those of the longest operator in its name,
    as `MatMul` is in `FusedMatMul`, else the last one, by which the kernel is called."""
    named = {kernel.name} & set(kernel.nodes)
    ops = [op.rpartition("::")[2] for op in kernel.computes]
    longest = max((op for op in ops if op in kernel.op), key=len, default="")
    found = {name for name, op in zip(kernel.nodes, ops, strict=False) if op == longest}
    return named & found or found or named


def _said(kernel: KernelTime, name: str, owners: list[str]) -> str:
    """Says how much of a kernel's time counts at a node, as its figure does."""
    if name not in owners:
        where = ", ".join(owners)
        return f"it is computed in {kernel.name} ({kernel.op}), whose {duration(kernel.seconds)} count at {where}"
    said = f"{duration(kernel.seconds)} in {kernel.name} ({kernel.op})"
    if len(owners) > 1:
        part = duration(kernel.seconds / len(owners))
        said = f"{part}, its part of {said}, which computes {several(len(owners), 'node')}"
    others = [one for one in kernel.nodes if one not in owners]
    return f"{said}, with {', '.join(others)} fused in" if others else said
