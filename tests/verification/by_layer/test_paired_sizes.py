"""Sizes that a graph computes look alike in many places; wrong pairs of them end no comparison by layer."""

from __future__ import annotations

from typing import Any

import pytest

import onnxsmith
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.layers import Layers
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.by_layer import layer_comparison


def test_sizes_that_were_paired_with_those_of_another_place_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime refuses the reference's sizes in the candidate: the tensors of floats are compared without them."""
    text = (
        '<ir_version: 10, opset_import: ["": 20]> g (float[n,6] x) => (float[m] y) '
        "<int64[1] flat = {-1}, float k = {%s}> { s = Shape(x)\n p = ReduceProd(s, flat)\n "
        "e = Mul(x, k)\n y = Reshape(e, p) }"
    )
    real = layer_comparison.diverge

    def refusing(*args: Any, **options: Any) -> Any:
        names = {pair.candidate for chunk in args[2] for pair in chunk}
        if names & {"s", "p"}:
            raise problem("runtime/failed", "onnxruntime refused or failed", why="the input tensor cannot be reshaped")
        return real(*args, **options)

    monkeypatch.setattr(layer_comparison, "diverge", refusing)
    report = onnxsmith.compare(from_text(text % "1.0"), from_text(text % "1.01"), per_layer=True).report
    part = report.part(Layers)
    assert part.culprits == ("e",)
    assert "2 pairs were left out: the input tensor cannot be reshaped" in part.notes
