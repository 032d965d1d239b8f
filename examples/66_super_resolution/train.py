"""Train the network from scratch on photographs which scikit-image ships; about two minutes on two cores.

    python train.py [--steps N] [--output weights.safetensors]

The photograph `coffee` is held out: it is what README.md evaluates on, and nothing here reads it.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from model import SCALE, WEIGHTS, SuperResolution
from PIL import Image
from safetensors.torch import save_file
from skimage import data
from torch import nn
from upscale import crop, luma, shrink

PHOTOGRAPHS = ("astronaut", "brick", "camera", "chelsea", "coins", "grass", "gravel", "rocket")
PATCH = 32  # side of a low-resolution patch, pixels
BATCH = 8
STEPS = 3000
PEAK_RATE = 3e-3
SEED = 0

Pair = tuple[torch.Tensor, torch.Tensor]


def to_tensor(plane: Image.Image) -> torch.Tensor:
    """Turn a luminance plane into float32 [height, width] in 0..1."""
    return torch.from_numpy(np.asarray(plane, dtype=np.float32) / 255.0)


def load_pairs() -> list[Pair]:
    """Return (low, high) luminance pairs: float32 [height, width] and [3 * height, 3 * width]."""
    pairs = []
    for name in PHOTOGRAPHS:
        high = crop(Image.fromarray(getattr(data, name)()))
        pairs.append((to_tensor(luma(shrink(high))), to_tensor(luma(high))))
    return pairs


def sample(pairs: list[Pair], generator: torch.Generator) -> Pair:
    """Cut a batch at random places, flipped and turned at random.

    Returns float32 [BATCH, 1, PATCH, PATCH] and [BATCH, 1, 3 * PATCH, 3 * PATCH].
    """

    def draw(end: int) -> int:
        return int(torch.randint(end, (), generator=generator))

    areas = torch.tensor([float(low.numel()) for low, _ in pairs])
    lows: list[torch.Tensor] = []
    highs: list[torch.Tensor] = []
    for index in torch.multinomial(areas, BATCH, replacement=True, generator=generator).tolist():
        low, high = pairs[index]
        top, left = draw(low.shape[0] - PATCH + 1), draw(low.shape[1] - PATCH + 1)
        turns, flip = draw(4), draw(2)
        for plane, scale, patches in ((low, 1, lows), (high, SCALE, highs)):
            rows = slice(top * scale, (top + PATCH) * scale)
            columns = slice(left * scale, (left + PATCH) * scale)
            patch = torch.rot90(plane[rows, columns], turns)
            patches.append(patch.flip(1) if flip else patch)
    return torch.stack(lows).unsqueeze(1), torch.stack(highs).unsqueeze(1)


def cubic(distance: torch.Tensor) -> torch.Tensor:
    """Return the weight of the bicubic kernel (a = -0.5) at distances in pixels."""
    d = distance.abs()
    near = 1.5 * d**3 - 2.5 * d**2 + 1
    far = -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
    return torch.where(d < 1, near, torch.where(d < 2, far, torch.zeros_like(d)))


@torch.no_grad()
def start_as_bicubic(model: SuperResolution) -> None:
    """Initialise so that the untrained network is bicubic interpolation, and learns from there.

    The first nine channels of the first layer compute the nine sub-pixels (they are not negative, so ReLU lets
    them through), the layers after it hand them on; the other channels start at random and reach the output
    only once trained.
    """
    channels = SCALE**2
    phases = (torch.arange(SCALE) - (SCALE - 1) / 2) / SCALE
    taps = cubic(torch.arange(-2, 3) - phases.unsqueeze(1))  # [3, 5]
    kernels = torch.einsum("ai,bj->abij", taps, taps).reshape(channels, 5, 5)
    layers = (model.conv1, model.conv2, model.conv3, model.conv4)
    for layer in layers:
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        layer.weight[:channels] = 0
        if layer.bias is not None:
            layer.bias.zero_()
    model.conv1.weight[:channels, 0] = kernels
    for layer in layers[1:]:
        for channel in range(channels):
            layer.weight[channel, channel, 1, 1] = 1


def train(model: SuperResolution, pairs: list[Pair], steps: int) -> None:
    """Train `model` in place: Adam on the mean squared error, one-cycle learning rate."""
    generator = torch.Generator().manual_seed(SEED)
    optimiser = torch.optim.Adam(model.parameters(), lr=PEAK_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, PEAK_RATE, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in range(steps):
        low, high = sample(pairs, generator)
        loss = nn.functional.mse_loss(model(low), high)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def main() -> None:
    """Train, and save the weights beside this file unless told otherwise."""
    parser = argparse.ArgumentParser(description="Train the x3 super-resolution network from scratch.")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"optimiser steps (default {STEPS})")
    parser.add_argument("--output", type=Path, default=WEIGHTS, help="where to save the weights")
    args = parser.parse_args()

    started = time.perf_counter()
    torch.set_num_threads(2)
    torch.manual_seed(SEED)
    model = SuperResolution()
    start_as_bicubic(model)
    train(model, load_pairs(), args.steps)
    save_file(model.state_dict(), args.output)
    print(f"{args.output}: {args.steps} steps in {time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
