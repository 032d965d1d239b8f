"""The steps that made a failing model small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, facts


@dataclass(frozen=True)
class Step:
    """One step: the number of `nodes` after it, and the number of models that it tried."""

    name: str
    nodes: int
    tries: int


@dataclass(frozen=True)
class Reduction(Part):
    """The result of a reduction. Node counts include bodies and functions, but not Constant nodes. `tries` counts the
    models by outcome. `remembered` counts the models whose outcome was known from an earlier try. `kept` lists the
    parts that could not be anonymised."""

    title = "Reduction"

    check: str
    failure: str
    inputs: str
    steps: tuple[Step, ...]
    tries: dict[str, int]
    remembered: int = 0
    confirmed: str = ""
    anonymised: bool = False
    kept: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("check", self.check),
                ("failure", self.failure),
                ("inputs", self.inputs),
                ("tries", f"{sum(self.tries.values())}: {self._ends()}"),
                ("confirmed", self.confirmed),
            )
        )
        rows = tuple((step.name, str(step.nodes), str(step.tries)) for step in self.steps)
        yield Table(("step", "nodes", "tries"), rows, right=(1, 2))
        if self.anonymised:
            yield Text("anonymised; still there: " + "; ".join(self.kept) if self.kept else "anonymised")

    def _ends(self) -> str:
        return ", ".join(f"{count} {end}" for end, count in self.tries.items()) or "none"
