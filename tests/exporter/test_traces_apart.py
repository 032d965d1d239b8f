"""Traces of one process do not disturb each other, though torch keeps what operations gave."""

from __future__ import annotations

from contextlib import ExitStack

import onnx_ir as ir
import torch
from torch import nn

from onnxsmith.comparison.outputs.comparison_setup import as_programs
from onnxsmith.comparison.outputs.sides import side
from onnxsmith.exporter.graph.program_capture import capture
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.program_operations import traced
from onnxsmith.graph.files.text import from_text
from onnxsmith.runtimes.torch_eager import TorchProgram

LIKE = '<ir_version: 10, opset_import: ["": 20]> g (float[1,16,16] x) => (float[1,16,16] y) { y = Identity(x) }'


class Attention(nn.Module):
    """The view of its result fits one memory layout of the attention, and not the other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.ModuleList(nn.Linear(16, 16) for _ in range(3)), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (one(x).view(1, -1, 2, 8).transpose(1, 2) for one in self.inner)
        found = nn.functional.scaled_dot_product_attention(query, key, value)
        out: torch.Tensor = self.outer(found.transpose(1, 2).reshape(1, -1, 16))
        return out


def test_a_module_can_be_captured_after_it_was_traced_in_torchs_own_operations() -> None:
    torch.manual_seed(0)
    net, example = Attention().eval(), (torch.randn(1, 16, 16),)
    with ExitStack() as stack:
        first = side((net, example), None, stack, in_pieces=True)
        second = side(ir.to_proto(from_text(LIKE)), None, stack, in_pieces=True)
        program, _ = as_programs(first, second)
        assert isinstance(program.source, TorchProgram)
        traced(program.source, program.example, None)
        assert capture(TorchExport(), program.source, program.example, None).model.graph.outputs
