"""Both branches of an If must give the same shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onnxsmith.graph.structure import walk
from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Slot, Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class EqualBranchShapes(GraphRule):
    """The outputs of the two branches of an `If` must have the same shape, or the same rank with `compare = "rank"`.

    Symbolic dimensions that are not provably equal cannot be judged.

    Source: onnx-tensorrt's operators.md, row If (same rank); TensorRT's error "IIfConditionalOutputLayer inputs must
    have the same shape", NVIDIA/TensorRT issue 4603 of 2025-10-18.
    """

    anchor = ("If",)
    source = "https://github.com/NVIDIA/TensorRT/issues/4603"

    compare: Literal["shape", "rank"] = "shape"

    def judge(self, subject: Subject) -> Finding | None:
        branches = [graph.outputs for graph in walk.subgraphs(subject.node)]
        if len(branches) != 2:
            return unknown("the branches are not known", self.source)
        doubt = None
        for one, other in zip(*branches, strict=False):
            a, b = Slot("", None, one).dims, Slot("", None, other).dims
            if a is None or b is None:
                doubt = doubt or unknown(f"the shape of {(one if a is None else other).name} is not known", self.source)
                continue
            both = f"the branches give {_text(a)} and {_text(b)}"
            sizes = [(x, y) for x, y in zip(a, b, strict=False) if isinstance(x, int) and isinstance(y, int)]
            if len(a) != len(b):
                return refused(f"{both}; both must have the same rank", self.source)
            if self.compare == "shape" and any(x != y for x, y in sizes):
                return refused(f"{both}; both must have the same shape", self.source)
            if self.compare == "shape" and (a != b or None in a):
                doubt = doubt or unknown(f"{both}, which may differ", self.source)
        return doubt


def _text(dims: tuple[int | str | None, ...]) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"
