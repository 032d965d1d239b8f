"""How much two models have in common, in counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxsmith.base.report.base import Block, Part, facts
from onnxsmith.base.words import several


@dataclass(frozen=True)
class Difference(Part):
    """Counts of the differences of two models. `old_nodes` and `new_nodes` are the nodes without `Constant` nodes,
    `paired` the nodes that both models have, `equal` the pairs in which nothing changed. `weights` are the compared
    pairs of weights, `elements` their elements in the old model. `changes` are the differences by kind, `ignored` those
    that the caller ignores, `names` those in names only. `otherwise` are the nodes without a partner that compute the
    same as nodes of the other model, and the regions that they form. `of_weights` are the nodes without a partner that
    compute only from stored tensors."""

    title = "Difference"

    old_nodes: int
    new_nodes: int
    paired: int
    equal: int
    weights: int
    elements: int
    changes: dict[str, int]
    ignored: dict[str, int]
    names: dict[str, int]
    otherwise: dict[str, int] = field(default_factory=dict)
    of_weights: dict[str, int] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        nodes = f"{self.old_nodes:,} → {self.new_nodes:,}, {self.paired:,} in both, {self.equal:,} of them unchanged"
        yield facts(
            [
                ("nodes", nodes),
                ("weights compared", f"{self.weights:,} ({several(self.elements, 'element')})" if self.weights else ""),
                ("differences", _counted(self.changes) or "none"),
                ("ignored", _counted(self.ignored)),
                ("other names", _counted(self.names)),
                ("computed by other nodes", otherwise_text(self.otherwise)),
                ("of weights alone", of_weights_text(self.of_weights)),
            ]
        )


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(several(count, what) for what, count in counts.items() if count)


def otherwise_text(counts: dict[str, int]) -> str:
    """Says how many nodes without a partner compute the same as nodes of the other model; "" if none do."""
    if not counts:
        return ""
    said = [f"{counts[what]:,} {what}" for what in ("removed", "added") if counts[what]]
    return f"the results of {' and '.join(said)}, in {several(counts['regions'], 'region')}"


def of_weights_text(counts: dict[str, int]) -> str:
    """Says how many nodes without a partner compute only from stored tensors; "" if none do."""
    said = " and ".join(f"{counts[what]:,} {what}" for what in ("removed", "added") if counts.get(what))
    return f"{said}, such as copies of weights" if said else ""
