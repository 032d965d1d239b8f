"""The content of a page or a picture of models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, facts
from onnxsmith.base.report.parts.difference import of_weights_text, otherwise_text
from onnxsmith.base.words import several


@dataclass(frozen=True)
class View(Part):
    """`nodes` and `rooms` are counts by model, `overlays` the titles of the overlays. For each part of a report,
    `matched` has the number of its names that are nodes of the model, and the number of all its names. `pairs` counts
    the pairs of nodes of two models by kind of change; None for one model. `lines` are lines of the captured program.
    `origins` says for each report whether its hash is that of the model. `otherwise` counts the nodes without a partner
    that compute the same as nodes of the other model, and the regions that they form; `of_weights` counts the nodes
    without a partner that compute only from stored tensors."""

    title = "View"

    nodes: dict[str, int]
    rooms: dict[str, int]
    overlays: tuple[str, ...] = ()
    matched: dict[str, tuple[int, int]] = field(default_factory=dict)
    pairs: dict[str, int] | None = None
    lines: int = 0
    origins: dict[str, str] = field(default_factory=dict)
    otherwise: dict[str, int] = field(default_factory=dict)
    of_weights: dict[str, int] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        yield facts(
            [
                *(
                    (name, f"{several(count, 'node')} in {several(self.rooms[name], 'level')}")
                    for name, count in self.nodes.items()
                ),
                ("difference", _counted(self.pairs) if self.pairs is not None else None),
                ("computed by other nodes", otherwise_text(self.otherwise)),
                ("of weights alone", of_weights_text(self.of_weights)),
                ("colours", ", ".join(self.overlays)),
                *((part, f"{found:,} of {asked:,} names are nodes") for part, (found, asked) in self.matched.items()),
                ("reports", _counted(Counter(self.origins.values())) if self.origins else None),
                ("program", several(self.lines, "line") if self.lines else None),
            ]
        )


def _counted(pairs: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in pairs.items() if count) or "no nodes"
