"""Complex numbers of Python, and transforms of computed length."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import onnxsmith
from onnxsmith.base.report.parts.capture import Capture


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = torch.complex(x, 2 * x)
        return (x + 1j * x).abs(), (z * (2 - 1j)).real, (torch.exp(1j * x) * x).imag


class Filtered(nn.Module):
    """A filter in the frequencies of two axes, with a norm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho") * 2, s=x.shape[-2:], norm="ortho")


class Counted(nn.Module):
    def forward(self, index: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.bincount(index, minlength=x.shape[0])


@pytest.mark.parametrize(("module", "shape"), [(Product(), (3, 4)), (Filtered(), (2, 6, 12))])
def test_complex(module: nn.Module, shape: tuple[int, ...]) -> None:
    axes = ",".join(f"{axis}=d{axis}" for axis in range(len(shape)))
    assert onnxsmith.export(module, (torch.randn(shape),), dynamic=f"x:{axes}", strategy="torch-export").ok


def test_the_report_says_which_outputs_are_complex_in_the_module() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.fft.rfft(x), x * 2

    result = onnxsmith.export(Spectrum(), (torch.randn(2, 8),), output_names=["spectrum", "double"])
    notes = result.report.part(Capture).notes
    assert [note for note in notes if note.startswith("spectrum: complex in the module")]


def test_counts_up_to_a_size() -> None:
    example = (torch.tensor([0, 3, 3, 1]), torch.randn(6, 2))
    result = onnxsmith.export(Counted(), example, dynamic="index:0=n;x:0=m", strategy="torch-export")
    assert result.ok


class Enhanced(nn.Module):
    """A spectrum, a mask, and back to as many samples."""

    def __init__(self, *, normalized: bool, center: bool) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(24) + 0.1)
        self.options = {"normalized": normalized, "center": center, "win_length": 24}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 32, 8, window=self.window, return_complex=True, **self.options)
        masked = spectrum * torch.sigmoid(spectrum.abs())
        return torch.istft(masked, 32, 8, window=self.window, length=x.shape[-1], **self.options)


@pytest.mark.parametrize("options", [{"normalized": False, "center": True}, {"normalized": True, "center": True}])
def test_back_from_a_spectrum_to_as_many_samples(options: dict[str, bool]) -> None:
    result = onnxsmith.export(
        Enhanced(**options), (torch.randn(2, 100),), dynamic="x:0=batch,1=length", strategy="torch-export"
    )
    assert result.ok
