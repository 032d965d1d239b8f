"""A small x3 super-resolution network (sub-pixel convolution) on the luminance plane.

`onnxsmith export model.py:build` calls `build`.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

SCALE = 3
WEIGHTS = Path(__file__).with_name("weights.safetensors")


class SuperResolution(nn.Module):
    """Four convolutions, ReLU between them, then a pixel shuffle; the sides of a picture grow threefold.

    Every convolution pads with zeros, so height and width stay those of the input until the shuffle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(64, 32, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(32, SCALE**2, kernel_size=3, padding=1)
        self.relu = nn.ReLU()
        self.shuffle = nn.PixelShuffle(SCALE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Upscale `x`, float32 [batch, 1, height, width], luminance with black 0 and white 1.

        Returns float32 [batch, 1, 3 * height, 3 * width]; values may pass 0..1 a little, nothing clips them.
        """
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.relu(self.conv3(x))
        y: torch.Tensor = self.shuffle(self.conv4(x))
        return y


def load_weights(model: nn.Module, path: Path) -> None:
    """Fill `model` in place from the safetensors file `path`; names and shapes must agree exactly.

    Raises ValueError, and leaves the model as it was, with every missing key, unexpected key and key whose
    shape differs.
    """
    expected = model.state_dict()
    found = load_file(path)
    faults = [f"missing {key}" for key in sorted(expected.keys() - found.keys())]
    faults += [f"unexpected {key}" for key in sorted(found.keys() - expected.keys())]
    faults += [
        f"shape of {key}: expected {list(expected[key].shape)}, found {list(found[key].shape)}"
        for key in sorted(expected.keys() & found.keys())
        if expected[key].shape != found[key].shape
    ]
    if faults:
        raise ValueError(f"{path} does not fit {type(model).__name__}: {'; '.join(faults)}")
    model.load_state_dict(found, strict=True)


def build() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return the trained model in eval mode and its example input, float32 [1, 1, 40, 56] in 0..1."""
    model = SuperResolution()
    load_weights(model, WEIGHTS)
    example = torch.rand(1, 1, 40, 56, generator=torch.Generator().manual_seed(0))
    return model.eval(), (example,)
