"""Describes how the answers of two predict functions compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnxsmith.base.report.base import Block, Part, Table, Text, Tone, facts


@dataclass(frozen=True)
class AnswerDifference:
    """One difference. `at` is the place in the answer, as Python would reach it: `["boxes"][2]`."""

    input: str
    at: str
    kind: str
    what: str


@dataclass(frozen=True)
class Answers(Part):
    """The answers of two functions to the same inputs. `compared` counts numbers, boxes, texts and scores. `largest` is
    the largest difference that is allowed, in shares of its limit."""

    title = "Answers"

    reference: str
    candidate: str
    inputs: int
    compared: int
    largest: float
    differences: tuple[AnswerDifference, ...] = ()

    def blocks(self) -> Iterator[Block]:
        yield facts(
            (
                ("reference", self.reference),
                ("candidate", self.candidate),
                ("inputs", self.inputs),
                ("compared", f"{self.compared:,} numbers, boxes, texts and scores"),
            )
        )
        if self.differences:
            rows = tuple((one.input, one.at or "the answer", one.kind, one.what) for one in self.differences)
            yield Table(("input", "place", "kind", "difference"), rows)
        else:
            yield Text(f"the largest difference is {self.largest:.1%} of what is allowed", Tone.GOOD)
