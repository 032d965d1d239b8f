"""Plain exports with operators that some target refuses: what torch.onnx writes for modules of many fields.

    python benchmarks/refused_exports.py      writes .bench-corpus/refused/NAME.onnx

Each module has a convolution or a product around the operation, so that it is a network and not a single node.
`benchmarks/targets.py fixes --models .bench-corpus/refused` counts how many a target takes after `check --fix`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

FOLDER = Path(__file__).parent.parent / ".bench-corpus" / "refused"
IMAGE = (1, 4, 16, 16)


class Around(nn.Module):
    """A convolution, the operation, and what makes a float tensor of its result."""

    def __init__(self, operation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 4, 3, padding=1)
        self.operation = operation

    def forward(self, x: Tensor) -> Tensor:
        """Applies the operation to the features."""
        return self.operation(self.first(x)).float()


def _fft(x: Tensor) -> Tensor:
    return torch.fft.rfft2(x).abs()


def _fft1(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.fft.fft(x.flatten(2)))


def _filter(x: Tensor) -> Tensor:
    spectrum = torch.fft.rfft2(x)
    return torch.fft.irfft2(spectrum * 0.5, s=(16, 16))


def _stft(x: Tensor) -> Tensor:
    return torch.stft(x.flatten(1), 64, 16, window=torch.hann_window(64), return_complex=True).abs()


def _grid(x: Tensor) -> Tensor:
    return functional.grid_sample(x, x.permute(0, 2, 3, 1)[..., :2].tanh(), mode="bicubic", align_corners=False)


def _affine(x: Tensor) -> Tensor:
    grid = functional.affine_grid(
        x.mean((2, 3))[:, :3].repeat(1, 2).reshape(1, 2, 3), [1, 4, 16, 16], align_corners=False
    )
    return functional.grid_sample(x, grid, align_corners=False)


def _fold(x: Tensor) -> Tensor:
    return functional.fold(functional.unfold(x, 3, padding=1), (16, 16), 3, padding=1)


def _deform(x: Tensor) -> Tensor:
    from torchvision.ops import deform_conv2d

    return deform_conv2d(x, x.repeat(1, 5, 1, 1)[:, :18], torch.ones(4, 4, 3, 3), padding=1)


def _rois(x: Tensor) -> Tensor:
    from torchvision.ops import roi_align

    return roi_align(x, torch.tensor([[0.0, 1.0, 1.0, 9.0, 9.0], [0.0, 3.0, 2.0, 12.0, 14.0]]), (4, 4))


def _nms(x: Tensor) -> Tensor:
    from torchvision.ops import nms

    boxes = x.flatten(2)[0, :, :40].T
    boxes = torch.cat([boxes[:, :2], boxes[:, :2] + boxes[:, 2:].abs() + 1], 1)
    return boxes[nms(boxes, x.flatten()[:40], 0.5)]


def _unique(x: Tensor) -> Tensor:
    return torch.unique((x * 4).round().flatten())


def _bits(x: Tensor) -> Tensor:
    whole = (x * 10).to(torch.int32)
    return (whole & 7) | (whole >> 2) ^ 3


def _shift(x: Tensor) -> Tensor:
    return torch.bitwise_left_shift((x * 10).abs().to(torch.int32), 2)


def _det(x: Tensor) -> Tensor:
    return torch.linalg.det(x.reshape(-1, 4, 4))


def _cumprod(x: Tensor) -> Tensor:
    return torch.cumprod(x, -1)


def _logcumsum(x: Tensor) -> Tensor:
    return torch.logcumsumexp(x, -1)


def _lp_pool(x: Tensor) -> Tensor:
    return functional.lp_pool2d(x, 3.0, 2, 2)


def _max_unpool(x: Tensor) -> Tensor:
    pooled, places = functional.max_pool2d(x, 2, return_indices=True)
    return functional.max_unpool2d(pooled, places, 2)


def _scatter(x: Tensor) -> Tensor:
    places = (x.flatten()[:64].abs() * 10).long() % 4
    return torch.zeros(4, 16).index_add(0, places, x.reshape(-1, 16)[:64])


def _scatter_max(x: Tensor) -> Tensor:
    places = (x.flatten(1).abs() * 10).long() % 8
    return torch.zeros(1, 8).scatter_reduce(1, places, x.flatten(1), "amax")


def _nonzero(x: Tensor) -> Tensor:
    return x.flatten()[(x.flatten() > 0).nonzero()[:, 0]]


def _sort(x: Tensor) -> Tensor:
    return torch.sort(x.flatten(2), dim=-1, descending=True).indices


def _mod(x: Tensor) -> Tensor:
    return torch.fmod(x, 0.3) + torch.remainder(x, 0.7)


def _gelu_erf(x: Tensor) -> Tensor:
    return torch.special.erfinv(x.tanh() * 0.9)


def _attention(x: Tensor) -> Tensor:
    tokens = x.flatten(2).transpose(1, 2).reshape(1, 4, 64, 4)
    return functional.scaled_dot_product_attention(tokens, tokens, tokens, is_causal=True)


def _lstm(x: Tensor) -> Tensor:
    return _Recurrent.net(x.flatten(2).transpose(1, 2)[:, :20])[0]


class _Recurrent:
    net = nn.LSTM(4, 8, 2, batch_first=True, bidirectional=True)
    gru = nn.GRU(4, 8, batch_first=True)


def _gru(x: Tensor) -> Tensor:
    return _Recurrent.gru(x.flatten(2).transpose(1, 2)[:, :20])[0]


def _resize(x: Tensor) -> Tensor:
    return functional.interpolate(x, scale_factor=1.7, mode="bicubic", antialias=True, align_corners=False)


def _nearest(x: Tensor) -> Tensor:
    return functional.interpolate(x, size=(23, 19), mode="nearest-exact")


def _shuffle(x: Tensor) -> Tensor:
    return functional.pixel_unshuffle(functional.channel_shuffle(x, 2), 4)


def _group(x: Tensor) -> Tensor:
    return functional.group_norm(x, 2)


def _hardswish(x: Tensor) -> Tensor:
    return functional.celu(functional.hardswish(functional.mish(x)), 0.7)


def _argmax(x: Tensor) -> Tensor:
    return torch.where(torch.isnan(x) | torch.isinf(x), 0.0, x).argmax(1)


def _einsum(x: Tensor) -> Tensor:
    return torch.einsum("bchw,bdhw->bcd", x, x)


def _search(x: Tensor) -> Tensor:
    return torch.bucketize(x, torch.linspace(-1, 1, 9))


def _tril(x: Tensor) -> Tensor:
    return torch.tril(x[0, 0]) @ torch.triu(x[0, 1], 1)


def _double(x: Tensor) -> Tensor:
    return torch.linalg.norm(x.double(), dim=1)


def _complex(x: Tensor) -> Tensor:
    turned = torch.polar(x[:, :2].abs(), x[:, 2:])
    return torch.view_as_real(turned * turned.conj())


def _gumbel(x: Tensor) -> Tensor:
    return x + torch.randn_like(x)


CASES = {name[1:]: one for name, one in sorted(globals().items())
         if name.startswith("_") and callable(one) and getattr(one, "__module__", "") == __name__
         and not isinstance(one, type)}  # fmt: skip


def main() -> None:
    """Exports each module as torch.onnx does by itself."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for name, operation in CASES.items():
        try:
            module = Around(operation).eval()
            torch.onnx.export(
                module, (torch.randn(IMAGE),), FOLDER / f"{name}.onnx", dynamo=True, external_data=False, verbose=False
            )
        except Exception as error:  # noqa: BLE001  # what torch cannot export is no case
            print(f"{name}: torch.onnx does not export it: {str(error).splitlines()[0][:120]}", file=sys.stderr)
    print(f"{len(list(FOLDER.glob('*.onnx')))} of {len(CASES)} modules exported to {FOLDER}")


if __name__ == "__main__":
    main()
