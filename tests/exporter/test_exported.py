"""A program of torch.export as a side: what it gives is read from it, without a run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.tracing.exported_program import as_model, results


class Returning(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.register_buffer("held", torch.ones(2))

    def forward(self, x: torch.Tensor, *, flag: torch.Tensor) -> Any:
        half, whole = x.half(), x.to(torch.int64)
        return {
            "tensor": half,
            "tuple": (x * 2, whole, flag),
            "nested": {"b": [x + 1, half], "a": {"last": x > 0}},
            "none": (x * 2, None, whole),
            "input": (x, flag, x),
            "twice": (half, half),
            "buffer": (self.held, x),
            "complex": torch.fft.fft(x),
        }[self.way]


@pytest.mark.parametrize("way", ["tensor", "tuple", "nested", "none", "input", "twice", "buffer", "complex"])
def test_what_a_program_gives_is_what_it_gives_when_it_is_run(way: str) -> None:
    exported = torch.export.export(Returning(way).eval(), (torch.rand(3, 2),), {"flag": torch.tensor([1, 0])})
    model = as_model(exported)
    run, read = programs.build(model, {}), programs.build(model, {}, result=results(exported))
    assert read.program.signature == run.program.signature
    assert read.results == run.results
