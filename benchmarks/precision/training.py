"""Training and exporting the small networks of the cases, on one thread and from a fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch
    from torch import nn

SEED = 0


def train(
    module: nn.Module,
    batch: Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]],
    steps: int,
    rate: float,
    decay: float = 0.01,
) -> nn.Module:
    """Fit `module` to batches of inputs and class indices, with AdamW and a rate that rises, then falls to zero.

    The classes are the last axis of the output. Returns the module in eval mode.
    """
    import torch

    optimiser = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=0.15)
    generator = torch.Generator().manual_seed(SEED)
    module.train()
    for step in range(steps):
        inputs, labels = batch(generator)
        scores = module(inputs)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), labels.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0 or step == steps - 1:
            print(f"step {step} of {steps}: loss {loss.item():.3f}", flush=True)
    return module.eval()


def seeded() -> None:
    """Make torch draw the same weights, and round the same way, on every run on one machine."""
    import torch

    torch.manual_seed(SEED)
    torch.set_num_threads(1)


def export(
    module: nn.Module, example: tuple[torch.Tensor, ...], path: Path, names: list[str], dynamic: tuple[Any, ...] | None
) -> Path:
    """Write `module` by torch's exporter, in one file; the file appears only once it is whole."""
    import torch

    part = path.with_name(f"{path.name}.part")
    torch.onnx.export(
        module,
        example,
        part,
        input_names=names,
        output_names=["output"],
        dynamic_shapes=dynamic,
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    return part.replace(path)


def split(count: int, parts: tuple[float, ...], seed: int = SEED) -> list[np.ndarray]:
    """Shuffled indices below `count`, cut into disjoint parts of the given shares."""
    order = np.random.default_rng(seed).permutation(count)
    ends = np.round(np.cumsum(parts) * count).astype(int)
    return np.split(order, ends[:-1])
