"""A small classifier of pictures: two stages of convolutions, and a linear layer."""

import torch


class Classifier(torch.nn.Module):
    """Pictures of 3 channels to the probabilities of 10 classes; `width` channels inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = stage(3, width)
        self.body = stage(width, 2 * width)
        self.head = torch.nn.Linear(2 * width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.stem(x)).mean((2, 3))).softmax(-1)


def stage(inside: int, outside: int) -> torch.nn.Sequential:
    """A convolution of 3 by 3 with batch normalisation."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(inside, outside, 3, padding=1), torch.nn.BatchNorm2d(outside), torch.nn.ReLU()
    )


def build() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The classifier with an example input."""
    torch.manual_seed(0)
    return Classifier(32), (torch.randn(2, 3, 32, 32),)


def wrong() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """A faster one that computes something else: it skips half of the picture."""
    module, inputs = build()
    module.body.register_forward_pre_hook(lambda _, args: (args[0][..., ::2, ::2],))
    return module, inputs
