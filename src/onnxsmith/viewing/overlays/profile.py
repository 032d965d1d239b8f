"""The time of each node, out of the profile of `bench`."""

from __future__ import annotations

from collections.abc import Iterator

from onnxsmith.report.parts._text import duration
from onnxsmith.report.parts.profile import Profile
from onnxsmith.viewing.overlays.base import Layer, Names, Overlaying


class Times(Overlaying):
    """Seconds in a run. The time of a kernel that computes several nodes is divided among them."""

    def subject(self, part: Profile) -> str:
        return part.subject

    def layers(self, part: Profile, names: Names) -> Iterator[Layer]:
        layer = Layer(f"time on {part.subject}", "s")
        for kernel in part.kernels:
            nodes = [node for name in kernel.nodes for node in names.node(name)]
            for node in nodes:
                seconds = kernel.seconds / len(nodes)
                said = f"{duration(kernel.seconds)} in {kernel.name} ({kernel.op})"
                if len(nodes) > 1:
                    said += f", which computes {len(nodes)} nodes"
                before = layer.figures.get(node)
                if before is not None:
                    seconds, said = seconds + float(before[0]), f"{before[1]}; {said}"
                layer.figures[node] = seconds, said
        yield layer
