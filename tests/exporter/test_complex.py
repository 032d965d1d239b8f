"""Operators on complex tensors inside a model, whose inputs and outputs are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxsmith
from onnxsmith.report.parts.capture import Capture
from onnxsmith.report.verdict import Verdict

INSIDE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "pad": lambda z: torch.fft.fft(z, n=11),
    "unsqueeze": lambda z: z.unsqueeze(-1) * z.unsqueeze(0).unsqueeze(-1),
    "select": lambda z: z[1] + z.select(-2, 0),
    "expand": lambda z: z[:1].expand(3, -1) * z,
    "conj": lambda z: torch.conj_physical(z) * z,
    "exp": torch.exp,
    "full": lambda z: torch.full(z.size(), 1.5 - 2j, dtype=z.dtype) * z,
    "ones": lambda z: torch.ones_like(z) * z - torch.full_like(z, 2j),
    "zeros": lambda z: torch.zeros_like(z) - z,
    "reciprocal": lambda z: 2 / (z + 1),
    "where": lambda z: torch.where(z.real > 0, z, z * z),
}


class Inside(torch.nn.Module):
    def __init__(self, inside: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(self.inside(torch.fft.fft(x)))


@pytest.mark.parametrize("name", INSIDE)
def test_complex_numbers_inside_of_a_model(name: str) -> None:
    torch.manual_seed(0)
    result = onnxsmith.export(Inside(INSIDE[name]), torch.randn(3, 5), strategy="torch-export")
    assert result.report.verdict is Verdict.DONE


class Spectrum(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return z * 2 + 1j, z.abs() + x, torch.fft.ifft(z)


def test_complex_inputs_and_outputs_are_pairs_of_reals() -> None:
    args = (torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4))
    result = onnxsmith.export(Spectrum(), args, dynamic={"z": {0: "n"}, "x": {0: "n"}}, strategy="torch-export")
    assert result.ok
    part = result.report.part(Capture)
    assert [port.shape for port in part.inputs] == [("n", 4, 2), ("n", 4)]
    assert [port.shape for port in part.outputs] == [("n", 4, 2), ("n", 4), ("n", 4, 2)]
