"""Operators on complex tensors inside a model, whose inputs and outputs are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture
from onnxsmith.base.report.verdict import Verdict

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


class Spectral(torch.nn.Module):
    """A layer of a Fourier neural operator: the lowest frequencies by weights, the others 0."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = (torch.nn.Parameter(torch.randn(3, 2, 3, 3, dtype=torch.complex64)) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.rfft2(x)
        kept = torch.zeros(x.shape[0], 2, x.shape[-2], x.shape[-1] // 2 + 1, dtype=torch.complex64)
        kept[..., :3, :3] = torch.einsum("bixy,ioxy->boxy", found[..., :3, :3], self.low)
        kept[..., -3:, :3] = torch.einsum("bixy,ioxy->boxy", found[..., -3:, :3], self.high)
        return torch.fft.irfft2(kept, s=x.shape[-2:])


class Attended(torch.nn.Module):
    """Complex linear layers, a mask, powers and a change of places."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(6, 6, dtype=torch.complex64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = self.inner(torch.fft.fft(x))
        weights = torch.bmm(z, z.conj().transpose(1, 2))
        shifted = torch.fft.fftshift(weights.masked_fill(weights.abs() < 1, 0) @ z, dim=1)
        return torch.view_as_real(shifted[..., torch.tensor([0, 2])] ** 2).cumsum(1)


@pytest.mark.parametrize(("module", "shape"), [(Spectral(), (2, 3, 10, 12)), (Attended(), (2, 5, 6))])
def test_complex_weights_at_every_size(module: torch.nn.Module, shape: tuple[int, ...]) -> None:
    axes = {axis: f"d{axis}" for axis in range(2 if len(shape) == 4 else 1, 4 if len(shape) == 4 else 2)}
    result = onnxsmith.export(module, (torch.randn(shape),), dynamic={"x": axes}, strategy="torch-export")
    assert result.ok, result.report.problems
