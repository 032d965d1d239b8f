"""One change of a model against its baseline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnxsmith.base.report.parts.baselines import BETTER, CHANGED, UNKNOWN, WORSE

ORDER = ("missing", "interface", "weights", "graph", "runtime", "machine", "unsteady", "numbers", "target", "slower",
         "memory", "size", "nodes", "file", "faster", "new")  # fmt: skip
"""Lists the causes, those first that matter first to whoever uses the model."""


@dataclass(frozen=True)
class Change:
    """A change: its cause, what it means (`worse`, `changed`, `better`, `cannot tell`), and what changed in words."""

    kind: str
    result: str
    what: str


def in_order(changes: Iterable[Change]) -> list[Change]:
    """Returns the changes, worse ones first, and among them those that matter first."""
    results = (WORSE, UNKNOWN, CHANGED, BETTER)
    return sorted(changes, key=lambda one: (results.index(one.result), ORDER.index(one.kind)))
